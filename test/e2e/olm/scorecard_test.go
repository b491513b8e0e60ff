//go:build e2e

package olm

import (
	"os"
	"testing"

	"github.com/ambient-code/agentic-operator/test/rig/olm"
)

// anyVersion are our tests of an operator that hold for every version of it; the third one wants what
// is documented today.
const anyVersion = "test in (session-completes-test,sessions-survive-upgrade-test)"

// scorecardOfOldest runs what the oldest bundle lists and, on the operator that it installed, our tests
// that hold for each version.
func scorecardOfOldest(t *testing.T) {
	passes(t, versions[0], "")
	passes(t, current, anyVersion)
}

// scorecard runs every test that the bundle lists on the operator that OLM has installed from it, and
// keeps the report for the table of all checks.
func scorecard(t *testing.T) {
	if err := os.WriteFile(cluster.Tool("scorecard.json"), passes(t, current, ""), 0o644); err != nil {
		t.Fatal(err)
	}
}

// passes has operator-sdk run the tests of a bundle as pods in a namespace that enforces Pod Security
// "restricted", and returns its report. All pass and none has a suggestion. (Case 57.)
func passes(t *testing.T, v olm.Version, selector string) (report []byte) {
	t.Helper()
	results, report, err := cluster.Scorecard(t.Context(), v.Bundle, selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		t.Logf("%s %s: %s", r.Suite, r.Test, r.State)
		if r.State != "pass" || r.Suite == "ambient" { // operator-sdk's own print the whole bundle
			t.Log(r.Log)
		}
		if r.State != "pass" || len(r.Errors)+len(r.Suggestions) > 0 {
			t.Errorf("%s: %s, errors %q, suggestions %q", r.Test, r.State, r.Errors, r.Suggestions)
		}
	}
	return report
}
