package workload_test

import (
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

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

func TestCase33WhatARunnerMayDo(t *testing.T) {
	const group, sessions = "vteam.ambient-code", "agenticsessions"
	manages := small()
	manages.Project = full().Project
	notManages := small()
	notManages.Project = full().Project.DeepCopy()
	notManages.Project.Annotations["ambient-code.io/runners-manage-sessions"] = "yes"
	for _, c := range []struct {
		access
		may, ifManaging bool
	}{
		{access{"list", group, sessions, ""}, true, true},
		{access{"get", group, sessions, "other"}, true, true},
		{access{"watch", group, sessions, ""}, true, true},
		{access{"create", group, sessions, ""}, true, true},
		{access{"update", group, sessions, "hello"}, true, true},
		{access{"patch", group, sessions, "hello"}, true, true},
		{access{"update", group, sessions, "other"}, false, true},
		{access{"patch", group, sessions, "other"}, false, true},
		{access{"delete", group, sessions, "hello"}, false, false},
		{access{"update", group, sessions + "/status", "hello"}, false, false},
		{access{"get", "", "secrets", "ambient-runner-token-hello"}, true, true},
		{access{"get", "", "secrets", "ambient-runner-token-other"}, false, false},
		{access{"get", "", "secrets", "ambient-runner-secrets"}, false, false},
		{access{"list", "", "secrets", ""}, false, false},
		{access{"watch", "", "secrets", ""}, false, false},
		{access{"create", "", "pods", ""}, false, false},
		{access{"create", "", "pods/exec", "a"}, false, false},
		{access{"create", "rbac.authorization.k8s.io", "roles", ""}, false, false},
	} {
		if got := covers(small().Role().Rules, c.access); got != c.may {
			t.Errorf("%v is allowed: %t, want %t", c.access, got, c.may)
		}
		if got := covers(manages.Role().Rules, c.access); got != c.ifManaging {
			t.Errorf("%v is allowed where runners manage sessions: %t, want %t", c.access, got, c.ifManaging)
		}
		if got := covers(notManages.Role().Rules, c.access); got != c.may {
			t.Errorf("%v is allowed with a word other than true: %t, want %t", c.access, got, c.may)
		}
	}
}

// Kubernetes lets nobody grant what he does not hold.
func TestCase35TheOperatorHoldsWhatItGrants(t *testing.T) {
	text, err := os.ReadFile("../../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	operator := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(text, &operator); err != nil {
		t.Fatal(err)
	}
	for _, c := range plans {
		for _, rule := range c.plan().Role().Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						if a := (access{verb, group, resource, ""}); !covers(operator.Rules, a) {
							t.Errorf("%s: the runner's Role has %v, which the operator may not", c.name, a)
						}
					}
				}
			}
		}
	}
	for _, rule := range operator.Rules {
		for _, verb := range []string{"escalate", "bind", "impersonate", "*"} {
			if verb == "bind" && len(rule.ResourceNames) > 0 {
				continue // the roles of projects by name, see internal/project
			}
			if slices.Contains(rule.Verbs, verb) {
				t.Errorf("the operator has the verb %s on %v", verb, rule.Resources)
			}
		}
	}
}

func TestTheRoleIsBoundToTheRunner(t *testing.T) {
	p := small()
	binding := p.RoleBinding()
	if binding.RoleRef.Kind != "Role" || binding.RoleRef.Name != p.Role().Name {
		t.Errorf("it binds %v, want Role %s", binding.RoleRef, p.Role().Name)
	}
	want := rbacv1.Subject{Kind: "ServiceAccount", Name: p.ServiceAccount().Name, Namespace: "project"}
	if len(binding.Subjects) != 1 || binding.Subjects[0] != want {
		t.Errorf("it is for %v, want %v", binding.Subjects, want)
	}
	if account := p.Job(1).Spec.Template.Spec.ServiceAccountName; account != want.Name {
		t.Errorf("the pod runs as %s", account)
	}
}
