package project_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/project"
)

const (
	admin = v1alpha1.GroupRoleAdmin
	edit  = v1alpha1.GroupRoleEdit
	view  = v1alpha1.GroupRoleView
)

func TestCase30Grants(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []v1alpha1.GroupAccess
		want    []v1alpha1.GroupAccess
		refused map[string]string // group to reason
	}{
		{"nothing", nil, nil, nil},
		{"one of each role", []v1alpha1.GroupAccess{grant("a", admin), grant("b", edit), grant("c", view)},
			[]v1alpha1.GroupAccess{grant("a", admin), grant("b", edit), grant("c", view)}, nil},
		{"the same twice", []v1alpha1.GroupAccess{grant("a", admin), grant("b", view), grant("a", admin)},
			[]v1alpha1.GroupAccess{grant("a", admin), grant("b", view)}, nil},
		{"two roles", []v1alpha1.GroupAccess{grant("a", admin), grant("a", view)},
			[]v1alpha1.GroupAccess{grant("a", admin), grant("a", view)}, nil},
		{"everybody", []v1alpha1.GroupAccess{grant("system:authenticated", view), grant("a", edit), grant("system:unauthenticated", view)},
			[]v1alpha1.GroupAccess{grant("a", edit)},
			map[string]string{"system:authenticated": v1alpha1.ReasonGroupRefused, "system:unauthenticated": v1alpha1.ReasonGroupRefused}},
		{"no such role", []v1alpha1.GroupAccess{grant("a", "owner"), grant("b", ""), grant("c", "Admin"), grant("d", view)},
			[]v1alpha1.GroupAccess{grant("d", view)},
			map[string]string{"a": v1alpha1.ReasonInvalidEntry, "b": v1alpha1.ReasonInvalidEntry, "c": v1alpha1.ReasonInvalidEntry}},
		{"no name", []v1alpha1.GroupAccess{grant("", view)}, nil, map[string]string{"": v1alpha1.ReasonInvalidEntry}},
		{"odd names", []v1alpha1.GroupAccess{grant("/keycloak/team", view), grant("Team A", view), grant(strings.Repeat("x", 200), view)},
			[]v1alpha1.GroupAccess{grant("/keycloak/team", view), grant("Team A", view), grant(strings.Repeat("x", 200), view)}, nil},
		{"a name that only looks like everybody's", []v1alpha1.GroupAccess{grant("system:authenticated:oauth", view)},
			[]v1alpha1.GroupAccess{grant("system:authenticated:oauth", view)}, nil},
	} {
		grants, refused := project.Grants(c.entries)
		if !slices.Equal(grants, c.want) {
			t.Errorf("%s: grants are %v, want %v", c.name, grants, c.want)
		}
		if len(refused) != len(c.refused) {
			t.Errorf("%s: refused are %v, want %v", c.name, refused, c.refused)
		}
		for _, entry := range refused {
			if entry.Reason != c.refused[entry.GroupName] || entry.Message == "" {
				t.Errorf("%s: %q is refused for %s: %q, want %s", c.name, entry.GroupName, entry.Reason, entry.Message, c.refused[entry.GroupName])
			}
		}
	}
}

func TestCase30BindingNames(t *testing.T) {
	groups := []string{"a", "A", "/keycloak/team", "Team A", "team-a", "../..", "%", "", "équipe", strings.Repeat("x", 200), strings.Repeat("x", 199), strings.Repeat("x", 512)}
	seen := map[string]string{}
	for _, group := range groups {
		for role := range project.Roles {
			name := project.BindingName(grant(group, role))
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Errorf("%q in role %s is bound by %q: %v", group, role, name, problems)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("%q and %q share the name %s", other, group, name)
			}
			seen[name] = group
			if name != project.BindingName(grant(group, role)) {
				t.Errorf("the name for %q changes", group)
			}
		}
	}
	// The names are in clusters already: another hash would make every binding anew.
	if got, want := project.BindingName(grant("team", admin)), "ambient-group-admin-ca8b22d0db83a22db163"; got != want {
		t.Errorf("the name for group team is %s, was %s", got, want)
	}
}

func TestCase30TheBindingOfAGroup(t *testing.T) {
	for role, clusterRole := range map[v1alpha1.GroupRole]string{admin: "ambient-project-admin", edit: "ambient-project-edit", view: "ambient-project-view"} {
		binding := plan().GroupBinding(grant("/keycloak/team", role))
		if want := (rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: clusterRole}); binding.RoleRef != want {
			t.Errorf("role %s binds %v, want %v", role, binding.RoleRef, want)
		}
		want := rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "/keycloak/team"}
		if len(binding.Subjects) != 1 || binding.Subjects[0] != want {
			t.Errorf("it is for %v, want %v", binding.Subjects, want)
		}
		if got := binding.Annotations["ambient-code.io/group"]; got != "/keycloak/team" {
			t.Errorf("the annotation says %q", got)
		}
	}
}

