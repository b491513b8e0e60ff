package checks_test

import (
	"slices"
	"testing"

	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Every field of spec and status has a descriptor, so that the Console has a form for it, and no
// descriptor names a field that is not there.
func TestCase57DescriptorsAreTheFieldsOfTheSchema(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		kinds := crds(t, dir)
		owned := readCSV(t, dir).Spec.CustomResourceDefinitions.Owned
		if len(owned) != len(kinds) {
			t.Errorf("the CSV owns %d kinds, the bundle has %d", len(owned), len(kinds))
		}
		for i := range owned {
			crd := kinds[owned[i].Kind]
			if crd == nil {
				t.Errorf("%s is owned and has no CRD", owned[i].Kind)
				continue
			}
			compareDescriptors(t, &owned[i], schema(t, crd))
			if len(owned[i].Resources) == 0 {
				t.Errorf("%s: no resources", owned[i].Kind)
			}
		}
	})
}

func compareDescriptors(t *testing.T, owned *operators.CRDDescription, schema apiextensions.JSONSchemaProps) {
	t.Helper()
	have := map[string][]string{"spec": nil, "status": nil}
	for _, d := range owned.SpecDescriptors {
		have["spec"] = append(have["spec"], d.Path)
		complete(t, owned.Kind+" spec."+d.Path, d.DisplayName, d.Description, d.XDescriptors)
	}
	for _, d := range owned.StatusDescriptors {
		have["status"] = append(have["status"], d.Path)
		complete(t, owned.Kind+" status."+d.Path, d.DisplayName, d.Description, d.XDescriptors)
	}
	for part, paths := range have {
		want := fields("", schema.Properties[part])
		for _, path := range want {
			if !slices.Contains(paths, path) {
				t.Errorf("%s: %s.%s has no descriptor; add the marker +operator-sdk:csv:customresourcedefinitions", owned.Kind, part, path)
			}
		}
		for _, path := range paths {
			if !slices.Contains(want, path) {
				t.Errorf("%s: the descriptor of %s.%s describes no field", owned.Kind, part, path)
			}
		}
	}
}

func complete(t *testing.T, path, name, description string, x []string) {
	t.Helper()
	if name == "" || description == "" || len(x) == 0 {
		t.Errorf("%s: displayName %q, description %q, x-descriptors %q; none may be empty", path, name, description, x)
	}
}

// fields lists the fields below a schema in the notation of descriptors: a.b and a[0].b. The
// inside of conditions is Kubernetes' own and drawn by the Console without descriptors.
func fields(prefix string, s apiextensions.JSONSchemaProps) []string {
	var paths []string
	for name, p := range s.Properties {
		path := prefix + name
		paths = append(paths, path)
		switch {
		case path == "conditions":
		case p.Items != nil && p.Items.Schema != nil:
			paths = append(paths, fields(path+"[0].", *p.Items.Schema)...)
		default:
			paths = append(paths, fields(path+".", p)...)
		}
	}
	return paths
}
