package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// settingsObject names the settings of the project for a client.
func (p *project) settingsObject() *v1alpha1.ProjectSettings {
	return &v1alpha1.ProjectSettings{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "projectsettings"}}
}

// settings waits until the settings are in a state, and returns them.
func (p *project) settings(what string, check func(*v1alpha1.ProjectSettings) error) *v1alpha1.ProjectSettings {
	p.t.Helper()
	var latest *v1alpha1.ProjectSettings
	p.eventually("the settings of the project: "+what, func() error {
		latest = p.settingsObject()
		if err := suite.admin.Get(p.ctx, client.ObjectKeyFromObject(latest), latest); err != nil {
			return err
		}
		return check(latest)
	})
	return latest
}

func exist(*v1alpha1.ProjectSettings) error { return nil }

// ready says that all that the settings ask for now is in place.
func ready(s *v1alpha1.ProjectSettings) error { return readyFor(metav1.ConditionTrue, "Present")(s) }

func readyFor(status metav1.ConditionStatus, reason string) func(*v1alpha1.ProjectSettings) error {
	return func(s *v1alpha1.ProjectSettings) error {
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case c == nil:
			return errors.New("nobody looked at them yet")
		case s.Status.ObservedGeneration != s.Generation || c.ObservedGeneration != s.Generation:
			return fmt.Errorf("generation %d was looked at, it is %d", s.Status.ObservedGeneration, s.Generation)
		case c.Status != status || c.Reason != reason:
			return fmt.Errorf("Ready is %s for %s: %s", c.Status, c.Reason, c.Message)
		}
		return nil
	}
}

// giveAccess sets the list of groups, given as group and role in turn.
func (p *project) giveAccess(groupsAndRoles ...string) {
	p.t.Helper()
	p.settings("are there", exist)
	list := []map[string]string{}
	for i := 0; i < len(groupsAndRoles); i += 2 {
		list = append(list, map[string]string{"groupName": groupsAndRoles[i], "role": groupsAndRoles[i+1]})
	}
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"groupAccess": list}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.patch(p.settingsObject(), string(text))
}

// projectRights are what tells the roles of a project apart.
var projectRights = []struct {
	verb, group, resource, subresource string
	roles                              []string
}{
	{"list", "vteam.ambient-code", "agenticsessions", "", []string{"view", "edit", "admin"}},
	{"get", "", "pods", "log", []string{"view", "edit", "admin"}},
	{"list", "", "events", "", []string{"view", "edit", "admin"}},
	{"create", "vteam.ambient-code", "agenticsessions", "", []string{"edit", "admin"}},
	{"patch", "vteam.ambient-code", "projectsettings", "", []string{"admin"}},
	{"create", "", "pods", "exec", nil},
}

// may asks the API server what a group, or a user without groups, may do.
func (p *project) may(user, group string, of authorizationv1.ResourceAttributes) (bool, error) {
	of.Namespace = p.name
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &of}}
	if group != "" {
		review.Spec.User, review.Spec.Groups = "somebody", []string{group}
	}
	if err := suite.admin.Create(p.ctx, review); err != nil {
		return false, fmt.Errorf("asking for an access review: %w", err)
	}
	return review.Status.Allowed, nil
}

// has waits until a group has exactly the rights of a role; "" is none at all.
func (p *project) has(group, role string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("group %.40q has the role %q", group, role), func() error {
		for _, right := range projectRights {
			allowed, err := p.may("", group, authorizationv1.ResourceAttributes{Verb: right.verb, Group: right.group, Resource: right.resource, Subresource: right.subresource})
			if err != nil {
				return err
			}
			if want := slices.Contains(right.roles, role); allowed != want {
				return fmt.Errorf("it may %s %s: %t", right.verb, right.resource, allowed)
			}
		}
		return nil
	})
}

func (p *project) bindings() []rbacv1.RoleBinding {
	p.t.Helper()
	list := &rbacv1.RoleBindingList{}
	if err := suite.admin.List(p.ctx, list, client.InNamespace(p.name), client.HasLabels{v1alpha1.LabelProjectSettings}); err != nil {
		p.t.Fatalf("listing RoleBindings: %v", err)
	}
	return slices.DeleteFunc(list.Items, func(b rbacv1.RoleBinding) bool { return b.RoleRef.Kind != "ClusterRole" })
}

