// Package publish writes the catalog in the layout that the community's catalogs
// (community-operators and community-operators-prod) take in: one folder for the operator, with
// one folder for every version in it.
package publish

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
)

// templateName is the file of the graph in the published layout.
const templateName = "basic.yaml"

// openShift are the catalogs that get the operator: those with Kubernetes 1.30 and later.
var openShift = []string{"v4.17", "v4.18", "v4.19", "v4.20", "v4.21", "v4.22"}

// ci is the operator's ci.yaml.
type ci struct {
	UpdateGraph string   `json:"updateGraph"`
	Reviewers   []string `json:"reviewers"`
	FBC         fbc      `json:"fbc"`
}

type fbc struct {
	Enabled                  bool      `json:"enabled"`
	VersionPromotionStrategy string    `json:"version_promotion_strategy"`
	CatalogMapping           []mapping `json:"catalog_mapping"`
}

type mapping struct {
	TemplateName string   `json:"template_name"`
	CatalogNames []string `json:"catalog_names"`
	Type         string   `json:"type"`
}

// releaseConfig is a version's release-config.yaml.
type releaseConfig struct {
	CatalogTemplates []place `json:"catalog_templates"`
}

type place struct {
	TemplateName string   `json:"template_name"`
	Channels     []string `json:"channels"`
	Replaces     string   `json:"replaces,omitempty"`
	Skips        []string `json:"skips,omitempty"`
	SkipRange    string   `json:"skipRange,omitempty"`
}

// Write writes the operator's folder under dir. Files that are there are replaced, so that a
// second run changes nothing.
func Write(dir string, t *catalog.Template, bundles string) error {
	base := filepath.Join(dir, "operators", catalog.Package)
	settings := ci{UpdateGraph: "replaces-mode", Reviewers: []string{"ambient-code"}, FBC: fbc{
		Enabled: true, VersionPromotionStrategy: "never",
		CatalogMapping: []mapping{{TemplateName: templateName, CatalogNames: openShift, Type: "olm.template.basic"}},
	}}
	if err := put(filepath.Join(base, "ci.yaml"), settings); err != nil {
		return err
	}
	if err := put(filepath.Join(base, "catalog-templates", templateName), t); err != nil {
		return err
	}
	versions, err := catalog.Bundles(bundles)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if err := version(base, t, bundles, v); err != nil {
			return err
		}
	}
	return nil
}

func version(base string, t *catalog.Template, bundles string, v semver.Version) error {
	to := filepath.Join(base, v.String())
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("replacing %s: %w", to, err)
	}
	if err := os.CopyFS(to, os.DirFS(filepath.Join(bundles, v.String()))); err != nil {
		return fmt.Errorf("copying the bundle of %s: %w", v, err)
	}
	return put(filepath.Join(to, "release-config.yaml"), releaseConfig{CatalogTemplates: places(t, v)})
}

// places are the channels of a version, those together in which it replaces the same: a release
// replaces its candidate in one channel and the release before it in another.
func places(t *catalog.Template, v semver.Version) (found []place) {
	for _, o := range t.Objects {
		if o.Schema != "olm.channel" {
			continue
		}
		for _, e := range o.Entries {
			if e.Name != catalog.Name(v) {
				continue
			}
			at := slices.IndexFunc(found, func(p place) bool {
				return p.Replaces == e.Replaces && p.SkipRange == e.SkipRange && slices.Equal(p.Skips, e.Skips)
			})
			if at < 0 {
				at = len(found)
				found = append(found, place{TemplateName: templateName, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange})
			}
			found[at].Channels = append(found[at].Channels, o.Name)
		}
	}
	return found
}

func put(path string, what any) error {
	out, err := yaml.Marshal(what)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, append([]byte("---\n"), out...), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
