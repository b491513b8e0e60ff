package project_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/project"
)

// FuzzGroups gives access to groups of any name: each entry is in effect or refused with a sentence,
// the objects have names, different groups have different ones, and nobody lets everybody in.
func FuzzGroups(f *testing.F) {
	f.Add("team", "view", "team", "admin")
	f.Add("system:authenticated", "admin", "", "view")
	f.Add("/keycloak/team", "edit", "Team A", "owner")
	f.Add(strings.Repeat("ä", 300), "view", "system:masters", "view")
	f.Add("a\x00", "view", "a", "view")
	f.Fuzz(func(t *testing.T, one, oneRole, two, twoRole string) {
		entries := []v1alpha1.GroupAccess{grant(one, v1alpha1.GroupRole(oneRole)), grant(two, v1alpha1.GroupRole(twoRole)), grant(one, v1alpha1.GroupRole(oneRole))}
		grants, refused := project.Grants(entries)
		want := 2
		if entries[0] == entries[1] {
			want = 1
		}
		if len(grants)+len(refused) != want {
			t.Errorf("of %v, %v are granted and %v refused", entries, grants, refused)
		}
		for _, r := range refused {
			if r.Message == "" || r.Reason == "" {
				t.Errorf("%+v is refused without a word", r)
			}
		}
		p, names := plan(), map[string]bool{}
		var bindings []rbacv1.RoleBinding
		for _, g := range grants {
			if g.GroupName == "" || g.GroupName == "system:authenticated" || g.GroupName == "system:unauthenticated" {
				t.Errorf("%+v is granted", g)
			}
			binding := p.GroupBinding(g)
			if wrong := validation.IsDNS1123Subdomain(binding.Name); wrong != nil || names[binding.Name] {
				t.Errorf("the binding of %+v is called %q: %v", g, binding.Name, wrong)
			}
			names[binding.Name] = true
			bindings = append(bindings, *binding)
		}
		if revoked := p.Revoked(bindings, grants); len(revoked) > 0 {
			t.Errorf("what is granted is revoked: %v", revoked)
		}
		if revoked := p.Revoked(bindings, nil); len(revoked) != len(bindings) {
			t.Errorf("of %d bindings, %d are revoked", len(bindings), len(revoked))
		}
	})
}
