package v1alpha1_test

import (
	"testing"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

func TestRepoName(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com/team/app.git":   "app",
		"https://example.com/team/app":       "app",
		"https://example.com/team/app/":      "app",
		"https://example.com/team/app.git/":  "app",
		"https://example.com/team/.github":   ".github",
		"git@example.com:team/app.git":       "app",
		"git@example.com:app.git":            "app",
		"ssh://git@example.com:22/team/a.b":  "a.b",
		"https://example.com/team/app.git.x": "app.git.x",
		"app":                                "app",
		"":                                   "",
	} {
		if got := (&v1alpha1.Repo{URL: url}).Name(); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}
