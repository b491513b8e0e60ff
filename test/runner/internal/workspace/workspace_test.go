package workspace_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/ambient-code/agentic-operator/test/runner/internal/environment"
	"github.com/ambient-code/agentic-operator/test/runner/internal/githost"
	"github.com/ambient-code/agentic-operator/test/runner/internal/workspace"
)

var author = workspace.Author{Name: "Ada", Email: "ada@example.com"}

func serve(t *testing.T, names ...string) string {
	t.Helper()
	host := githost.New("")
	for _, name := range names {
		if err := host.Add(name); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(host.Handler(slog.New(slog.DiscardHandler)))
	t.Cleanup(server.Close)
	return server.URL
}

// branchOff makes a branch on the server.
func branchOff(t *testing.T, url, branch string) {
	t.Helper()
	repo, err := git.PlainClone(t.TempDir(), false, &git.CloneOptions{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	spec := config.RefSpec(fmt.Sprintf("%s:%s", plumbing.Main, plumbing.NewBranchReferenceName(branch)))
	if err := repo.Push(&git.PushOptions{RefSpecs: []config.RefSpec{spec}}); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func add(t *testing.T, w *workspace.Workspace, repo environment.Repo) {
	t.Helper()
	if err := w.Add(context.Background(), workspace.NameOf(repo.URL), repo); err != nil {
		t.Fatal(err)
	}
}

func TestNameOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://host/group/app.git": "app", "http://host/app/": "app", "git@host:group/app.git": "app",
		"git@host:app.git": "app", "ssh://git@host/x/my.app": "my.app",
	} {
		if got := workspace.NameOf(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

func TestAppendCommitsAndPushes(t *testing.T) {
	url, folder := serve(t, "pushed", "kept"), t.TempDir()
	w := workspace.New(folder, author)
	add(t, w, environment.Repo{URL: url + "/pushed.git", Branch: "main", AutoPush: true})
	add(t, w, environment.Repo{URL: url + "/kept", Branch: "main"})
	changes, err := w.Append(context.Background(), "docs/NOTES.md", "A note")
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 2 || changes[0].Pushed || !changes[1].Pushed || changes[1].Repository != "pushed" {
		t.Fatalf("changes %+v", changes)
	}
	if got := w.Repos()[1].Commit; got != changes[1].Commit {
		t.Errorf("the workspace notes commit %s, made was %s", got, changes[1].Commit)
	}
	again := workspace.New(t.TempDir(), author)
	add(t, again, environment.Repo{URL: url + "/pushed", Branch: "main"})
	add(t, again, environment.Repo{URL: url + "/kept", Branch: "main"})
	if got := again.Repos()[1].Commit; got != changes[1].Commit {
		t.Errorf("the server holds commit %s, pushed was %s", got, changes[1].Commit)
	}
	if got := again.Repos()[0].Commit; got == changes[0].Commit {
		t.Error("a commit was pushed without autoPush")
	}
	if got := read(t, folder, "repos/kept/docs/NOTES.md"); got != "A note\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestAppendStaysInside(t *testing.T) {
	url, folder := serve(t, "app"), t.TempDir()
	w := workspace.New(folder, author)
	add(t, w, environment.Repo{URL: url + "/app", Branch: "main"})
	if err := os.Symlink(folder, filepath.Join(folder, "repos", "app", "link")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"../out", "/tmp/out", ".git/config", "x/../.git/config", "link/out"} {
		if _, err := w.Append(context.Background(), file, "text"); err == nil {
			t.Errorf("%s was written", file)
		}
	}
}

// TestManyPushAtOnce has several sessions change the same file of one repository.
func TestManyPushAtOnce(t *testing.T) {
	url := serve(t, "app")
	const sessions = 5
	var group sync.WaitGroup
	for i := range sessions {
		w := workspace.New(t.TempDir(), author)
		add(t, w, environment.Repo{URL: url + "/app", Branch: "main", AutoPush: true})
		group.Go(func() {
			if _, err := w.Append(context.Background(), "CHANGELOG.md", fmt.Sprintf("line %d", i)); err != nil {
				t.Errorf("session %d: %v", i, err)
			}
		})
	}
	group.Wait()
	folder := t.TempDir()
	add(t, workspace.New(folder, author), environment.Repo{URL: url + "/app", Branch: "main"})
	text := read(t, folder, "repos/app/CHANGELOG.md")
	for i := range sessions {
		if strings.Count(text, fmt.Sprintf("line %d\n", i)) != 1 {
			t.Errorf("line %d is not there once: %q", i, text)
		}
	}
}

func TestSwitchReplaceRemove(t *testing.T) {
	url, folder := serve(t, "app", "other"), t.TempDir()
	branchOff(t, url+"/app", "dev")
	w := workspace.New(folder, author)
	add(t, w, environment.Repo{URL: url + "/app", Branch: "main"})
	add(t, w, environment.Repo{URL: url + "/app", Branch: "dev"})
	if head := read(t, folder, "repos/app/.git/HEAD"); head != "ref: refs/heads/dev\n" {
		t.Errorf("after a changed branch HEAD is %q", head)
	}
	if err := w.Add(context.Background(), "app", environment.Repo{URL: url + "/app", Branch: "missing"}); err == nil {
		t.Error("a branch that does not exist was accepted")
	}
	if got := w.Repos()[0].Branch; got != "dev" {
		t.Errorf("after a refused change the branch is noted as %s", got)
	}
	if err := w.Add(context.Background(), "app", environment.Repo{URL: url + "/other", Branch: "main"}); err != nil {
		t.Fatal(err)
	}
	if text := read(t, folder, "repos/app/README.md"); !strings.HasPrefix(text, "# other") {
		t.Errorf("after a changed URL the clone is still of the old one: %q", text)
	}
	if found, err := w.Remove("app"); err != nil || !found {
		t.Errorf("removing: %v, %v", found, err)
	}
	if found, err := w.Remove("app"); err != nil || found {
		t.Errorf("removing again: %v, %v", found, err)
	}
	if left, err := os.ReadDir(filepath.Join(folder, "repos")); err != nil || len(left) != 0 {
		t.Errorf("left in the workspace: %v, %v", left, err)
	}
	if err := w.Add(context.Background(), "..", environment.Repo{URL: url + "/app", Branch: "main"}); err == nil {
		t.Error("a name that leads out of the workspace was accepted")
	}
}

// TestUnpushedWorkIsKept has others push while this session holds a commit that
// it was not to push: that commit must not be given up.
func TestUnpushedWorkIsKept(t *testing.T) {
	url, folder, ctx := serve(t, "app")+"/app", t.TempDir(), context.Background()
	w, others := workspace.New(folder, author), workspace.New(t.TempDir(), author)
	add(t, w, environment.Repo{URL: url, Branch: "main"})
	add(t, others, environment.Repo{URL: url, Branch: "main", AutoPush: true})
	if _, err := w.Append(ctx, "NOTES", "unpushed"); err != nil {
		t.Fatal(err)
	}
	if _, err := others.Append(ctx, "CHANGELOG.md", "theirs"); err != nil {
		t.Fatal(err)
	}
	add(t, w, environment.Repo{URL: url, Branch: "main", AutoPush: true})
	if changes, err := w.Append(ctx, "NOTES", "more"); err == nil || !strings.Contains(err.Error(), "merge them by hand") {
		t.Errorf("changes %+v, error %v", changes, err)
	}
	if text := read(t, folder, "repos", "app", "NOTES"); !strings.HasPrefix(text, "unpushed\n") {
		t.Errorf("the unpushed work is gone: %q", text)
	}
}

// TestResume opens the same workspace again: unpushed work must be there.
func TestResume(t *testing.T) {
	url, folder := serve(t, "app"), t.TempDir()
	repo := environment.Repo{URL: url + "/app", Branch: "main"}
	first := workspace.New(folder, author)
	add(t, first, repo)
	changes, err := first.Append(context.Background(), "NOTES", "unpushed")
	if err != nil {
		t.Fatal(err)
	}
	second := workspace.New(folder, author)
	add(t, second, repo)
	if got := second.Repos()[0].Commit; got != changes[0].Commit {
		t.Errorf("resumed at %s, left at %s", got, changes[0].Commit)
	}
}

func TestWorkflow(t *testing.T) {
	url, ctx := serve(t, "flows"), context.Background()
	w := workspace.New(t.TempDir(), author)
	if err := w.SetWorkflow(ctx, environment.Workflow{GitURL: url + "/flows", Branch: "main", Path: "workflows/review"}); err != nil {
		t.Fatal(err)
	}
	if got := w.Workflow(); got == nil || got.Path != "workflows/review" || got.Commit == "" {
		t.Errorf("workflow %+v", got)
	}
	for _, path := range []string{"workflows/missing", "../.."} {
		if err := w.SetWorkflow(ctx, environment.Workflow{GitURL: url + "/flows", Branch: "main", Path: path}); err == nil {
			t.Errorf("path %s was accepted", path)
		}
	}
	if err := w.SetWorkflow(ctx, environment.Workflow{}); err != nil || w.Workflow() != nil {
		t.Errorf("ending the workflow: %+v, %v", w.Workflow(), err)
	}
}
