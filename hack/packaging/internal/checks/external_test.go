package checks_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/external"
)

// operator-sdk runs our own validator beside its own, on what it is for: it is silent about our bundles.
func TestCase57OurValidatorFindsNothing(t *testing.T) {
	validator := filepath.Join(t.TempDir(), "validator")
	build := exec.Command("go", "build", "-o", validator, "./validator")
	build.Dir = filepath.Join(root, "hack", "packaging")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	everyBundle(t, func(t *testing.T, dir string) { operatorSDK(t, dir, "", "--alpha-select-external", validator) })
}

// It finds what is wrong in a bundle that operator-sdk takes.
func TestCase57OurValidatorFindsMistakes(t *testing.T) {
	for want, change := range map[string][2]string{
		`is "maybe": answer true or false`: {`features.operators.openshift.io/csi: "false"`, `features.operators.openshift.io/csi: "maybe"`},
		"is not named by digest":           {`features.operators.openshift.io/disconnected: "false"`, `features.operators.openshift.io/disconnected: "true"`},
		"is used and not listed":           {"  relatedImages:\n", "  relatedImages:\n  - {image: example.com/a:b, name: c}\n  others:\n"},
		"ProjectSettings projectsettings":  {`"groupAccess": [`, `"groupAccess": 7, "others": [`},
		"must have the form https://host/": {`"url": "https://github.com`, `"url": "ftp://github.com`},
		"is of no kind of the bundle":      {`"kind": "ProjectSettings"`, `"kind": "Settings"`},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(bundleDir())); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "manifests", "agentic-operator.clusterserviceversion.yaml")
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.ReplaceAll(content, []byte(change[0]), []byte(change[1]))
		if bytes.Equal(changed, content) {
			t.Fatalf("the bundle does not hold %s", change[0])
		}
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		result, err := external.Validate(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, e := range result.Errors {
			found += e.Error() + "\n"
		}
		if !strings.Contains(found, want) {
			t.Errorf("with %s the validator says %q, want %q", change[1], found, want)
		}
	}
}
