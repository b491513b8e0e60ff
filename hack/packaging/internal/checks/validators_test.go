package checks_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/operator-framework/api/pkg/validation"
	validators "github.com/operator-framework/api/pkg/validation/interfaces"
)

// silent are all validators of the library except the one of architectures, which asks docker for the
// images: see TestTheValidatorOfArchitecturesFindsNothing.
var silent = []struct {
	name      string
	validator validators.Validator
}{
	{"PackageManifest", validation.PackageManifestValidator},
	{"ClusterServiceVersion", validation.ClusterServiceVersionValidator},
	{"CustomResourceDefinition", validation.CustomResourceDefinitionValidator},
	{"Bundle", validation.BundleValidator},
	{"Object", validation.ObjectValidator},
	{"OperatorGroup", validation.OperatorGroupValidator},
	{"OperatorHubV2", validation.OperatorHubV2Validator},
	{"StandardCapabilities", validation.StandardCapabilitiesValidator},
	{"StandardCategories", validation.StandardCategoriesValidator},
	{"AlphaDeprecatedAPIs", validation.AlphaDeprecatedAPIsValidator},
	{"GoodPractices", validation.GoodPracticesValidator},
}

// Every validator of the library, those that operator-sdk does not call included, must be silent.
func TestCase57EveryValidatorIsSilent(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		b := load(t, dir)
		objects := b.ObjectsToValidate()
		for _, o := range b.Objects {
			objects = append(objects, o)
		}
		said := 0
		for _, v := range silent {
			t.Run(v.name, func(t *testing.T) {
				for _, r := range v.validator.Validate(objects...) {
					said++
					for _, e := range append(r.Errors, r.Warnings...) {
						t.Errorf("%s: %s: %s", r.Name, e.Level, e.Detail)
					}
				}
			})
		}
		if said == 0 {
			t.Fatal("no validator said anything at all")
		}
	})
}

// operator-sdk has validators of its own, and an older library.
func TestCase57OperatorSDKFindsNothing(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		for _, selected := range []string{"suite=operatorframework", "name=operatorhub", "name=community", "name=good-practices"} {
			t.Run(selected, func(t *testing.T) { operatorSDK(t, dir, selected) })
		}
	})
}

// engine answers in the place of docker what it would of images that are built for all architectures
// that we name.
const engine = `#!/bin/sh
[ "$1" = manifest ] || exit 0
echo '{"manifests":['
for arch in amd64 arm64 ppc64le; do echo "{\"platform\":{\"os\":\"linux\",\"architecture\":\"$arch\"}},"; done
echo '{"platform":{"os":"linux","architecture":"s390x"}}]}'
`

// The validator of architectures compares labels and node affinity with the images.
func TestTheValidatorOfArchitecturesFindsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(engine), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	everyBundle(t, func(t *testing.T, dir string) { operatorSDK(t, dir, "name=multiarch") })
}

func operatorSDK(t *testing.T, dir, selected string, more ...string) {
	t.Helper()
	var out, problems bytes.Buffer
	args := append([]string{"bundle", "validate", dir, "-o", "json-alpha1"}, more...)
	if selected != "" {
		args = append(args, "--select-optional", selected)
	}
	cmd := exec.Command(program(t, "operator-sdk"), args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	var result struct {
		Passed  bool `json:"passed"`
		Outputs []struct{ Type, Message string }
	}
	if e := json.Unmarshal(out.Bytes(), &result); e != nil {
		t.Fatalf("%s: %v: %s %s", selected, errors.Join(err, e), out.String(), problems.String())
	}
	if !result.Passed {
		t.Errorf("%s: not passed", selected)
	}
	for _, o := range result.Outputs {
		if selected == "name=operatorhub" || selected == "name=community" {
			// These two tell of their own deprecation, whatever the bundle.
			if bytes.Contains([]byte(o.Message), []byte("is deprecated")) || bytes.Contains([]byte(o.Message), []byte("has been deprecated")) {
				continue
			}
		}
		t.Errorf("%s: %s: %s", selected, o.Type, o.Message)
	}
}

// program is one that make packaging-tools builds.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing; build it with: make packaging-tools (%v)", name, err)
	}
	return path
}
