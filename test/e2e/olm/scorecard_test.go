//go:build e2e

package olm

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// builtin are the tests that operator-sdk comes with.
var builtin = []string{
	"basic-check-spec-test", "olm-bundle-validation-test", "olm-crds-have-validation-test",
	"olm-crds-have-resources-test", "olm-spec-descriptors-test", "olm-status-descriptors-test",
}

// TestScorecard: operator-sdk runs its own tests of the bundle as pods, in a namespace that enforces Pod
// Security "restricted". All pass and none has a suggestion. The bundle's other tests, which need the
// operator beside them, have an end-to-end test of their own. (Case 57.)
func TestScorecard(t *testing.T) {
	t.Parallel()
	const own = "scorecard"
	namespaces(t, own)
	bundle := current.Bundle
	untar, err := lifecycle.PublishScorecard(t.Context(), scorecardImage(t, bundle))
	if err != nil {
		t.Fatal(err)
	}
	// It fails if a test fails; what it prints says which.
	scorecard := exec.CommandContext(t.Context(), cluster.Tool("operator-sdk"), "scorecard", bundle, "--kubeconfig", cluster.Kubeconfig,
		"--namespace", own, "--pod-security", "restricted", "--untar-image", untar, "--wait-time", soon.String(), "--output", "json",
		"--selector", "suite in (basic,olm)", "--test-output", t.TempDir())
	answer, failed := scorecard.Output()
	var tests struct {
		Items []struct {
			Spec struct {
				Labels map[string]string `json:"labels"`
			} `json:"spec"`
			Status struct {
				Results []struct {
					Name        string   `json:"name"`
					State       string   `json:"state"`
					Errors      []string `json:"errors"`
					Suggestions []string `json:"suggestions"`
				} `json:"results"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(answer, &tests); err != nil {
		t.Fatalf("reading what operator-sdk printed (%v): %v\n%s", failed, err, answer)
	}
	if failed != nil {
		t.Error(failed)
	}
	var ran []string
	for _, test := range tests.Items {
		ran = append(ran, test.Spec.Labels["test"])
		for _, r := range test.Status.Results {
			t.Logf("%-32s %s", r.Name, r.State)
			if r.State != "pass" || len(r.Errors) > 0 || len(r.Suggestions) > 0 {
				t.Errorf("%s: %s, errors %q, suggestions %q", r.Name, r.State, r.Errors, r.Suggestions)
			}
		}
	}
	for _, name := range builtin {
		if !slices.Contains(ran, name) {
			t.Errorf("%s was not run; run were %v", name, ran)
		}
	}
}

// scorecardImage is the image of operator-sdk's own tests, which come first.
func scorecardImage(t *testing.T, bundle string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(bundle, "tests", "scorecard", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Stages []struct {
			Tests []struct {
				Image string `json:"image"`
			} `json:"tests"`
		} `json:"stages"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	for _, stage := range config.Stages {
		for _, test := range stage.Tests {
			return test.Image
		}
	}
	t.Fatal("the bundle's scorecard has no test")
	return ""
}
