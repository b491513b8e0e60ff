package olm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var replaced = regexp.MustCompile(`(?m)^  replaces: .*$`)

// After makes up the release after the version being worked on: the same bundle under the next number,
// in a copy of the catalog where the version being worked on is released and the oldest one deprecated.
// So tests can upgrade from the newest code, not only to it.
func (l *Lifecycle) After(ctx context.Context, v Version) (Version, error) {
	root, copied := l.cluster.Root(), filepath.Join(l.dir, "after")
	for _, folder := range []string{"bundle", "catalog", "config/manifests"} {
		if err := os.CopyFS(filepath.Join(copied, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			return Version{}, fmt.Errorf("copying %s: %w", folder, err)
		}
	}
	next := Version{Bundle: filepath.Join(copied, "bundle"), repository: copied}
	if _, err := l.run(ctx, next, "freeze", "--version", v.Number); err != nil {
		return Version{}, err
	}
	oldest, err := l.oldest(ctx)
	if err != nil {
		return Version{}, err
	}
	if _, err := l.run(ctx, next, "deprecate", "--version", oldest, "--message", "use a newer version"); err != nil {
		return Version{}, err
	}
	number, err := os.ReadFile(filepath.Join(copied, "VERSION"))
	if err != nil {
		return Version{}, fmt.Errorf("reading the next version: %w", err)
	}
	next.Number = strings.TrimSpace(string(number))
	manifest := filepath.Join(next.Bundle, "manifests", "agentic-operator.clusterserviceversion.yaml")
	content, err := os.ReadFile(manifest)
	if err != nil {
		return Version{}, fmt.Errorf("reading the bundle of version %s: %w", v.Number, err)
	}
	content = bytes.ReplaceAll(content, []byte(v.Number), []byte(next.Number))
	content = replaced.ReplaceAll(content, []byte("  replaces: agentic-operator.v"+v.Number))
	if err := os.WriteFile(manifest, content, 0o600); err != nil {
		return Version{}, fmt.Errorf("writing the bundle of version %s: %w", next.Number, err)
	}
	return next, nil
}

func (l *Lifecycle) oldest(ctx context.Context) (string, error) {
	released, err := l.run(ctx, Version{}, "versions")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(released), "\n")
	return first, nil
}

// run runs hack/packaging on the repository of a version.
func (l *Lifecycle) run(ctx context.Context, v Version, args ...string) ([]byte, error) {
	repository := v.repository
	if repository == "" {
		repository = l.cluster.Root()
	}
	out, err := l.cluster.Run(ctx, "env", append([]string{"REPOSITORY=" + repository, l.packaging}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("running hack/packaging on %s: %w", repository, err)
	}
	return out, nil
}
