package v1alpha1_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// schema is the schema of a generated custom resource definition.
func schema(t *testing.T, plural string) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../config/crd/bases/vteam.ambient-code_" + plural + ".yaml")
	if err != nil {
		t.Fatalf("%v; write it with: make generate", err)
	}
	crd := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	versions, found, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil || !found || len(versions) != 1 {
		t.Fatalf("%s has %d versions: %v", plural, len(versions), err)
	}
	version, ok := versions[0].(map[string]any)
	if !ok {
		t.Fatalf("the version of %s is %T", plural, versions[0])
	}
	root, found, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	if err != nil || !found {
		t.Fatalf("%s has no schema: %v", plural, err)
	}
	return root
}

// visit walks over every field of a schema, those inside lists and maps too.
func visit(path string, node map[string]any, look func(path string, node map[string]any)) {
	if properties, ok := node["properties"].(map[string]any); ok {
		for name, child := range properties {
			if child, ok := child.(map[string]any); ok {
				look(path+"."+name, child)
				visit(path+"."+name, child, look)
			}
		}
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if child, ok := node[inner].(map[string]any); ok {
			visit(path+"[]", child, look)
		}
	}
}

var plurals = []string{"agenticsessions", "projectsettings"}

func TestEveryFieldHasADescription(t *testing.T) {
	for _, plural := range plurals {
		root := schema(t, plural)
		if description, ok := root["description"].(string); !ok || description == "" {
			t.Errorf("%s has no description", plural)
		}
		fields := 0
		visit(plural, root, func(path string, node map[string]any) {
			fields++
			if description, ok := node["description"].(string); (!ok || strings.TrimSpace(description) == "") && path != plural+".metadata" {
				t.Errorf("%s has no description", path)
			}
		})
		if fields < 20 {
			t.Errorf("%s: only %d fields were looked at", plural, fields)
		}
	}
}

// open are the objects whose content is meant to be anything.
var open = []string{".metadata", ".mcpServers.custom"}

func TestCase69TheSchemasAreClosed(t *testing.T) {
	for _, plural := range plurals {
		visit(plural, schema(t, plural), func(path string, node map[string]any) {
			if slices.ContainsFunc(open, func(suffix string) bool { return strings.HasSuffix(path, suffix) }) {
				return
			}
			if keep, ok := node["x-kubernetes-preserve-unknown-fields"].(bool); ok && keep {
				t.Errorf("%s keeps fields that nobody knows", path)
			}
			if kind, ok := node["type"].(string); ok && kind == "object" && node["properties"] == nil && node["additionalProperties"] == nil {
				t.Errorf("%s is an object without fields", path)
			}
		})
	}
}

func TestCase69ThePhasesOfTheAPIAreTheMachines(t *testing.T) {
	phase, found, err := unstructured.NestedMap(schema(t, "agenticsessions"), "properties", "status", "properties", "phase")
	if err != nil || !found {
		t.Fatalf("status.phase is not in the schema: %v", err)
	}
	var want []any
	for _, info := range v1alpha1.Phases {
		want = append(want, string(info.Phase))
	}
	if got := phase["enum"]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("status.phase may be %v; the machine has %v", got, want)
	}
}

func TestEveryRuleOfTheSchemasSaysWhatIsWrong(t *testing.T) {
	rules := 0
	check := func(path string, node map[string]any) {
		validations, ok := node["x-kubernetes-validations"].([]any)
		if !ok {
			return
		}
		for _, v := range validations {
			rules++
			if rule, ok := v.(map[string]any); !ok || rule["message"] == nil || rule["message"] == "" {
				t.Errorf("%s: a rule has no message: %v", path, v)
			}
		}
	}
	for _, plural := range plurals {
		root := schema(t, plural)
		check(plural, root)
		visit(plural, root, check)
	}
	if rules == 0 {
		t.Error("no rule was found")
	}
}
