package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/bundle"
	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
	"github.com/ambient-code/agentic-operator/hack/packaging/internal/publish"
)

// repository knows where things lie.
type repository struct{ root string }

func (r *repository) path(parts ...string) string {
	return filepath.Join(append([]string{r.root}, parts...)...)
}

func (r *repository) bundle() string    { return r.path("bundle") }
func (r *repository) bundles() string   { return r.path("catalog", "bundles") }
func (r *repository) template() string  { return r.path("catalog", "template.yaml") }
func (r *repository) changelog() string { return r.path("CHANGELOG.md") }

// version is the one that is being worked on.
func (r *repository) version() (semver.Version, error) {
	content, err := os.ReadFile(r.path("VERSION"))
	if err != nil {
		return semver.Version{}, fmt.Errorf("reading the version: %w", err)
	}
	v, err := semver.Parse(strings.TrimSpace(string(content)))
	if err != nil {
		return v, fmt.Errorf("the file VERSION must hold a version like 1.2.3: %w", err)
	}
	return v, nil
}

func finishBundle(_ context.Context, r *repository, _ []string, _ io.Writer) error {
	v, err := r.version()
	if err != nil {
		return err
	}
	t, err := catalog.Load(r.template())
	if err != nil {
		return err
	}
	changes, err := catalog.ReadChangelog(r.changelog())
	if err != nil {
		return err
	}
	day, err := changes.Date(v.String())
	if err != nil {
		return err
	}
	icon, err := os.ReadFile(r.path("config", "manifests", "icon.svg"))
	if err != nil {
		return fmt.Errorf("reading the icon: %w", err)
	}
	entry, err := t.Before(catalog.Channels(v)[0], v)
	if err != nil {
		return err
	}
	return bundle.Finish(r.bundle(), r.path("bundle.Dockerfile"), bundle.Facts{
		Icon: icon, Created: day, Replaces: entry.Replaces, SkipRange: entry.SkipRange,
	})
}

func printCatalog(ctx context.Context, r *repository, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("catalog", flag.ContinueOnError)
	inline := flags.Bool("inline", false, "hold the bundles' content instead of their images")
	next := flags.Bool("next", false, "add the bundle of the version being worked on")
	last := flags.String("last", "", "leave out every newer version")
	opm := flags.String("opm", r.path("bin", "opm"), "the program opm")
	if err := flags.Parse(args); err != nil {
		return err
	}
	rendered, err := r.catalog(ctx, *opm, *inline, *next, *last)
	if err != nil {
		return err
	}
	if _, err := out.Write(rendered); err != nil {
		return fmt.Errorf("printing the catalog: %w", err)
	}
	return nil
}

func printVersions(_ context.Context, r *repository, _ []string, out io.Writer) error {
	t, err := catalog.Load(r.template())
	if err != nil {
		return err
	}
	versions, err := t.Versions(catalog.Candidate)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if _, err := fmt.Fprintln(out, v); err != nil {
			return fmt.Errorf("printing the versions: %w", err)
		}
	}
	return nil
}

func (r *repository) catalog(ctx context.Context, opm string, inline, next bool, last string) ([]byte, error) {
	t, err := catalog.Load(r.template())
	if err != nil {
		return nil, err
	}
	from := catalog.Source{OPM: opm, Template: t, Bundles: r.bundles()}
	if next {
		v, err := r.version()
		if err != nil {
			return nil, err
		}
		if err := t.Release(v, catalog.Channels(v)); err != nil {
			return nil, err
		}
		from.Next, from.NextVersion = r.bundle(), v
	}
	if last != "" {
		v, err := semver.Parse(last)
		if err != nil {
			return nil, fmt.Errorf("--last %q must be like 1.2.3: %w", last, err)
		}
		from.Last = &v
	}
	form := catalog.Images
	if inline {
		form = catalog.Inline
	}
	return catalog.Render(ctx, from, form)
}

func publishTo(_ context.Context, r *repository, args []string, _ io.Writer) error {
	flags := flag.NewFlagSet("publish", flag.ContinueOnError)
	to := flags.String("to", "", "a checkout of the community's catalog")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *to == "" {
		return errors.New("--to must name the folder to write to")
	}
	t, err := catalog.Load(r.template())
	if err != nil {
		return err
	}
	return publish.Write(*to, t, r.bundles())
}

func printInstaller(_ context.Context, r *repository, _ []string, out io.Writer) error {
	rights, err := bundle.Installer(r.bundle())
	if err != nil {
		return err
	}
	if _, err := out.Write(rights); err != nil {
		return fmt.Errorf("printing the installer's rights: %w", err)
	}
	return nil
}
