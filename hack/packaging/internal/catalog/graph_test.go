package catalog_test

import (
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
)

// entry is a version that replaces another one.
func entry(version, replaces string, more ...func(*catalog.Entry)) catalog.Entry {
	e := catalog.Entry{Name: "agentic-operator.v" + version}
	if replaces != "" {
		e.Replaces = "agentic-operator.v" + replaces
	}
	for _, change := range more {
		change(&e)
	}
	return e
}

func skipRange(r string) func(*catalog.Entry) {
	return func(e *catalog.Entry) { e.SkipRange = r }
}

func skips(version string) func(*catalog.Entry) {
	return func(e *catalog.Entry) { e.Skips = append(e.Skips, "agentic-operator.v"+version) }
}

func TestCase52ProblemsOfAGraph(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []catalog.Entry
		want    string // part of the problem; empty for none
	}{
		{"one", []catalog.Entry{entry("0.1.0", "")}, ""},
		{"a chain", []catalog.Entry{entry("0.1.0", ""), entry("0.2.0", "0.1.0"), entry("0.3.0", "0.2.0", skipRange(">=0.1.0 <0.3.0"))}, ""},
		{"a skip", []catalog.Entry{entry("0.1.0", ""), entry("0.2.0", "0.1.0"), entry("0.2.1", "0.1.0", skips("0.2.0"))}, ""},
		{"two heads", []catalog.Entry{entry("0.1.0", ""), entry("0.2.0", "0.1.0"), entry("0.3.0", "0.1.0")}, "the heads are"},
		{"a circle", []catalog.Entry{entry("0.1.0", "0.2.0"), entry("0.2.0", "0.1.0")}, "not older"},
		{"a missing one", []catalog.Entry{entry("0.2.0", "0.1.0")}, "not in the channel"},
		{"a range with itself", []catalog.Entry{entry("0.1.0", ""), entry("0.2.0", "0.1.0", skipRange(">=0.1.0 <=0.2.0"))}, "holds the version itself"},
		{"no range", []catalog.Entry{entry("0.1.0", ""), entry("0.2.0", "0.1.0", skipRange("older"))}, "skipRange"},
		{"twice", []catalog.Entry{entry("0.1.0", ""), entry("0.1.0", "")}, "twice"},
		{"a strange name", []catalog.Entry{{Name: "other.v1"}}, "is no agentic-operator"},
		{"an island of two", []catalog.Entry{entry("0.1.0", "0.2.0"), entry("0.2.0", "0.1.0"), entry("0.3.0", "")}, "stranded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			graph := &catalog.Template{Objects: []catalog.Object{
				{Schema: "olm.package", DefaultChannel: "stable"},
				{Schema: "olm.channel", Name: "stable", Entries: c.entries},
			}}
			got := strings.Join(catalog.Problems(graph), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestReleaseChainsVersions(t *testing.T) {
	graph := &catalog.Template{Objects: []catalog.Object{{Schema: "olm.package", DefaultChannel: "stable"}}}
	for _, text := range []string{"0.1.0", "0.2.0-rc.1", "0.2.0", "1.0.0"} {
		v := semver.MustParse(text)
		if err := graph.Release(v, catalog.Channels(v)); err != nil {
			t.Fatal(err)
		}
	}
	if problems := catalog.Problems(graph); len(problems) > 0 {
		t.Error(problems)
	}
	for channel, want := range map[string]string{"candidate": "agentic-operator.v0.2.0", "stable": "agentic-operator.v0.2.0", "stable-v1": ""} {
		entries := graph.Channel(channel).Entries
		if got := entries[len(entries)-1].Replaces; got != want {
			t.Errorf("%s: 1.0.0 replaces %q, want %q", channel, got, want)
		}
	}
	if got := graph.Channel("stable").Entries[1].Replaces; got != "agentic-operator.v0.1.0" {
		t.Errorf("0.2.0 replaces %q in stable, which never had the candidate", got)
	}
	if err := graph.Release(semver.MustParse("0.3.0"), []string{"candidate"}); err == nil {
		t.Error("an older version was released after a newer one")
	}
}

func TestChangelog(t *testing.T) {
	log := catalog.Changelog("# Changes\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2026-01-02)\n\n- Old.\n")
	next, err := log.Release("0.2.0", "2026-02-03", []string{"A commit"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Changes\n\n## Unreleased\n\n## 0.2.0 (2026-02-03)\n\n- New.\n\n## 0.1.0 (2026-01-02)\n\n- Old.\n"; string(next) != want {
		t.Errorf("got %q\nwant %q", next, want)
	}
	for version, want := range map[string]string{"0.2.0": "2026-02-03", "0.1.0": "2026-01-02", "0.3.0": "2026-02-03"} {
		if day, err := next.Date(version); err != nil || day != want {
			t.Errorf("%s: %q, %v; want %s", version, day, err, want)
		}
	}
	if _, err := next.Release("0.3.0", "2026-03-04", nil); err == nil {
		t.Error("a release without any change was accepted")
	}
	if third, err := next.Release("0.3.0", "2026-03-04", []string{"A commit"}); err != nil || !strings.Contains(string(third), "- A commit") {
		t.Errorf("got %q, %v", third, err)
	}
}
