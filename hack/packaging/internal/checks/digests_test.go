package checks_test

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/bundle"
)

// A release with DIGESTS=1, the way make makes it, but with the images in a registry on this machine:
// everything is named by the digest that the registry has, and so the bundle says that it suits
// disconnected clusters.
func TestCase57DigestsOfPublishedImages(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	here := strings.TrimPrefix(server.URL, "http://")
	move := strings.NewReplacer("quay.io", here)
	digests := map[string]bool{}
	for _, image := range bundle.RelatedImages(readCSV(t, bundleDir())) {
		reference, err := name.ParseReference(move.Replace(image.Image))
		if err != nil {
			t.Fatal(err)
		}
		content, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(reference, content); err != nil {
			t.Fatal(err)
		}
		digest, err := content.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[reference.Context().Name()+"@"+digest.String()] = true
	}
	dir := pinned(t, move)
	csv := readCSV(t, dir)
	images := bundle.RelatedImages(csv)
	if len(images) != len(digests) || len(csv.Spec.RelatedImages) != len(digests) {
		t.Errorf("%d images are used and %d are listed, want %d", len(images), len(csv.Spec.RelatedImages), len(digests))
	}
	for _, image := range append(images, csv.Spec.RelatedImages...) {
		if !digests[image.Image] {
			t.Errorf("%s is %s, want one of %v", image.Name, image.Image, digests)
		}
	}
	if claimed := csv.Annotations["features.operators.openshift.io/disconnected"]; claimed != "true" {
		t.Errorf("disconnected is %q although all images are named by digest", claimed)
	}
	if out, err := exec.Command(program(t, "operator-sdk"), "bundle", "validate", dir, "--select-optional", "suite=operatorframework").CombinedOutput(); err != nil || bytes.Contains(out, []byte("level=warning")) {
		t.Errorf("operator-sdk bundle validate: %v: %s", err, out)
	}
}

// pinned makes the bundle as make does with DIGESTS=1, from manifests in which names are replaced.
func pinned(t *testing.T, names *strings.Replacer) (dir string) {
	t.Helper()
	work := t.TempDir()
	project, err := os.ReadFile(filepath.Join(root, "PROJECT"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "PROJECT"), project, 0o600); err != nil {
		t.Fatal(err)
	}
	manifests, err := exec.Command(program(t, "kustomize"), "build", filepath.Join(root, "config", "manifests")).Output()
	if err != nil {
		t.Fatal(err)
	}
	version := readCSV(t, bundleDir()).Spec.Version.String()
	generate := exec.Command(program(t, "operator-sdk"), "generate", "bundle", "-q", "--overwrite", "--use-image-digests",
		"--extra-service-accounts", "agentic-operator-metrics-reader", "--version", version,
		"--package", "agentic-operator", "--channels", "stable", "--default-channel", "stable")
	generate.Dir, generate.Stdin = work, strings.NewReader(names.Replace(string(manifests)))
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("operator-sdk generate bundle: %v: %s", err, out)
	}
	dir = filepath.Join(work, "bundle")
	icon, err := os.ReadFile(filepath.Join(root, "config", "manifests", "icon.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if err := bundle.Finish(dir, filepath.Join(work, "bundle.Dockerfile"), bundle.Facts{Icon: icon, Created: "2026-01-31"}); err != nil {
		t.Fatal(err)
	}
	return dir
}