func TestCase30Revoked(t *testing.T) {
	p := plan()
	binding := func(g v1alpha1.GroupAccess, change ...func(*rbacv1.RoleBinding)) rbacv1.RoleBinding {
		b := p.GroupBinding(g)
		for _, f := range change {
			f(b)
		}
		return *b
	}
	named := func(name string) func(*rbacv1.RoleBinding) { return func(b *rbacv1.RoleBinding) { b.Name = name } }
	orphan := func(b *rbacv1.RoleBinding) { b.OwnerReferences = nil }
	deleted := func(b *rbacv1.RoleBinding) { b.OwnerReferences[0].UID = "other" }
	others := func(b *rbacv1.RoleBinding) { b.OwnerReferences[0].Kind = "ConfigMap" }
	anotherGroup := func(b *rbacv1.RoleBinding) { b.Annotations["ambient-code.io/group"] = "other" }
	for _, c := range []struct {
		name    string
		binding rbacv1.RoleBinding
		revoked bool
	}{
		{"listed", binding(grant("a", admin)), false},
		{"in another role", binding(grant("a", view)), true},
		{"not listed", binding(grant("b", admin)), true},
		{"ours with another name", binding(grant("b", admin), named("x")), true},
		{"not listed, its owner taken off", binding(grant("b", admin), orphan), true},
		{"listed, its owner taken off", binding(grant("a", admin), orphan), false},
		{"somebody's copy", binding(grant("b", admin), orphan, named("mine")), false},
		{"somebody's with another group", binding(grant("b", admin), orphan, anotherGroup), false},
		{"another owner's", binding(grant("b", admin), others), false},
		{"not listed, of settings deleted before", binding(grant("b", admin), deleted), true},
		{"listed, of settings deleted before", binding(grant("a", admin), deleted), false},
		{"of the trigger", *p.TriggerBinding(), false},
	} {
		revoked := p.Revoked([]rbacv1.RoleBinding{c.binding}, []v1alpha1.GroupAccess{grant("a", admin)})
		if got := len(revoked) == 1; got != c.revoked {
			t.Errorf("%s: revoked is %t, want %t", c.name, got, c.revoked)
		}
	}
}

type access struct{ verb, group, resource, name string }

func covers(rules []rbacv1.PolicyRule, a access) bool {
	for _, rule := range rules {
		if slices.Contains(rule.Verbs, a.verb) && slices.Contains(rule.APIGroups, a.group) && slices.Contains(rule.Resources, a.resource) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.name)) {
			return true
		}
	}
	return false
}

func clusterRole(t *testing.T, file string) rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile("../../config/rbac/" + file)
	if err != nil {
		t.Fatal(err)
	}
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		t.Fatal(err)
	}
	return role
}

// Kubernetes lets nobody grant what he does not hold, but for roles that he may bind.
func TestCase35TheOperatorMayGrantWhatProjectsNeed(t *testing.T) {
	operator := clusterRole(t, "role.yaml")
	for _, rule := range plan().TriggerRole().Rules {
		for _, verb := range rule.Verbs {
			if a := (access{verb, rule.APIGroups[0], rule.Resources[0], ""}); !covers(operator.Rules, a) {
				t.Errorf("the Role of schedules has %v, which the operator may not", a)
			}
		}
	}
	var bindable []string
	for _, rule := range operator.Rules {
		if slices.Contains(rule.Verbs, "bind") {
			if !slices.Equal(rule.Resources, []string{"clusterroles"}) || !slices.Equal(rule.Verbs, []string{"bind"}) {
				t.Errorf("the operator may %v on %v", rule.Verbs, rule.Resources)
			}
			bindable = append(bindable, rule.ResourceNames...)
		}
	}
	var roles []string
	for _, role := range project.Roles {
		roles = append(roles, role)
	}
	slices.Sort(roles)
	slices.Sort(bindable)
	if !slices.Equal(bindable, roles) {
		t.Errorf("the operator may bind %v, want %v", bindable, roles)
	}
}

func TestTheRolesOfAProject(t *testing.T) {
	const group = "vteam.ambient-code"
	for _, c := range []struct {
		access
		view, edit, admin bool
	}{
		{access{"list", group, "agenticsessions", ""}, true, true, true},
		{access{"watch", group, "agenticsessions", ""}, true, true, true},
		{access{"create", group, "agenticsessions", ""}, false, true, true},
		{access{"patch", group, "agenticsessions", ""}, false, true, true},
		{access{"delete", group, "agenticsessions", ""}, false, true, true},
		{access{"patch", group, "agenticsessions/status", ""}, false, false, false},
		{access{"get", group, "projectsettings", ""}, true, true, true},
		{access{"update", group, "projectsettings", ""}, false, false, true},
		{access{"get", "", "pods/log", ""}, true, true, true},
		{access{"list", "", "events", ""}, true, true, true},
		{access{"list", "events.k8s.io", "events", ""}, true, true, true},
		{access{"create", "", "pods/exec", ""}, false, false, false},
		{access{"create", "", "pods", ""}, false, false, false},
		{access{"get", "", "secrets", ""}, false, false, true},
		{access{"create", "", "secrets", ""}, false, false, true},
		{access{"create", "rbac.authorization.k8s.io", "rolebindings", ""}, false, false, true},
		{access{"create", "rbac.authorization.k8s.io", "roles", ""}, false, false, false},
		{access{"bind", "rbac.authorization.k8s.io", "clusterroles", "ambient-project-admin"}, false, false, false},
	} {
		for role, want := range map[string]bool{"view": c.view, "edit": c.edit, "admin": c.admin} {
			shipped := clusterRole(t, "project_"+role+"_role.yaml")
			if got := covers(shipped.Rules, c.access); got != want {
				t.Errorf("%s: %v is allowed: %t, want %t", role, c.access, got, want)
			}
			if shipped.Name != project.Roles[v1alpha1.GroupRole(role)] {
				t.Errorf("%s is named %s", role, shipped.Name)
			}
			if shipped.Labels["rbac.authorization.k8s.io/aggregate-to-"+role] != "true" || len(shipped.Labels) != 1 {
				t.Errorf("%s has the labels %v", role, shipped.Labels)
			}
		}
	}
}
