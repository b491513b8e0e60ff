package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/session"
)

const root = "../.."

func rendered(t *testing.T) map[string]string {
	t.Helper()
	made, err := render(root)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestPagesAreTheSameEachTime(t *testing.T) {
	first := rendered(t)
	for range 5 {
		if again := rendered(t); !maps.Equal(first, again) {
			t.Fatal("the pages differ from one run to the next")
		}
	}
}

func TestEverythingIsOnItsPage(t *testing.T) {
	made := rendered(t)
	has := func(file string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(made[file], word) {
				t.Errorf("%s does not have %q", file, word)
			}
		}
	}
	for _, p := range v1alpha1.Phases {
		has("phases.md", "| `"+string(p.Phase)+"` |", p.Meaning)
	}
	for _, r := range session.Rules {
		has("rules.md", "| "+r.Name+" |")
	}
	for _, f := range session.Facts {
		has("rules.md", "| `"+string(f.Fact)+"` |", f.Meaning)
	}
	for _, w := range slices.Concat(v1alpha1.ConditionTypes, v1alpha1.ProjectConditionTypes) {
		has("conditions.md", "| `"+w.Word+"` |", w.Meaning)
	}
	for _, w := range slices.Concat(v1alpha1.Reasons, v1alpha1.ProjectReasons) {
		has("reasons.md", "| `"+w.Word+"` |", w.Meaning)
	}
	for _, k := range v1alpha1.Keys {
		has("annotations.md", "| `"+k.Key+"` |", k.Meaning)
	}
	for _, m := range slices.Concat(metrics.Table, metrics.Libraries) {
		has("metrics.md", "| `"+m.Name+"` |", m.Meaning)
	}
	for _, s := range config.Settings {
		has("configuration.md", s.Flag, s.Env, s.Meaning)
	}
	has("rbac.md", "serviceaccounts/token", "leases")
}

func TestTheDiagramHasEveryMove(t *testing.T) {
	drawn := diagram()
	for _, r := range session.Rules {
		for _, from := range r.From {
			edge := regexp.MustCompile(`(?m)^  ` + string(from) + ` --> ` + string(r.To) + `: .*\b` + r.Name + `\b`)
			if edge.MatchString(drawn) != (from != r.To) {
				t.Errorf("rule %s from %s to %s: drawn is %t\n%s", r.Name, from, r.To, edge.MatchString(drawn), drawn)
			}
		}
	}
}

func TestTablesAreRegular(t *testing.T) {
	separator := regexp.MustCompile(`(^|[^\\])\|`)
	for file, text := range rendered(t) {
		columns := 0
		for _, line := range strings.Split(text, "\n") {
			if !strings.HasPrefix(line, "|") {
				columns = 0
				continue
			}
			n := len(separator.FindAllString(line, -1))
			if columns == 0 {
				columns = n
			}
			if n != columns {
				t.Errorf("%s: a row of %d columns in a table of %d: %s", file, n-1, columns-1, line)
			}
			if strings.Contains(line, "|  |") {
				t.Errorf("%s: an empty cell: %s", file, line)
			}
		}
		if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") {
			t.Errorf("%s does not end with one line end", file)
		}
	}
}

func TestQueriesUseMetricsAndLabelsThatExist(t *testing.T) {
	described := metrics.Table
	labels := map[string][]string{}
	for _, m := range described {
		labels[m.Name] = m.Labels
		if m.Type == "histogram" {
			for suffix, more := range map[string][]string{"_bucket": {"le"}, "_sum": nil, "_count": nil} {
				labels[m.Name+suffix] = append(more, m.Labels...)
			}
		}
	}
	name := regexp.MustCompile(`ambient_[a-z_]+`)
	used := regexp.MustCompile(`by \(([a-z_, ]+)\)|\{([a-z_]+)=`)
	for _, q := range queries {
		var known []string
		for _, metric := range name.FindAllString(q.query, -1) {
			if labels[metric] == nil {
				t.Errorf("%q asks for %s, which is no metric", q.question, metric)
			}
			known = append(known, labels[metric]...)
		}
		for _, match := range used.FindAllStringSubmatch(q.query, -1) {
			for _, label := range strings.Split(match[1]+match[2], ", ") {
				if !slices.Contains(known, label) {
					t.Errorf("%q uses the label %s, which the metric does not have", q.question, label)
				}
			}
		}
	}
}

func TestARightWithoutAReasonIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "role.yaml")
	text := "kind: ClusterRole\nrules:\n- apiGroups: [\"\"]\n  resources: [nodes]\n  verbs: [get]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rightsOf("ClusterRole", file); err == nil || !strings.Contains(err.Error(), "nodes of core") {
		t.Errorf("the error is %v", err)
	}
}

func TestGenerateReplacesTheFolder(t *testing.T) {
	work := t.TempDir()
	if err := os.CopyFS(filepath.Join(work, "config", "rbac"), os.DirFS(filepath.Join(root, "config", "rbac"))); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(work, "docs", "reference", "stale.md")
	if err := os.MkdirAll(filepath.Dir(stale), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := generate(work); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(stale))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(rendered(t)) {
		t.Errorf("%d files were written, want %d without the stale one", len(files), len(rendered(t)))
	}
}
