package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
)

// copied is a repository with what a release needs of this one.
func copied(t *testing.T) *repository {
	t.Helper()
	root := t.TempDir()
	for _, folder := range []string{"bundle", "catalog", "config/manifests"} {
		if err := os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join("..", "..", folder))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"VERSION", "CHANGELOG.md", "bundle.Dockerfile"} {
		content, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, root, "init", "-q")
	commit(t, root)
	t.Setenv("REPOSITORY", root)
	return &repository{root: root}
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	if out, err := exec.Command("git", append([]string{"-C", root, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// commit commits what there is, and then a change that a release would tell of.
func commit(t *testing.T, root string) {
	t.Helper()
	git(t, root, "add", ".")
	git(t, root, "commit", "-qm", "Begin")
	git(t, root, "commit", "-q", "--allow-empty", "-m", "Change something")
}

func command(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), args, &out); err != nil {
		t.Fatalf("packaging %v: %v", args, err)
	}
	return out.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The version being worked on is released and the one after it: each gets its section in the change
// log and its place in the catalog, and work goes on as the next one.
func TestReleases(t *testing.T) {
	r := copied(t)
	for range 2 {
		v, err := r.version()
		if err != nil {
			t.Fatal(err)
		}
		before := len(strings.Fields(command(t, "versions")))
		command(t, "prepare", "--version", v.String())
		changes := catalog.Changelog(read(t, r.changelog()))
		if _, err := changes.Date(v.String()); err != nil || changes.Pending() != "" || !strings.Contains(string(changes), "## "+v.String()+" (") {
			t.Errorf("the change log after the release of %s: %v\n%s", v, err, changes)
		}
		command(t, "freeze", "--version", v.String())
		if after := strings.Fields(command(t, "versions")); len(after) != before+1 || after[before] != v.String() {
			t.Errorf("the released versions are %v, want one more, %s", after, v)
		}
		if kept := read(t, r.path("catalog", "stored", v.String()+".yaml")); kept != read(t, r.path("catalog", "stored", "next.yaml")) {
			t.Errorf("the stored objects of %s are not those of the version that was worked on", v)
		}
		graph, err := catalog.Load(r.template())
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range catalog.Problems(graph) {
			t.Error(problem)
		}
		for _, name := range catalog.Channels(v) {
			entries := graph.Channel(name).Entries
			if last := entries[len(entries)-1]; last.Name != catalog.Name(v) {
				t.Errorf("the newest version of channel %s is %s, want %s", name, last.Name, catalog.Name(v))
			}
		}
		next, err := r.version()
		if err != nil || !next.EQ(semver.Version{Major: v.Major, Minor: v.Minor + 1}) {
			t.Errorf("work goes on as %s, %v", next, err)
		}
		if err := run(context.Background(), []string{"prepare", "--version", v.String()}, &bytes.Buffer{}); err == nil {
			t.Errorf("version %s was released twice", v)
		}
		commit(t, r.root)
	}
	if changes := read(t, r.changelog()); !strings.Contains(changes, "- Change something\n") {
		t.Errorf("a release of which nothing was noted does not tell its commits:\n%s", changes)
	}
}

// A release that is deprecated is told so in the template; one that nobody could leave is not.
func TestDeprecateARelease(t *testing.T) {
	r := copied(t)
	versions := strings.Fields(command(t, "versions"))
	command(t, "deprecate", "--version", versions[0], "--message", "use a newer one")
	if template := read(t, r.template()); !strings.Contains(template, "olm.deprecations") || !strings.Contains(template, "use a newer one") {
		t.Errorf("the template does not tell of it:\n%s", template)
	}
	newest := versions[len(versions)-1]
	if err := run(context.Background(), []string{"deprecate", "--version", newest, "--message", "use none"}, &bytes.Buffer{}); err == nil {
		t.Errorf("the newest version %s was deprecated", newest)
	}
}

// The layout of the community's catalogs: each version with its bundle and its place in the graph. To
// write it again changes nothing.
func TestPublish(t *testing.T) {
	copied(t)
	to := t.TempDir()
	command(t, "publish", "--to", to)
	base := filepath.Join(to, "operators", "agentic-operator")
	versions := strings.Fields(command(t, "versions"))
	for i, v := range versions {
		config := read(t, filepath.Join(base, v, "release-config.yaml"))
		if !strings.Contains(config, "stable") || i > 0 && !strings.Contains(config, "replaces: agentic-operator.v"+versions[i-1]+"\n") {
			t.Errorf("release-config.yaml of %s is\n%s", v, config)
		}
		for _, part := range []string{"manifests/agentic-operator.clusterserviceversion.yaml", "metadata/annotations.yaml"} {
			if published, kept := read(t, filepath.Join(base, v, part)), read(t, filepath.Join("..", "..", "catalog", "bundles", v, part)); published != kept {
				t.Errorf("%s of version %s is not as it was released", part, v)
			}
		}
	}
	if ci := read(t, filepath.Join(base, "ci.yaml")); !strings.Contains(ci, "updateGraph: replaces-mode") || !strings.Contains(ci, "type: olm.template.basic") {
		t.Errorf("ci.yaml is\n%s", ci)
	}
	before := read(t, filepath.Join(base, "catalog-templates", "basic.yaml"))
	command(t, "publish", "--to", to)
	if after := read(t, filepath.Join(base, "catalog-templates", "basic.yaml")); after != before {
		t.Error("a second run changed the template")
	}
}
