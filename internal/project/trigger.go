package project

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TriggerName is the name of what the trigger of scheduled sessions acts as: its ServiceAccount,
// Role and RoleBinding; source: the contract.
const TriggerName = "ambient-session-trigger"

// TriggerAccount is the identity that the pods of a schedule use to start sessions.
func (p *Plan) TriggerAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: p.objectMeta(TriggerName)}
}

// TriggerRole lets a schedule create sessions and start those again that it made before.
func (p *Plan) TriggerRole() *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: p.objectMeta(TriggerName),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1alpha1.GroupVersion.Group},
			Resources: []string{"agenticsessions"},
			Verbs:     []string{"create", "get", "list", "update"},
		}},
	}
}

// TriggerBinding gives the Role to the identity.
func (p *Plan) TriggerBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: p.objectMeta(TriggerName),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: TriggerName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: TriggerName, Namespace: p.Settings.Namespace}},
	}
}