// TestCase30GroupAccess: the access of groups follows the list, whatever they are called; taken off
// the list, a group has none.
func TestCase30GroupAccess(t *testing.T) {
	p := share(t)
	long := strings.Repeat("x", 200)
	p.giveAccess("ops", "admin", "/keycloak/team", "edit", "Team A", "view", long, "view", "Team A", "view", "both", "view", "both", "edit")
	s := p.settings("are in effect", ready)
	if s.Status.GroupBindingsCreated != 6 || !s.Status.ScheduledSessionRBACReady || !s.Status.LimitRangeReady || len(s.Status.GroupErrors) > 0 {
		t.Errorf("the status is %+v", s.Status)
	}
	for group, role := range map[string]string{"ops": "admin", "/keycloak/team": "edit", "Team A": "view", long: "view", "both": "edit", "others": "", "system:authenticated": ""} {
		p.has(group, role)
	}
	for _, binding := range p.bindings() {
		if controller := metav1.GetControllerOf(&binding); controller == nil || controller.UID != s.UID || controller.BlockOwnerDeletion != nil {
			t.Errorf("RoleBinding %s is owned by %v", binding.Name, binding.OwnerReferences)
		}
	}

	before := len(p.operator.gate.written(p.name))
	p.giveAccess("ops", "view", "Team A", "admin", long, "view")
	s = p.settings("are in effect", ready)
	if s.Status.GroupBindingsCreated != 3 || len(p.bindings()) != 3 {
		t.Errorf("there are %d bindings, the status tells of %d", len(p.bindings()), s.Status.GroupBindingsCreated)
	}
	for group, role := range map[string]string{"ops": "view", "Team A": "admin", long: "view", "/keycloak/team": "", "both": ""} {
		p.has(group, role)
	}
	// The new role is given before the old one is taken.
	var methods []string
	for _, c := range p.operator.gate.written(p.name)[before:] {
		if strings.Contains(c.path, "/rolebindings") {
			methods = append(methods, c.method)
		}
	}
	if !slices.IsSortedFunc(methods, func(a, b string) int { return -strings.Compare(a, b) }) || len(methods) != 7 {
		t.Errorf("the RoleBindings were written in the order %v, want 2 POST, then 5 DELETE", methods)
	}

	p.giveAccess()
	s = p.settings("are in effect", ready)
	for _, group := range []string{"ops", "Team A", long} {
		p.has(group, "")
	}
	if s.Status.GroupBindingsCreated != 0 || len(p.bindings()) != 0 {
		t.Errorf("there are %d bindings, the status tells of %d", len(p.bindings()), s.Status.GroupBindingsCreated)
	}

	p.giveAccess("ops", "admin")
	p.has("ops", "admin")
	old := p.settings("are in effect", ready)
	p.delete(p.settingsObject())
	p.has("ops", "")
	p.settings("are made again with nobody in them, and in effect", func(s *v1alpha1.ProjectSettings) error {
		if s.UID == old.UID || len(s.Spec.GroupAccess) > 0 {
			return errors.New("they are the old ones")
		}
		return ready(s)
	})
	p.settles(time.Second)
}

// TestCase30OneEntryFails: an entry that cannot be in effect is told and keeps no other back, nor
// does it keep access from being taken away.
func TestCase30OneEntryFails(t *testing.T) {
	p := share(t)
	p.giveAccess("gone", "admin", "stays", "view")
	p.settings("are in effect", ready)
	p.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "ambient-group-admin-ca8b22d0db83a22db163"}, // of group "team"
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	})
	p.giveAccess("team", "admin", "stays", "view", "new", "edit")
	s := p.settings("tell of the entry", readyFor(metav1.ConditionFalse, v1alpha1.ReasonNameCollision))
	if s.Status.GroupBindingsCreated != 2 || len(s.Status.GroupErrors) != 1 || s.Status.GroupErrors[0].GroupName != "team" || s.Status.GroupErrors[0].Role != "admin" {
		t.Errorf("the status is %+v", s.Status)
	}
	p.has("new", "edit")
	p.has("stays", "view")
	p.has("gone", "")
	p.has("team", "")
	p.settles(time.Second)
}

