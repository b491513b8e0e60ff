package checks_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// Whoever begins with any released version (startingCSV of a Subscription), in any channel, gets that one
// and from it the newest in one step: by OLM's rules for the head of the channel, today and with the
// version being worked on released.
func TestCase52EveryStartLeadsToTheHeadAtOnce(t *testing.T) {
	next, v := template(t), readCSV(t, bundleDir()).Spec.Version.Version
	if err := next.Release(v, catalog.Channels(v)); err != nil {
		t.Fatal(err)
	}
	for name, graph := range map[string]*catalog.Template{"released": template(t), "next": next} {
		for _, start := range released(t) {
			t.Run(name+" from "+start.String(), func(t *testing.T) {
				for _, channel := range catalog.Channels(start) {
					startsAndJumps(t, graph.Channel(channel), start)
				}
			})
		}
	}
}

func startsAndJumps(t *testing.T, channel *catalog.Object, start semver.Version) {
	t.Helper()
	var head catalog.Entry
	var newest semver.Version
	there := false
	for _, e := range channel.Entries {
		v, err := catalog.Version(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		there = there || v.EQ(start)
		if v.GT(newest) {
			head, newest = e, v
		}
	}
	if !there {
		t.Errorf("channel %s does not have %s: nobody can begin with it", channel.Name, start)
	}
	if start.EQ(newest) {
		return
	}
	inRange := func(semver.Version) bool { return false }
	if head.SkipRange != "" {
		var err error
		if inRange, err = semver.ParseRange(head.SkipRange); err != nil {
			t.Fatal(err)
		}
	}
	if head.Replaces != catalog.Name(start) && !slices.Contains(head.Skips, catalog.Name(start)) && !inRange(start) {
		t.Errorf("channel %s: %s is not reached from %s at once: %+v", channel.Name, newest, start, head)
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
