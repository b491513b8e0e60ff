// Package catalog keeps the operator's file-based catalog: which versions there are, in which
// channels, and which version an installed one is upgraded to. The template holds that graph; the
// bundles lie beside it, one folder a version, as they were released. From both the catalog is
// rendered, with the names of bundle images for publication or with the bundles' content inside
// for clusters without a registry.
package catalog

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

const (
	// Package is the operator's name in catalogs.
	Package = "agentic-operator"
	// Default is the channel of who chooses none.
	Default = "stable"
	// Candidate is the channel that gets every version.
	Candidate = "candidate"
	// BundleImage is where bundles are published, without tag.
	BundleImage = "quay.io/ambient_code/agentic-operator-bundle"
)

// Entry is a version in a channel, or in olm.deprecations what should be left, and why.
type Entry struct {
	Name      string   `json:"name,omitempty"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`

	Reference map[string]string `json:"reference,omitempty"`
	Message   string            `json:"message,omitempty"`
}

// Icon is the operator's image in catalogs.
type Icon struct {
	Data      string `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// Object is one object of the template: the package, a channel, a bundle or the deprecations.
type Object struct {
	Schema         string  `json:"schema"`
	Name           string  `json:"name,omitempty"`
	Package        string  `json:"package,omitempty"`
	DefaultChannel string  `json:"defaultChannel,omitempty"`
	Description    string  `json:"description,omitempty"`
	Icon           *Icon   `json:"icon,omitempty"`
	Image          string  `json:"image,omitempty"`
	Entries        []Entry `json:"entries,omitempty"`
}

// Template is an olm.template.basic.
type Template struct {
	Schema  string   `json:"schema"`
	Objects []Object `json:"entries"`
}

// Name is the name of a version's CSV.
func Name(v semver.Version) string { return Package + ".v" + v.String() }

// Version reads the version out of the name of a CSV.
func Version(name string) (semver.Version, error) {
	v, err := semver.Parse(strings.TrimPrefix(name, Package+".v"))
	if err != nil {
		return v, fmt.Errorf("%q is no %s.v<version>: %w", name, Package, err)
	}
	return v, nil
}

// Load reads a template.
func Load(path string) (*Template, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the catalog's template: %w", err)
	}
	t := &Template{}
	if err := yaml.UnmarshalStrict(content, t); err != nil {
		return nil, fmt.Errorf("%s is no template: %w", path, err)
	}
	return t, nil
}

// Save writes the template.
func (t *Template) Save(path string) error {
	out, err := yaml.Marshal(t)
	if err != nil {
		return fmt.Errorf("writing the catalog's template: %w", err)
	}
	head := "# The graph of versions, kept by make release. See docs/releases.md.\n"
	if err := os.WriteFile(path, append([]byte(head), out...), 0o644); err != nil {
		return fmt.Errorf("writing the catalog's template: %w", err)
	}
	return nil
}

// Channel is a channel's object, or nil.
func (t *Template) Channel(name string) *Object {
	i := slices.IndexFunc(t.Objects, func(o Object) bool { return o.Schema == "olm.channel" && o.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Objects[i]
}

// Versions lists every version of a channel, oldest first.
func (t *Template) Versions(channel string) ([]semver.Version, error) {
	c := t.Channel(channel)
	if c == nil {
		return nil, nil
	}
	versions := make([]semver.Version, 0, len(c.Entries))
	for _, e := range c.Entries {
		v, err := Version(e.Name)
		if err != nil {
			return nil, err
		}
		versions = append(versions, v)
	}
	semver.Sort(versions)
	return versions, nil
}

// Before is the entry that a version gets in a channel: it replaces the newest older version, and
// may be reached at once from every older one.
func (t *Template) Before(channel string, v semver.Version) (Entry, error) {
	versions, err := t.Versions(channel)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Name: Name(v)}
	for _, older := range versions {
		if older.LT(v) {
			e.Replaces = Name(older)
			e.SkipRange = fmt.Sprintf(">=%s <%s", versions[0], v)
		}
	}
	return e, nil
}

// Release adds a version to channels and its bundle. A version that is there, or is older than one
// that is, is refused: users may have it.
func (t *Template) Release(v semver.Version, channels []string) error {
	all, err := t.Versions(Candidate)
	if err != nil {
		return err
	}
	if n := len(all); n > 0 && all[n-1].GTE(v) {
		return fmt.Errorf("version %s is not newer than the released %s", v, all[n-1])
	}
	for _, name := range channels {
		e, err := t.Before(name, v)
		if err != nil {
			return err
		}
		c := t.Channel(name)
		if c == nil {
			t.Objects = append(t.Objects, Object{Schema: "olm.channel", Package: Package, Name: name})
			c = &t.Objects[len(t.Objects)-1]
		}
		c.Entries = append(c.Entries, e)
	}
	t.Objects = append(t.Objects, Object{Schema: "olm.bundle", Image: BundleImage + ":v" + v.String()})
	return nil
}

// SetIcon puts the icon into the package's object.
func (t *Template) SetIcon(svg []byte) {
	for i := range t.Objects {
		if t.Objects[i].Schema == "olm.package" {
			t.Objects[i].Icon = &Icon{Data: base64.StdEncoding.EncodeToString(svg), MediaType: "image/svg+xml"}
		}
	}
}

// Channels are those a version is released to: pre-releases go to the candidate channel alone.
func Channels(v semver.Version) []string {
	if len(v.Pre) > 0 {
		return []string{Candidate}
	}
	return []string{Candidate, Default, fmt.Sprintf("%s-v%d", Default, v.Major)}
}

// Bundles lists the versions whose bundles are kept in dir, oldest first.
func Bundles(dir string) ([]semver.Version, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the released bundles: %w", err)
	}
	var versions []semver.Version
	for _, e := range entries {
		v, err := semver.Parse(e.Name())
		if err != nil {
			return nil, fmt.Errorf("%s: the name of a released bundle's folder must be its version: %w", filepath.Join(dir, e.Name()), err)
		}
		versions = append(versions, v)
	}
	semver.Sort(versions)
	return versions, nil
}

// withoutBundles is the template's graph as catalog objects.
func (t *Template) withoutBundles() ([]byte, error) {
	var out bytes.Buffer
	for i := range t.Objects {
		o := t.Objects[i]
		if o.Schema == "olm.bundle" {
			continue
		}
		raw, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("writing the catalog: %w", err)
		}
		out.WriteString("---\n")
		out.Write(raw)
	}
	return out.Bytes(), nil
}
