package checks_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestCase48TheBundleGrantsWhatTheManifestsGrant: the operator may do the same however it is
// installed. That it may do no more than it does is judged where it is seen at work.
func TestCase48TheBundleGrantsWhatTheManifestsGrant(t *testing.T) {
	want, account := grantedByManifests(t)
	got := map[string]bool{}
	strategy := readCSV(t, bundleDir()).Spec.InstallStrategy.StrategySpec
	for _, d := range strategy.DeploymentSpecs {
		if d.Spec.Template.Spec.ServiceAccountName != account {
			t.Errorf("Deployment %s acts as %s, want %s", d.Name, d.Spec.Template.Spec.ServiceAccountName, account)
		}
	}
	for _, p := range strategy.ClusterPermissions {
		if p.ServiceAccountName == account {
			spellOut(got, "everywhere", p.Rules)
		}
	}
	for _, p := range strategy.Permissions {
		if p.ServiceAccountName == account {
			spellOut(got, "at home", p.Rules)
		}
	}
	if len(want) < 50 {
		t.Fatalf("only %d rights in config/rbac: they are not read as they should be", len(want))
	}
	for right := range want {
		if !got[right] {
			t.Errorf("config/rbac grants what the bundle does not: %s", right)
		}
	}
	for right := range got {
		if !want[right] {
			t.Errorf("the bundle grants what config/rbac does not: %s", right)
		}
	}
}

// grantedByManifests spells out what config/rbac binds to the operator's ServiceAccount.
func grantedByManifests(t *testing.T) (rights map[string]bool, account string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "config", "rbac", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rules, bindings := map[string][]rbacv1.PolicyRule{}, []rbacv1.ClusterRoleBinding{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			// A ClusterRole and a ClusterRoleBinding have all that a Role and a RoleBinding have.
			object := struct {
				rbacv1.ClusterRole
				Subjects []rbacv1.Subject `json:"subjects"`
				RoleRef  rbacv1.RoleRef   `json:"roleRef"`
			}{}
			if err := yaml.Unmarshal(document, &object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			switch object.Kind {
			case "ServiceAccount":
				account = object.Name
			case "Role", "ClusterRole":
				rules[object.Kind+" "+object.Name] = object.Rules
			case "RoleBinding", "ClusterRoleBinding":
				binding := rbacv1.ClusterRoleBinding{TypeMeta: object.TypeMeta, Subjects: object.Subjects, RoleRef: object.RoleRef}
				bindings = append(bindings, binding)
			}
		}
	}
	rights = map[string]bool{}
	for _, binding := range bindings {
		if slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind == "ServiceAccount" && s.Name == account }) {
			scope := map[string]string{"RoleBinding": "at home", "ClusterRoleBinding": "everywhere"}[binding.Kind]
			spellOut(rights, scope, rules[binding.RoleRef.Kind+" "+binding.RoleRef.Name])
		}
	}
	return rights, account
}

// spellOut adds each right that rules grant.
func spellOut(rights map[string]bool, scope string, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		names := strings.Join(slices.Sorted(slices.Values(rule.ResourceNames)), ",")
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				rights[fmt.Sprintf("%s: %s %s", scope, verb, url)] = true
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					rights[fmt.Sprintf("%s: %s %s %s %s", scope, verb, group, resource, names)] = true
				}
			}
		}
	}
}
