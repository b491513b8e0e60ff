package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
)

// asked reads the flag --version.
func asked(name string, args []string) (semver.Version, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	text := flags.String("version", "", "the version to release")
	if err := flags.Parse(args); err != nil {
		return semver.Version{}, err
	}
	v, err := semver.Parse(*text)
	if err != nil {
		return v, fmt.Errorf("--version %q must be like 1.2.3: %w", *text, err)
	}
	return v, nil
}

// prepare notes the release in the change log and in VERSION, from which all else is generated.
func prepare(ctx context.Context, r *repository, args []string, _ io.Writer) error {
	v, err := asked("prepare", args)
	if err != nil {
		return err
	}
	t, err := catalog.Load(r.template())
	if err != nil {
		return err
	}
	if err := t.Release(v, catalog.Channels(v)); err != nil {
		return err
	}
	changes, err := catalog.ReadChangelog(r.changelog())
	if err != nil {
		return err
	}
	commits, err := r.commits(ctx)
	if err != nil {
		return err
	}
	changes, err = changes.Release(v.String(), time.Now().UTC().Format(time.DateOnly), commits)
	if err != nil {
		return err
	}
	if err := changes.Write(r.changelog()); err != nil {
		return err
	}
	return r.setVersion(v)
}

func (r *repository) setVersion(v semver.Version) error {
	if err := os.WriteFile(r.path("VERSION"), []byte(v.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing the version: %w", err)
	}
	return nil
}

// commits are the subjects since the last release changed the catalog, oldest first.
func (r *repository) commits(ctx context.Context) ([]string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", r.root}, args...)...).Output()
		if err != nil {
			return "", fmt.Errorf("asking git for the changes: %w", err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	last, err := git("log", "-1", "--format=%H", "--", "catalog/template.yaml")
	if err != nil {
		return nil, err
	}
	span := "HEAD"
	if last != "" {
		span = last + "..HEAD"
	}
	subjects, err := git("log", "--no-merges", "--reverse", "--format=%s", span)
	if err != nil || subjects == "" {
		return nil, err
	}
	return strings.Split(subjects, "\n"), nil
}

// freeze keeps the generated bundle as the released one, adds it to the catalog and begins the
// next minor version.
func freeze(_ context.Context, r *repository, args []string, out io.Writer) error {
	v, err := asked("freeze", args)
	if err != nil {
		return err
	}
	kept := r.path("catalog", "bundles", v.String())
	if _, err := os.Stat(kept); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there: version %s was released before", kept, v)
	}
	if err := os.CopyFS(kept, os.DirFS(r.bundle())); err != nil {
		return fmt.Errorf("keeping the bundle: %w", err)
	}
	if err := r.keepStored(v); err != nil {
		return err
	}
	t, err := catalog.Load(r.template())
	if err != nil {
		return err
	}
	if err := t.Release(v, catalog.Channels(v)); err != nil {
		return err
	}
	icon, err := os.ReadFile(r.path("config", "manifests", "icon.svg"))
	if err != nil {
		return fmt.Errorf("reading the icon: %w", err)
	}
	t.SetIcon(icon)
	if err := t.Save(r.template()); err != nil {
		return err
	}
	next := semver.Version{Major: v.Major, Minor: v.Minor + 1}
	if _, err := fmt.Fprintf(out, "Released %s to %s; work goes on as %s.\n", v, strings.Join(catalog.Channels(v), ", "), next); err != nil {
		return fmt.Errorf("printing the release: %w", err)
	}
	return r.setVersion(next)
}

// keepStored keeps the objects that the tests have every later version take as those of a release.
func (r *repository) keepStored(v semver.Version) error {
	objects, err := os.ReadFile(r.path("catalog", "stored", "next.yaml"))
	if err != nil {
		return fmt.Errorf("reading the stored objects: %w", err)
	}
	if err := os.WriteFile(r.path("catalog", "stored", v.String()+".yaml"), objects, 0o644); err != nil {
		return fmt.Errorf("keeping the stored objects: %w", err)
	}
	return nil
}

// deprecate notes in the catalog that a released version should be left.
func deprecate(_ context.Context, r *repository, args []string, _ io.Writer) error {
	flags := flag.NewFlagSet("deprecate", flag.ContinueOnError)
	text := flags.String("version", "", "the released version")
	message := flags.String("message", "", "why it should be left, and where to go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	v, err := semver.Parse(*text)
	if err != nil {
		return fmt.Errorf("--version %q must be like 1.2.3: %w", *text, err)
	}
	t, err := catalog.Load(r.template())
	if err != nil {
		return err
	}
	if err := t.Deprecate(v, *message); err != nil {
		return err
	}
	if problems := catalog.Problems(t); len(problems) > 0 {
		return fmt.Errorf("version %s cannot be deprecated: %s", v, strings.Join(problems, "; "))
	}
	return t.Save(r.template())
}