// TestCase30TheAPIRefusesEverybody: the groups that everybody is in are refused at once, as are
// roles that do not exist.
func TestCase30TheAPIRefusesEverybody(t *testing.T) {
	p := share(t)
	p.settings("are there", exist)
	for _, entry := range []string{
		`{"groupName":"system:authenticated","role":"view"}`,
		`{"groupName":"system:unauthenticated","role":"view"}`,
		`{"groupName":"a","role":"owner"}`,
		`{"groupName":"","role":"view"}`,
		`{"groupName":"a"}`,
	} {
		err := suite.admin.Patch(p.ctx, p.settingsObject(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"groupAccess":[`+entry+`]}}`)))
		if err == nil {
			t.Errorf("%s is accepted", entry)
		}
	}
}

// TestCase30SettingsOfAnOldDefinition: what an older CRD let through is refused by the operator,
// entry by entry, and settings of another name have no effect.
func TestCase30SettingsOfAnOldDefinition(t *testing.T) {
	p := emptyProject(t, nil, map[string]string{v1alpha1.LabelManaged: "true"})
	laxSettings(t)
	stored := []*unstructured.Unstructured{}
	for _, name := range []string{"projectsettings", "other"} {
		stored = append(stored, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "vteam.ambient-code/v1alpha1", "kind": "ProjectSettings",
			"metadata": map[string]any{"namespace": p.name, "name": name},
			"spec": map[string]any{"groupAccess": []any{
				map[string]any{"groupName": "system:authenticated", "role": "view"},
				map[string]any{"groupName": "team-" + name, "role": "edit"},
				map[string]any{"groupName": "bosses", "role": "owner"},
			}},
		}})
	}
	for _, object := range stored {
		p.eventually("the older CRD is served", func() error { return suite.admin.Create(p.ctx, object.DeepCopy()) })
	}
	if err := installCRDs(p.ctx); err != nil {
		t.Fatal(err)
	}
	p.eventually("the CRD is served", func() error {
		if err := suite.admin.Create(p.ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "vteam.ambient-code/v1alpha1", "kind": "ProjectSettings",
			"metadata": map[string]any{"namespace": p.name, "name": "third"}, "spec": map[string]any{"groupAccess": []any{}},
		}}, client.DryRunAll); err == nil {
			return errors.New("another name is still accepted")
		}
		return nil
	})
	p.operator = alone(t, nil)
	s := p.settings("tell of the entries", readyFor(metav1.ConditionFalse, v1alpha1.ReasonGroupRefused))
	if len(s.Status.GroupErrors) != 2 || s.Status.GroupErrors[0].Reason != v1alpha1.ReasonGroupRefused ||
		s.Status.GroupErrors[1].Reason != v1alpha1.ReasonInvalidEntry || s.Status.GroupErrors[1].Role != "owner" {
		t.Errorf("the errors are %+v", s.Status.GroupErrors)
	}
	p.has("team-projectsettings", "edit")
	p.has("system:authenticated", "")
	p.has("bosses", "")
	other := &v1alpha1.ProjectSettings{}
	p.eventually("the other settings say that they are ignored", func() error {
		p.get("other", other)
		return readyFor(metav1.ConditionFalse, v1alpha1.ReasonIgnored)(other)
	})
	p.has("team-other", "")
	p.settles(time.Second)
}

// laxSettings puts a CRD of ProjectSettings in place that accepts what an older one did.
func laxSettings(t *testing.T) {
	t.Helper()
	all, err := crds()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if crd.GetName() != "projectsettings.vteam.ambient-code" {
			continue
		}
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		if err != nil {
			t.Fatal(err)
		}
		withoutRules(versions)
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		if err := applyObject(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("there is no CRD of ProjectSettings")
}

// withoutRules takes every rule and every list of values out of a schema.
func withoutRules(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		delete(schema, "x-kubernetes-validations")
		delete(schema, "enum")
		for _, value := range schema {
			withoutRules(value)
		}
	case []any:
		for _, value := range schema {
			withoutRules(value)
		}
	}
}

// TestTheClusterRolesOfProjects: whoever has the cluster's own admin, edit or view role in a
// namespace has what the project's roles give.
func TestTheClusterRolesOfProjects(t *testing.T) {
	p := share(t)
	for _, role := range []string{"admin", "edit", "view"} {
		p.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "cluster-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "cluster-" + role}},
		})
		for _, right := range projectRights {
			if right.group == "" {
				continue // the cluster's roles have their own idea of pods
			}
			p.eventually("the cluster's role "+role, func() error {
				allowed, err := p.may("", "cluster-"+role, authorizationv1.ResourceAttributes{Verb: right.verb, Group: right.group, Resource: right.resource})
				if want := slices.Contains(right.roles, role); err == nil && allowed != want {
					return fmt.Errorf("it may %s %s: %t", right.verb, right.resource, allowed)
				}
				return err
			})
		}
	}
}

// TestScheduledSessionsMay: the identity of schedules creates sessions and starts them again, and
// no more.
func TestScheduledSessionsMay(t *testing.T) {
	p := share(t)
	p.settings("are in effect", ready)
	for verb, want := range map[string]bool{"create": true, "get": true, "list": true, "update": true, "patch": false, "delete": false, "watch": false} {
		p.eventually("a schedule may "+verb, func() error {
			allowed, err := p.may("system:serviceaccount:"+p.name+":ambient-session-trigger", "", authorizationv1.ResourceAttributes{Verb: verb, Group: "vteam.ambient-code", Resource: "agenticsessions"})
			if err == nil && allowed != want {
				return fmt.Errorf("it is %t", allowed)
			}
			return err
		})
	}
}

// TestCase33RunnersManageSessions: what the project says of its agents holds for a session that
// runs already, at once.
func TestCase33RunnersManageSessions(t *testing.T) {
	p := share(t)
	s := p.session("agent", "hang")
	p.session("colleague", "hang")
	s.reaches(running)
	runner := "system:serviceaccount:" + p.name + ":ambient-session-agent"
	mayChange := func(want bool) {
		t.Helper()
		p.eventually(fmt.Sprintf("the runner may change other sessions: %t", want), func() error {
			allowed, err := p.may(runner, "", authorizationv1.ResourceAttributes{Verb: "patch", Group: "vteam.ambient-code", Resource: "agenticsessions", Name: "colleague"})
			if err == nil && allowed != want {
				return fmt.Errorf("it is %t", allowed)
			}
			return err
		})
	}
	mayChange(false)
	p.patch(p.settingsObject(), `{"metadata":{"annotations":{"ambient-code.io/runners-manage-sessions":"true"}}}`)
	mayChange(true)
	p.patch(p.settingsObject(), `{"metadata":{"annotations":{"ambient-code.io/runners-manage-sessions":null}}}`)
	mayChange(false)
	s.expectHistory(pending, creating, running)
	p.settles(time.Second)
}
