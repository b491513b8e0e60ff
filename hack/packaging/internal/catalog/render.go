package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/blang/semver/v4"
)

// Form says what a rendered catalog holds of the bundles.
type Form int

const (
	// Images names the bundles' images; this is what is published.
	Images Form = iota
	// Inline holds their content, so that a cluster needs no registry.
	Inline
)

// Source is where a catalog is made from.
type Source struct {
	// OPM is the path of the program opm.
	OPM string
	// Template is the graph.
	Template *Template
	// Bundles is the folder of the released bundles.
	Bundles string
	// Next is the folder of a bundle that the template names and that is not released yet, and its
	// version.
	Next        string
	NextVersion semver.Version
	// Last, when set, leaves out every newer version.
	Last *semver.Version
}

// Render makes the catalog.
func Render(ctx context.Context, from Source, form Form) ([]byte, error) {
	graph, err := from.graph()
	if err != nil {
		return nil, err
	}
	versions, err := from.Template.Versions(Candidate)
	if err != nil {
		return nil, err
	}
	dirs := []string{}
	for _, v := range versions {
		switch {
		case from.Last != nil && v.GT(*from.Last):
		case from.Next != "" && v.EQ(from.NextVersion):
			dirs = append(dirs, from.Next)
		default:
			dirs = append(dirs, filepath.Join(from.Bundles, v.String()))
		}
	}
	for _, dir := range dirs {
		// One at a time: opm's error does not tell which bundle it speaks of.
		rendered, err := opm(ctx, from.OPM, dir, form)
		if err != nil {
			return nil, err
		}
		graph = append(graph, rendered...)
	}
	return graph, nil
}

// graph is the package, the channels and the deprecations.
func (s *Source) graph() ([]byte, error) {
	if s.Last == nil {
		return s.Template.withoutBundles()
	}
	until := *s.Template
	until.Objects = nil
	for _, o := range s.Template.Objects {
		if o.Schema == "olm.channel" || o.Schema == deprecations {
			var entries []Entry
			for _, e := range o.Entries {
				older, err := s.holds(e)
				if err != nil {
					return nil, err
				}
				if older {
					entries = append(entries, e)
				}
			}
			if len(entries) == 0 {
				continue
			}
			o.Entries = entries
		}
		until.Objects = append(until.Objects, o)
	}
	return until.withoutBundles()
}

// holds says that an entry speaks of nothing that is newer than the last version.
func (s *Source) holds(e Entry) (bool, error) {
	name := e.Name
	switch e.Reference["schema"] {
	case "":
	case bundleSchema:
		name = e.Reference["name"]
	default:
		return true, nil
	}
	v, err := Version(name)
	if err != nil {
		return false, err
	}
	return v.LTE(*s.Last), nil
}

func opm(ctx context.Context, program, dir string, form Form) ([]byte, error) {
	if _, err := os.Stat(filepath.Join(dir, "manifests")); err != nil {
		return nil, fmt.Errorf("the bundle %s is missing: %w", dir, err)
	}
	args := []string{"render", dir, "-o", "yaml"}
	if form == Images {
		args = append(args, "--alpha-image-ref-template", BundleImage+":v{{.Version}}", "--migrate-level", "bundle-object-to-csv-metadata")
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("opm is missing; build it with: make packaging-tools (%w)", err)
		}
		return nil, fmt.Errorf("rendering %s: %w: %s", dir, err, problems.String())
	}
	return out.Bytes(), nil
}
