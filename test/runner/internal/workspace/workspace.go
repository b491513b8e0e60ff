// Package workspace keeps the git repositories of a session in its workspace:
// repositories to work on in repos/NAME, workflows in workflows/NAME.
//
// Begin with New. Add clones a repository or, when there is one of that name,
// switches it to another branch or URL; Remove deletes one; SetWorkflow clones
// the active workflow; Append changes a file in every repository, commits the
// change and pushes it where the session asks for that.
//
// A clone is made beside its final place and then moved there, so a run that is
// killed never leaves half a repository to the next one.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/ambient-code/agentic-operator/test/runner/internal/environment"
)

// Folders of the workspace.
const (
	reposFolder     = "repos"
	workflowsFolder = "workflows"
)

// patience is how long one exchange with a git server may take.
const patience = time.Minute

// Repository is one cloned repository.
type Repository struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Branch   string `json:"branch"`
	AutoPush bool   `json:"autoPush"`
	Commit   string `json:"commit"` // where the work tree stands
}

// Workflow is the active workflow.
type Workflow struct {
	GitURL string `json:"gitUrl"`
	Branch string `json:"branch"`
	Path   string `json:"path"`
	Commit string `json:"commit"`
}

// Author is who commits.
type Author struct{ Name, Email string }

// Workspace is the repositories of one session. Its methods may be called at the
// same time; changes are made one after the other.
type Workspace struct {
	folder string
	author Author

	changing sync.Mutex // held through a whole change, network included

	mu       sync.Mutex // guards what follows, never held for long
	repos    map[string]Repository
	workflow *Workflow
}

// New makes a Workspace in a folder that exists.
func New(folder string, author Author) *Workspace {
	return &Workspace{folder: folder, author: author, repos: map[string]Repository{}}
}

// NameOf is the name of a repository: the last part of its URL, without ".git".
func NameOf(repoURL string) string {
	last := path.Base(strings.TrimRight(repoURL, "/"))
	if i := strings.LastIndexByte(last, ':'); i >= 0 {
		last = last[i+1:] // git@host:name.git
	}
	return strings.TrimSuffix(last, ".git")
}

// Repos lists the repositories in order of their names.
func (w *Workspace) Repos() []Repository {
	w.mu.Lock()
	defer w.mu.Unlock()
	listed := make([]Repository, 0, len(w.repos))
	for _, repo := range w.repos {
		listed = append(listed, repo)
	}
	sort.Slice(listed, func(i, j int) bool { return listed[i].Name < listed[j].Name })
	return listed
}

// Workflow is the active workflow, or nil.
func (w *Workspace) Workflow() *Workflow {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.workflow
}

// Add makes a repository present under a name, on a branch.
func (w *Workspace) Add(ctx context.Context, name string, wanted environment.Repo) error {
	if err := checkName(name); err != nil {
		return err
	}
	w.changing.Lock()
	defer w.changing.Unlock()
	repo, err := w.present(ctx, filepath.Join(w.folder, reposFolder, name), wanted.URL, wanted.Branch)
	if err != nil {
		return fmt.Errorf("repository %s: %w", name, err)
	}
	return w.record(repo, Repository{Name: name, URL: Redacted(wanted.URL), Branch: wanted.Branch, AutoPush: wanted.AutoPush})
}

// Remove deletes a repository. It says whether there was one.
func (w *Workspace) Remove(name string) (bool, error) {
	if err := checkName(name); err != nil {
		return false, err
	}
	w.changing.Lock()
	defer w.changing.Unlock()
	if err := os.RemoveAll(filepath.Join(w.folder, reposFolder, name)); err != nil {
		return false, fmt.Errorf("removing repository %s: %w", name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, found := w.repos[name]
	delete(w.repos, name)
	return found, nil
}

// SetWorkflow clones a workflow and makes it the active one; one without a URL
// ends the present one.
func (w *Workspace) SetWorkflow(ctx context.Context, wanted environment.Workflow) error {
	w.changing.Lock()
	defer w.changing.Unlock()
	var active *Workflow
	if wanted.GitURL != "" {
		name := NameOf(wanted.GitURL)
		if err := checkName(name); err != nil {
			return err
		}
		folder := filepath.Join(w.folder, workflowsFolder, name)
		repo, err := w.present(ctx, folder, wanted.GitURL, wanted.Branch)
		if err != nil {
			return fmt.Errorf("workflow %s: %w", name, err)
		}
		if err := checkPath(folder, wanted.Path); err != nil {
			return err
		}
		head, err := repo.Head()
		if err != nil {
			return fmt.Errorf("reading where workflow %s stands: %w", name, err)
		}
		active = &Workflow{GitURL: Redacted(wanted.GitURL), Branch: wanted.Branch, Path: wanted.Path, Commit: head.Hash().String()}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.workflow = active
	return nil
}

// record notes a repository and where it stands.
func (w *Workspace) record(repo *git.Repository, noted Repository) error {
	head, err := repo.Head()
	if err != nil {
		return fmt.Errorf("reading where repository %s stands: %w", noted.Name, err)
	}
	noted.Commit = head.Hash().String()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.repos[noted.Name] = noted
	return nil
}

// Redacted is a repository's URL without a password that may be in it.
func Redacted(repoURL string) string {
	parsed, err := url.Parse(repoURL)
	if err != nil {
		return repoURL // git@host:name, which cannot hold a password
	}
	return parsed.Redacted()
}

func checkName(name string) error {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%q cannot be the name of a repository: use the last part of its URL, without .git", name)
	}
	return nil
}

func checkPath(folder, inside string) error {
	if inside == "" {
		return nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("opening the workflow's folder: %w", err)
	}
	_, err = root.Stat(inside)
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("the workflow's path %q is not in its repository, name a folder that is: %w", inside, err)
	}
	return nil
}

func branchRef(branch string) plumbing.ReferenceName { return plumbing.NewBranchReferenceName(branch) }
