package workload

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Role is what the runner may do. The platform's backend accepts a runner only if it may list
// sessions; its tools look at and create sessions of the project, and report progress on their
// own. Changing other sessions is for projects that say so.
func (p *Plan) Role() *rbacv1.Role {
	own := []string{p.Session.Name}
	if p.managesSessions() {
		own = nil
	}
	return &rbacv1.Role{
		ObjectMeta: p.objectMeta(RoleName(p.Session.Name)),
		Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{v1alpha1.GroupVersion.Group},
				Resources: []string{"agenticsessions"},
				Verbs:     []string{"get", "list", "watch", "create"},
			},
			{
				APIGroups:     []string{v1alpha1.GroupVersion.Group},
				Resources:     []string{"agenticsessions"},
				ResourceNames: own,
				Verbs:         []string{"update", "patch"},
			},
			{
				APIGroups:     []string{""},
				Resources:     []string{"secrets"},
				ResourceNames: []string{TokenSecretName(p.Session.Name)},
				Verbs:         []string{"get"},
			},
		},
	}
}

func (p *Plan) managesSessions() bool {
	return p.Project != nil && p.Project.Annotations[v1alpha1.AnnotationRunnersManageSessions] == "true"
}

// RoleBinding gives the Role to the runner's identity.
func (p *Plan) RoleBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: p.objectMeta(RoleBindingName(p.Session.Name)),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: RoleName(p.Session.Name)},
		Subjects: []rbacv1.Subject{{
			Kind:      rbacv1.ServiceAccountKind,
			Name:      ServiceAccountName(p.Session.Name),
			Namespace: p.Session.Namespace,
		}},
	}
}
