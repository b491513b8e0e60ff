package monitoring

import (
	"errors"
	"strings"
	"testing"
)

// TestCase65OneKeyIsSet: every other byte stays, comments and order too, and undoing gives the text
// back as it was.
func TestCase65OneKeyIsSet(t *testing.T) {
	const rest = "# retention by order of Kim\nprometheusK8s:\n  retention: 24h   # not more\n  volumeClaimTemplate: {spec: {resources: {requests: {storage: 40Gi}}}}\n\n\ntelemeterClient:\n  enabled: 'no'\n"
	for _, c := range []struct{ name, text, want, was, undone string }{
		{"nothing", "", "enableUserWorkload: true\n", WasAbsent, ""},
		{"comments only", "# none\n", "# none\nenableUserWorkload: true\n", WasAbsent, "# none\n"},
		{"a document mark", "---\na: 1\n", "---\na: 1\nenableUserWorkload: true\n", WasAbsent, "---\na: 1\n"},
		{"other keys", rest, rest + "enableUserWorkload: true\n", WasAbsent, rest},
		{"no line end", "a: 1", "a: 1\nenableUserWorkload: true\n", WasAbsent, "a: 1\n"},
		{"carriage returns", "a: 1\r\nb: 2\r\n", "a: 1\r\nb: 2\r\nenableUserWorkload: true\n", WasAbsent, "a: 1\r\nb: 2\r\n"},
		{"a nested key of the name", "a:\n  enableUserWorkload: false\n", "a:\n  enableUserWorkload: false\nenableUserWorkload: true\n", WasAbsent, "a:\n  enableUserWorkload: false\n"},
		{"false first", "enableUserWorkload:   false # later\n" + rest, "enableUserWorkload:   true # later\n" + rest, WasFalse, "enableUserWorkload:   false # later\n" + rest},
		{"false last", rest + "enableUserWorkload: false", rest + "enableUserWorkload: true", WasFalse, rest + "enableUserWorkload: false"},
		{"false in quotes of the key", `"enableUserWorkload": false`, `"enableUserWorkload": true`, WasFalse, `"enableUserWorkload": false`},
		{"false in a flow mapping", "{a: 1, enableUserWorkload: false}\n", "{a: 1, enableUserWorkload: true}\n", WasFalse, "{a: 1, enableUserWorkload: false}\n"},
		{"true", rest + "enableUserWorkload: true\n", rest + "enableUserWorkload: true\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, was, err := EnableUserWorkload(c.text)
			if err != nil || got != c.want || was != c.was {
				t.Fatalf("%q, %q, %v; want %q, %q", got, was, err, c.want, c.was)
			}
			if was == "" {
				return
			}
			if undone, err := UndoUserWorkload(got, was); err != nil || undone != c.undone {
				t.Errorf("undone it is %q, %v; want %q", undone, err, c.undone)
			}
		})
	}
}

func TestCase65WhatIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":             "a: [1\n",
		"a tab":               "a:\n\tb: 1\n",
		"a list":              "- a\n",
		"a word":              "retention\n",
		"a key twice":         "a: 1\na: 2\n",
		"several documents":   "a: 1\n---\nb: 2\n",
		"a flow mapping":      "{a: 1}\n",
		"an open block":       "a: |\n  text",
		"an end mark":         "a: 1\n...\n",
		"neither true or not": "enableUserWorkload: maybe\n",
		"false by reference":  "a: &x false\nenableUserWorkload: *x\n",
	} {
		got, was, err := EnableUserWorkload(text)
		if !errors.Is(err, errUnreadable) || got != "" || was != "" {
			t.Errorf("%s: %q, %q, %v; want a refusal", name, got, was, err)
			continue
		}
		if !strings.Contains(err.Error(), "oc -n openshift-monitoring edit configmap cluster-monitoring-config") {
			t.Errorf("%s: the refusal does not say what to do: %v", name, err)
		}
	}
}

// TestCase65OnlyOursIsUndone: what somebody has changed since is theirs.
func TestCase65OnlyOursIsUndone(t *testing.T) {
	for text, want := range map[string]string{
		"enableUserWorkload: false\nb: 1\n": "enableUserWorkload: false\nb: 1\n",
		"b: 1\n":                            "b: 1\n",
		"new: 1\nenableUserWorkload: true\nb: 2\n": "new: 1\nb: 2\n",
	} {
		if got, err := UndoUserWorkload(text, WasAbsent); err != nil || got != want {
			t.Errorf("%q becomes %q, %v; want %q", text, got, err, want)
		}
	}
	if got, err := UndoUserWorkload("{enableUserWorkload: true, b: 1}\n", WasAbsent); err == nil {
		t.Errorf("a line with more in it is removed: %q", got)
	}
}
