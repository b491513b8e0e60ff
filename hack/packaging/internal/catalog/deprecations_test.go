package catalog_test

import (
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
)

// chain is a catalog with three versions.
func chain(t *testing.T) *catalog.Template {
	t.Helper()
	graph := &catalog.Template{Objects: []catalog.Object{{Schema: "olm.package", DefaultChannel: "stable"}}}
	for _, text := range []string{"0.1.0", "0.2.0", "0.3.0"} {
		v := semver.MustParse(text)
		if err := graph.Release(v, catalog.Channels(v)); err != nil {
			t.Fatal(err)
		}
	}
	return graph
}

func TestDeprecate(t *testing.T) {
	graph := chain(t)
	for _, message := range []string{"leave it", "use 0.3.0"} {
		if err := graph.Deprecate(semver.MustParse("0.1.0"), message); err != nil {
			t.Fatal(err)
		}
	}
	if err := graph.Deprecate(semver.MustParse("0.2.0"), "use 0.3.0 as well"); err != nil {
		t.Fatal(err)
	}
	last := graph.Objects[len(graph.Objects)-1]
	if last.Schema != "olm.deprecations" || last.Package != catalog.Package || len(last.Entries) != 2 || last.Entries[0].Message != "use 0.3.0" {
		t.Errorf("the catalog ends with %+v", last)
	}
	if problems := catalog.Problems(graph); len(problems) > 0 {
		t.Error(problems)
	}
	if err := graph.Deprecate(semver.MustParse("0.4.0"), "never released"); err == nil {
		t.Error("a version that was never released was deprecated")
	}
	if err := graph.Deprecate(semver.MustParse("0.1.0"), " "); err == nil {
		t.Error("a version was deprecated without a word")
	}
}

func TestProblemsOfDeprecations(t *testing.T) {
	for _, c := range []struct{ schema, name, message, want string }{
		{"olm.bundle", "agentic-operator.v0.1.0", "use 0.3.0", ""},
		{"olm.channel", "stable-v0", "use stable", ""},
		{"olm.package", "", "use another operator", ""},
		{"olm.bundle", "agentic-operator.v0.1.0", "", "no message"},
		{"olm.bundle", "agentic-operator.v0.9.0", "use 0.3.0", "in no channel"},
		{"olm.bundle", "agentic-operator.v0.3.0", "use nothing", "nothing is there to go to"},
		{"olm.channel", "fast", "use stable", "no channel"},
		{"olm.csv", "x", "y", "nothing that can be deprecated"},
	} {
		graph := chain(t)
		graph.Objects = append(graph.Objects, catalog.Object{Schema: "olm.deprecations", Package: catalog.Package, Entries: []catalog.Entry{
			{Reference: map[string]string{"schema": c.schema, "name": c.name}, Message: c.message},
		}})
		got := strings.Join(catalog.Problems(graph), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
