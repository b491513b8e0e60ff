package publish_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
	"github.com/ambient-code/agentic-operator/hack/packaging/internal/publish"
)

// What the pipelines of the community's catalogs read of ci.yaml and release-config.yaml; a word that
// they do not know fails a strict reading.
type (
	ciFile struct {
		UpdateGraph string   `json:"updateGraph"`
		Reviewers   []string `json:"reviewers"`
		FBC         struct {
			Enabled                  bool   `json:"enabled"`
			VersionPromotionStrategy string `json:"version_promotion_strategy"`
			CatalogMapping           []struct {
				TemplateName string   `json:"template_name"`
				CatalogNames []string `json:"catalog_names"`
				Type         string   `json:"type"`
			} `json:"catalog_mapping"`
		} `json:"fbc"`
	}
	releaseFile struct {
		CatalogTemplates []releasePlace `json:"catalog_templates"`
	}
	releasePlace struct {
		TemplateName string   `json:"template_name"`
		Channels     []string `json:"channels"`
		Replaces     string   `json:"replaces"`
		Skips        []string `json:"skips"`
		SkipRange    string   `json:"skipRange"`
	}
)

var root = filepath.Join("..", "..", "..", "..")

func read(t *testing.T, into any, path ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		t.Fatalf("%s: %v", filepath.Join(path...), err)
	}
}

func written(t *testing.T, template *catalog.Template, bundles string) (base string) {
	t.Helper()
	to := t.TempDir()
	if err := publish.Write(to, template, bundles); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "operators", catalog.Package)
}

func unique(t *testing.T, what string, words []string) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(words))
	if len(words) == 0 || slices.Contains(words, "") || len(slices.Compact(sorted)) != len(words) {
		t.Errorf("%s are %q: want one or more, none empty, none twice", what, words)
	}
}

// The pipelines' schema of ci.yaml; that a template and a catalog are mapped once; and that the
// templates are there.
func TestCase57TheShapeOfCI(t *testing.T) {
	template, err := catalog.Load(filepath.Join(root, "catalog", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	base := written(t, template, filepath.Join(root, "catalog", "bundles"))
	var ci ciFile
	read(t, &ci, base, "ci.yaml")
	if !slices.Contains([]string{"replaces-mode", "semver-mode"}, ci.UpdateGraph) || !ci.FBC.Enabled {
		t.Errorf("ci.yaml is %+v", ci)
	}
	if !slices.Contains([]string{"never", "always", "review-needed"}, ci.FBC.VersionPromotionStrategy) {
		t.Errorf("the strategy is %q", ci.FBC.VersionPromotionStrategy)
	}
	unique(t, "the reviewers", ci.Reviewers)
	var templates, catalogs []string
	for _, m := range ci.FBC.CatalogMapping {
		templates, catalogs = append(templates, m.TemplateName), append(catalogs, m.CatalogNames...)
		var graph catalog.Template
		read(t, &graph, base, "catalog-templates", m.TemplateName)
		if m.Type != "olm.template.basic" || graph.Schema != m.Type {
			t.Errorf("%s is of type %q and mapped as %q", m.TemplateName, graph.Schema, m.Type)
		}
	}
	unique(t, "the templates", templates)
	unique(t, "the catalogs", catalogs)
	files, err := os.ReadDir(filepath.Join(base, "catalog-templates"))
	if err != nil || len(files) != len(templates) {
		t.Errorf("%d templates are written, mapped are %v: %v", len(files), templates, err)
	}
}

// The pipelines' schema of release-config.yaml: each version is in a channel of a mapped template, says
// of each channel what the graph says of it, and what it replaces is published as well.
func TestCase57TheShapeOfReleaseConfigs(t *testing.T) {
	template, err := catalog.Load(filepath.Join(root, "catalog", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	bundles := filepath.Join(root, "catalog", "bundles")
	versions, err := catalog.Bundles(bundles)
	if err != nil || len(versions) == 0 {
		t.Fatal(versions, err)
	}
	holdsReleases(t, written(t, template, bundles), template, versions)
}

// In channels that have a candidate, or that begin with a version, it replaces something else.
func TestCase57AReleaseReplacesAnotherInEachChannel(t *testing.T) {
	template := &catalog.Template{Schema: "olm.template.basic", Objects: []catalog.Object{{Schema: "olm.package", DefaultChannel: "stable"}}}
	bundles := t.TempDir()
	var versions []semver.Version
	for _, text := range []string{"0.1.0", "1.0.0-rc.1", "1.0.0"} {
		v := semver.MustParse(text)
		versions = append(versions, v)
		if err := template.Release(v, catalog.Channels(v)); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(bundles, text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	holdsReleases(t, written(t, template, bundles), template, versions)
}

func holdsReleases(t *testing.T, base string, template *catalog.Template, versions []semver.Version) {
	t.Helper()
	for _, v := range versions {
		var config releaseFile
		read(t, &config, base, v.String(), "release-config.yaml")
		told := map[string]releasePlace{}
		var channels []string
		for _, p := range config.CatalogTemplates {
			if p.TemplateName != "basic.yaml" {
				t.Errorf("%s names the template %q, which is not mapped", v, p.TemplateName)
			}
			channels = append(channels, p.Channels...)
			for _, channel := range p.Channels {
				told[channel] = p
			}
			for _, older := range append(slices.Clone(p.Skips), p.Replaces) {
				if older != "" && !slices.ContainsFunc(versions, func(o semver.Version) bool { return catalog.Name(o) == older }) {
					t.Errorf("%s replaces or skips %s, which is not published", v, older)
				}
			}
		}
		unique(t, "the channels of "+v.String(), channels)
		if !reflect.DeepEqual(slices.Sorted(slices.Values(channels)), slices.Sorted(slices.Values(catalog.Channels(v)))) {
			t.Errorf("%s is in %v, want %v", v, channels, catalog.Channels(v))
		}
		for _, channel := range channels {
			entries := template.Channel(channel).Entries
			at := slices.IndexFunc(entries, func(e catalog.Entry) bool { return e.Name == catalog.Name(v) })
			if at < 0 {
				t.Errorf("%s is not in channel %s of the graph", v, channel)
				continue
			}
			e, p := entries[at], told[channel]
			if p.Replaces != e.Replaces || p.SkipRange != e.SkipRange || !slices.Equal(p.Skips, e.Skips) {
				t.Errorf("%s in channel %s: %+v, the graph has %+v", v, channel, p, e)
			}
		}
	}
}
