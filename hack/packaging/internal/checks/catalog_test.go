package checks_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
)

func template(t *testing.T) *catalog.Template {
	t.Helper()
	loaded, err := catalog.Load(filepath.Join(root, "catalog", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestCase52TheGraphStrandsNobody(t *testing.T) {
	for _, problem := range catalog.Problems(template(t)) {
		t.Error(problem)
	}
}

// The graph with the version being worked on in it must be sound as well: it is the next release.
func TestCase52TheNextReleaseStrandsNobody(t *testing.T) {
	next, v := template(t), readCSV(t, bundleDir()).Spec.Version.Version
	if err := next.Release(v, catalog.Channels(v)); err != nil {
		t.Fatal(err)
	}
	for _, problem := range catalog.Problems(next) {
		t.Error(problem)
	}
}

// What a bundle says of the version before it is what the catalog says.
func TestCase52BundlesAgreeWithTheGraph(t *testing.T) {
	graph := template(t)
	everyBundle(t, func(t *testing.T, dir string) {
		csv := readCSV(t, dir)
		want, err := graph.Before(catalog.Candidate, csv.Spec.Version.Version)
		if err != nil {
			t.Fatal(err)
		}
		if csv.Spec.Replaces != want.Replaces || csv.Annotations["olm.skipRange"] != want.SkipRange {
			t.Errorf("replaces %q, skipRange %q; the graph has %q and %q", csv.Spec.Replaces, csv.Annotations["olm.skipRange"], want.Replaces, want.SkipRange)
		}
	})
}

func TestCase52EveryReleasedBundleIsInTheCatalog(t *testing.T) {
	versions, err := template(t).Versions(catalog.Candidate)
	if err != nil {
		t.Fatal(err)
	}
	kept := released(t)
	if len(kept) != len(versions) {
		t.Fatalf("the catalog has %v, kept are %v", versions, kept)
	}
	for i := range kept {
		if !kept[i].EQ(versions[i]) {
			t.Errorf("the catalog has %s, kept is %s", versions[i], kept[i])
		}
	}
}

func TestCase52OPMAcceptsEveryFormOfTheCatalog(t *testing.T) {
	v := readCSV(t, bundleDir()).Spec.Version.Version
	oldest := released(t)[0]
	for name, form := range map[string]catalog.Form{"images": catalog.Images, "inline": catalog.Inline} {
		for cut, last := range map[string]*semver.Version{"all": nil, "oldest": &oldest} {
			t.Run(name+" "+cut, func(t *testing.T) {
				from := catalog.Source{OPM: program(t, "opm"), Template: template(t), Bundles: bundlesDir(), Next: bundleDir(), NextVersion: v, Last: last}
				if err := from.Template.Release(v, catalog.Channels(v)); err != nil {
					t.Fatal(err)
				}
				if err := from.Template.Deprecate(oldest, "use a newer version"); err != nil {
					t.Fatal(err)
				}
				rendered, err := catalog.Render(context.Background(), from, form)
				if err != nil {
					t.Fatal(err)
				}
				if want := map[catalog.Form]string{catalog.Images: "olm.csv.metadata", catalog.Inline: "olm.bundle.object"}[form]; !bytes.Contains(rendered, []byte(want)) {
					t.Errorf("the catalog holds no %s", want)
				}
				if !bytes.Contains(rendered, []byte("olm.deprecations")) || !bytes.Contains(rendered, []byte("use a newer version")) {
					t.Error("the catalog does not tell that the oldest version is deprecated")
				}
				if published := form == catalog.Images; published && bytes.Contains(rendered, []byte("olm.bundle.object")) {
					t.Error("published catalogs must not hold olm.bundle.object")
				}
				dir := filepath.Join(t.TempDir(), catalog.Package)
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), rendered, 0o644); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command(program(t, "opm"), "validate", filepath.Dir(dir)).CombinedOutput(); err != nil {
					t.Errorf("opm validate: %v: %s", err, out)
				}
			})
		}
	}
}
