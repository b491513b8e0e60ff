package githost_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/ambient-code/agentic-operator/test/runner/internal/githost"
)

func serve(t *testing.T, folder string, names ...string) string {
	t.Helper()
	host := githost.New(folder)
	for _, name := range names {
		if err := host.Add(name); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(host.Handler(slog.New(slog.NewTextHandler(t.Output(), nil))))
	t.Cleanup(server.Close)
	return server.URL
}

func clone(t *testing.T, url string) (*git.Repository, string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "clone")
	repo, err := git.PlainClone(folder, false, &git.CloneOptions{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return repo, folder
}

func commit(t *testing.T, repo *git.Repository, folder, file, text string) plumbing.Hash {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Add(file); err != nil {
		t.Fatal(err)
	}
	hash, err := tree.Commit("Change "+file, &git.CommitOptions{
		Author: &object.Signature{Name: "Ada", Email: "ada@example.com", When: time.Now()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func commits(t *testing.T, url string) []githost.Commit {
	t.Helper()
	response, err := http.Get(url + "/commits")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	var listed []githost.Commit
	if err := json.NewDecoder(response.Body).Decode(&listed); err != nil {
		t.Fatal(err)
	}
	return listed
}

func TestCloneAndPush(t *testing.T) {
	for _, folder := range []string{"", t.TempDir()} {
		url := serve(t, folder, "sample") + "/sample.git"
		repo, files := clone(t, url)
		if _, err := os.Stat(filepath.Join(files, "README.md")); err != nil {
			t.Fatalf("the clone lacks the example's README: %v", err)
		}
		hash := commit(t, repo, files, "new.txt", "new\n")
		if err := repo.Push(&git.PushOptions{}); err != nil {
			t.Fatal(err)
		}
		listed := commits(t, url)
		if len(listed) != 2 || listed[0].Hash != hash.String() || listed[0].Author != "Ada" || listed[0].Message != "Change new.txt" {
			t.Fatalf("folder %q: after a push of %s the server lists %+v", folder, hash, listed)
		}
		_, again := clone(t, strings.TrimSuffix(url, ".git"))
		if got, err := os.ReadFile(filepath.Join(again, "new.txt")); err != nil || string(got) != "new\n" {
			t.Fatalf("a second clone holds %q, %v", got, err)
		}
	}
}

func TestFolderSurvivesRestart(t *testing.T) {
	folder := t.TempDir()
	url := serve(t, folder, "sample") + "/sample"
	repo, files := clone(t, url)
	hash := commit(t, repo, files, "kept.txt", "kept\n")
	if err := repo.Push(&git.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	listed := commits(t, serve(t, folder, "sample")+"/sample")
	if listed[0].Hash != hash.String() {
		t.Fatalf("after a restart the newest commit is %+v, want %s", listed[0], hash)
	}
}

// TestPushesAtOnce pushes from many clones of the same commit: exactly one may
// win a round, and no commit that a client was told is accepted may be lost.
func TestPushesAtOnce(t *testing.T) {
	const clients = 6
	host := githost.New("")
	if err := host.Add("sample"); err != nil {
		t.Fatal(err)
	}
	// No client may learn where the branch stands after another has pushed, or it
	// would give up by itself.
	var asked sync.WaitGroup
	asked.Add(clients)
	handler := host.Handler(slog.New(slog.DiscardHandler))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("service") == "git-receive-pack" {
			asked.Done()
		}
		if strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			asked.Wait()
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	url := server.URL + "/sample"
	accepted := make([]plumbing.Hash, clients)
	var repos [clients]*git.Repository
	var made [clients]plumbing.Hash
	for i := range clients {
		repo, files := clone(t, url)
		repos[i], made[i] = repo, commit(t, repo, files, fmt.Sprintf("file-%d.txt", i), "x\n")
	}
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			if repos[i].Push(&git.PushOptions{}) == nil {
				accepted[i] = made[i]
			}
		})
	}
	group.Wait()
	winners := 0
	for _, hash := range accepted {
		if hash.IsZero() {
			continue
		}
		winners++
		if listed := commits(t, url); listed[0].Hash != hash.String() {
			t.Errorf("accepted %s, but the newest commit is %s", hash, listed[0].Hash)
		}
	}
	if winners != 1 {
		t.Errorf("%d of %d pushes from the same commit were accepted, want 1", winners, clients)
	}
}

func TestFetchAfterLocalCommit(t *testing.T) {
	url := serve(t, "", "sample") + "/sample"
	first, firstFiles := clone(t, url)
	second, secondFiles := clone(t, url)
	commit(t, second, secondFiles, "local.txt", "unknown to the server\n")
	hash := commit(t, first, firstFiles, "other.txt", "other\n")
	if err := first.Push(&git.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := second.Fetch(&git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.CommitObject(hash); err != nil {
		t.Fatalf("the fetch did not bring %s: %v", hash, err)
	}
	if err := second.Push(&git.PushOptions{}); err == nil {
		t.Error("a push that leaves out a commit of the server was accepted")
	}
}

func TestUnknownRepositoryAndNames(t *testing.T) {
	url := serve(t, "", "sample")
	if _, err := git.PlainClone(t.TempDir(), false, &git.CloneOptions{URL: url + "/missing"}); err == nil {
		t.Error("a repository that does not exist could be cloned")
	}
	host := githost.New("")
	for _, name := range []string{"", "../up", "a/b", ".hidden"} {
		if host.Add(name) == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
	if err := errors.Join(host.Add("one"), host.Add("two.git")); err != nil {
		t.Fatal(err)
	}
	if host.Add("two") == nil {
		t.Error("one name was accepted twice")
	}
	if got := strings.Join(host.Names(), " "); got != "one two" {
		t.Errorf("names %q", got)
	}
}

// TestGitItself uses the git program, where there is one: it speaks more of the
// protocol than the library does.
func TestGitItself(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git program here; install git to run this test")
	}
	url := serve(t, "", "sample") + "/sample.git"
	folder := t.TempDir()
	run := func(in string, args ...string) string {
		t.Helper()
		command := exec.Command(program, append([]string{"-C", in}, args...)...)
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
			"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
			"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		if err := command.Run(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out.String())
		}
		return strings.TrimSpace(out.String())
	}
	run(folder, "clone", "-q", url, "one")
	run(folder, "clone", "-q", url, "two")
	one, two := filepath.Join(folder, "one"), filepath.Join(folder, "two")
	// Many commits, so that the second clone's pull needs several requests and
	// the push is long enough to be compressed.
	for i := range 40 {
		run(one, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("commit %d", i))
		run(two, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("two's commit %d", i))
	}
	run(one, "push", "-q")
	run(two, "pull", "-q", "--rebase")
	run(two, "push", "-q")
	run(one, "pull", "-q", "--ff-only")
	if a, b := run(one, "rev-parse", "HEAD"), run(two, "rev-parse", "HEAD"); a != b || commits(t, url)[0].Hash != a {
		t.Errorf("the clones and the server do not agree: %s, %s", a, b)
	}
	run(two, "push", "-q", "origin", "HEAD:refs/heads/feature")
	run(two, "push", "-q", "origin", "--delete", "feature")
	run(two, "fsck", "--strict")
}
