package checks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/bundle"
	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
)

// root is the top of the repository.
var root = filepath.Join("..", "..", "..", "..")

func bundleDir() string { return filepath.Join(root, "bundle") }

func bundlesDir() string { return filepath.Join(root, "catalog", "bundles") }

// everyBundle runs a test on the bundle being worked on and on every released one.
func everyBundle(t *testing.T, test func(t *testing.T, dir string)) {
	t.Helper()
	t.Run("next", func(t *testing.T) { test(t, bundleDir()) })
	for _, v := range released(t) {
		t.Run(v.String(), func(t *testing.T) { test(t, filepath.Join(bundlesDir(), v.String())) })
	}
}

func released(t *testing.T) []semver.Version {
	t.Helper()
	versions, err := catalog.Bundles(bundlesDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) == 0 {
		t.Fatal("no bundle has been released")
	}
	return versions
}

func readCSV(t *testing.T, dir string) *operators.ClusterServiceVersion {
	t.Helper()
	path, err := bundle.CSVPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	csv, err := bundle.ReadCSV(path)
	if err != nil {
		t.Fatal(err)
	}
	return csv
}

func load(t *testing.T, dir string) *manifests.Bundle {
	t.Helper()
	b, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// crds are the bundle's, by kind.
func crds(t *testing.T, dir string) map[string]*apiextensions.CustomResourceDefinition {
	t.Helper()
	found := map[string]*apiextensions.CustomResourceDefinition{}
	for _, crd := range load(t, dir).V1CRDs {
		found[crd.Spec.Names.Kind] = crd
	}
	return found
}

// schema is that of the one version of a CRD.
func schema(t *testing.T, crd *apiextensions.CustomResourceDefinition) apiextensions.JSONSchemaProps {
	t.Helper()
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s has %d versions; these tests know one", crd.Name, len(crd.Spec.Versions))
	}
	return *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func examples(t *testing.T, csv *operators.ClusterServiceVersion) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &objects); err != nil {
		t.Fatalf("alm-examples: %v", err)
	}
	return objects
}

func annotations(t *testing.T, dir string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "metadata", "annotations.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		t.Fatal(err)
	}
	return file.Annotations
}
