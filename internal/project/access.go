package project

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Roles are the roles of a project, each with the ClusterRole it stands for; source: the contract.
var Roles = map[v1alpha1.GroupRole]string{
	v1alpha1.GroupRoleAdmin: "ambient-project-admin",
	v1alpha1.GroupRoleEdit:  "ambient-project-edit",
	v1alpha1.GroupRoleView:  "ambient-project-view",
}

// everybody are the groups that every request belongs to.
var everybody = []string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts"}

// Grants sorts a groupAccess list: the entries that are to be in effect, each once, in the order
// of the list, and those that are refused. The API refuses the latter at once; settings that were
// stored under an older definition come here. A group may have several roles: it then has the
// rights of all of them.
func Grants(entries []v1alpha1.GroupAccess) (grants []v1alpha1.GroupAccess, refused []v1alpha1.GroupError) {
	var seen []v1alpha1.GroupAccess
	for _, entry := range entries {
		if slices.Contains(seen, entry) {
			continue
		}
		seen = append(seen, entry)
		switch _, known := Roles[entry.Role]; {
		case slices.Contains(everybody, entry.GroupName):
			refused = append(refused, entryError(entry, v1alpha1.ReasonGroupRefused,
				fmt.Sprintf("group %q would open the project to everybody and gets no access: name a group of your own", entry.GroupName)))
		case entry.GroupName == "":
			refused = append(refused, entryError(entry, v1alpha1.ReasonInvalidEntry, "the entry names no group: fill in its groupName or remove it"))
		case !known:
			refused = append(refused, entryError(entry, v1alpha1.ReasonInvalidEntry,
				fmt.Sprintf("there is no role %q, so group %q gets no access: choose admin, edit or view", entry.Role, entry.GroupName)))
		default:
			grants = append(grants, entry)
		}
	}
	return grants, refused
}

// entryError says why an entry is not in effect.
func entryError(entry v1alpha1.GroupAccess, reason, message string) v1alpha1.GroupError {
	return v1alpha1.GroupError{GroupName: entry.GroupName, Role: string(entry.Role), Reason: reason, Message: message}
}

// BindingName names the RoleBinding of a group in a role. What groups are called (Team A,
// /keycloak/team) is not always a name that objects can have, so it is a hash; the annotation and
// the subject spell it out. The role is part of the name because a RoleBinding cannot change its
// role: another role is another RoleBinding.
func BindingName(grant v1alpha1.GroupAccess) string {
	sum := sha256.Sum256([]byte(grant.GroupName))
	return fmt.Sprintf("ambient-group-%s-%s", grant.Role, hex.EncodeToString(sum[:10]))
}

// GroupBinding gives a group its role in the project.
func (p *Plan) GroupBinding(grant v1alpha1.GroupAccess) *rbacv1.RoleBinding {
	meta := p.objectMeta(BindingName(grant))
	meta.Annotations = map[string]string{v1alpha1.AnnotationGroup: grant.GroupName}
	return &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Roles[grant.Role]},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: grant.GroupName}},
	}
}

// Revoked picks from the project's RoleBindings those that give access to a group and are no
// longer wanted.
func (p *Plan) Revoked(bindings []rbacv1.RoleBinding, grants []v1alpha1.GroupAccess) []rbacv1.RoleBinding {
	wanted := map[string]bool{}
	for _, grant := range grants {
		wanted[BindingName(grant)] = true
	}
	var revoked []rbacv1.RoleBinding
	for i := range bindings {
		if !wanted[bindings[i].Name] && p.made(&bindings[i]) {
			revoked = append(revoked, bindings[i])
		}
	}
	return revoked
}

// made says that a RoleBinding was made to give access to a group: the settings own it, or deleted
// ones of their name did, or it lost its owner and still has the name that only we give. A label
// alone, which anyone can copy, does not make it ours to remove.
func (p *Plan) made(binding *rbacv1.RoleBinding) bool {
	if binding.Name == TriggerName {
		return false
	}
	if controller := metav1.GetControllerOf(binding); controller != nil {
		return controller.Kind == kindSettings && controller.Name == p.Settings.Name
	}
	for role, clusterRole := range Roles {
		grant := v1alpha1.GroupAccess{GroupName: binding.Annotations[v1alpha1.AnnotationGroup], Role: role}
		if binding.RoleRef.Name == clusterRole && binding.Name == BindingName(grant) {
			return true
		}
	}
	return false
}
