package checks_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/bundle"
)

type relatedImage = operators.RelatedImage

// Every image that the operator consists of or can start by itself is one a mirror learns of.
func TestCase57RelatedImagesAreComplete(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		csv := readCSV(t, dir)
		if want := bundle.RelatedImages(csv); !slices.Equal(csv.Spec.RelatedImages, want) {
			t.Errorf("relatedImages are %v, want %v", csv.Spec.RelatedImages, want)
		}
		names := make([]string, 0, len(csv.Spec.RelatedImages))
		for _, i := range csv.Spec.RelatedImages {
			names = append(names, i.Name)
		}
		for _, want := range []string{"operator", "runner", "state-sync"} {
			if !slices.Contains(names, want) {
				t.Errorf("relatedImages lack %q", want)
			}
		}
	})
}

// The default images in the operator's code are the ones of the manifests: a mirror that has the
// latter has all.
func TestCase57NoImageIsNamedInTheCodeAlone(t *testing.T) {
	csv := readCSV(t, bundleDir())
	settings, err := os.ReadFile(filepath.Join(root, "internal", "config", "settings.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.FieldsFunc(string(settings), func(r rune) bool { return r == '"' || r == '\n' }) {
		if strings.HasPrefix(word, "quay.io/") && !slices.ContainsFunc(csv.Spec.RelatedImages, func(i relatedImage) bool { return i.Image == word }) {
			t.Errorf("the code names %s, relatedImages do not", word)
		}
	}
}

// Every image that the bundle hands to the operator for mirrors is one that the operator reads.
func TestCase57TheOperatorReadsTheRelatedImages(t *testing.T) {
	settings, err := os.ReadFile(filepath.Join(root, "internal", "config", "settings.go"))
	if err != nil {
		t.Fatal(err)
	}
	handed := 0
	for _, d := range readCSV(t, bundleDir()).Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for i := range d.Spec.Template.Spec.Containers {
			for _, e := range d.Spec.Template.Spec.Containers[i].Env {
				if !strings.HasPrefix(e.Name, "RELATED_IMAGE_") {
					continue
				}
				handed++
				if !bytes.Contains(settings, []byte(`Env: "`+e.Name+`"`)) {
					t.Errorf("the bundle sets %s, which is no setting of the operator", e.Name)
				}
			}
		}
	}
	if handed == 0 {
		t.Error("the bundle hands no image to the operator")
	}
}

const (
	// OLM puts a bundle's objects into an InstallPlan, of which etcd takes 1.5 MiB, and refuses a
	// bundle of more than 1 MiB compressed. Half is enough for us, and leaves room to grow.
	planBudget       = 512 << 10
	compressedBudget = 128 << 10
)

func TestCase57TheBundleIsSmall(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		files, err := filepath.Glob(filepath.Join(dir, "manifests", "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatal("no manifests", err)
		}
		var compressed bytes.Buffer
		archive, plain := gzip.NewWriter(&compressed), 0
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			plain += len(content)
			if _, err := archive.Write(content); err != nil {
				t.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		encoded := base64.StdEncoding.EncodedLen(compressed.Len())
		t.Logf("%d bytes, %d compressed and encoded", plain, encoded)
		if plain > planBudget || encoded > compressedBudget {
			t.Errorf("%d bytes (budget %d), %d compressed (budget %d)", plain, planBudget, encoded, compressedBudget)
		}
	})
}

// The Dockerfile of the operator's image has what preflight looks for.
func TestCase57TheOperatorImageIsFitForCatalogs(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/licenses/", "ubi9", "USER 65532", `name="`, `vendor="`, `version="`, `release="`, `summary="`, `description="`, `maintainer="`} {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("the Dockerfile lacks %s", want)
		}
	}
	if bytes.Contains(bytes.ToLower(content), []byte("red hat")) {
		t.Error("the Dockerfile must not name Red Hat's trade mark in labels")
	}
}
