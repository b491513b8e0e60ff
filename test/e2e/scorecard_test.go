//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// Every test that the bundle lists passes as a pod, those of operator-sdk and ours, and none has
// anything to suggest. It has the node to itself, since the last of them starts the operator anew.
func TestScorecard(t *testing.T) {
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(root, "bundle")
	results, printed, err := cluster.Scorecard(t.Context(), bundle)
	if err != nil {
		t.Fatal(err)
	}
	// What shows the results of all checks reads it there.
	if err := os.WriteFile(filepath.Join(root, "bin", "scorecard.json"), printed, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		t.Logf("%s %s: %s\n%s", r.Suite, r.Test, r.State, r.Log)
		if r.State != "pass" || len(r.Errors)+len(r.Suggestions) > 0 {
			t.Errorf("%s: %s, errors %q, suggestions %q", r.Test, r.State, r.Errors, r.Suggestions)
		}
	}
	content, err := os.ReadFile(filepath.Join(bundle, "tests", "scorecard", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Stages []struct {
			Tests []struct{} `json:"tests"`
		} `json:"stages"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, stage := range config.Stages {
		listed += len(stage.Tests)
	}
	if listed == 0 || len(results) != listed {
		t.Errorf("%d tests ran, the bundle lists %d", len(results), listed)
	}
}
