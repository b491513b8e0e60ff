// Package githost is a small git server that speaks git's "smart HTTP" protocol
// without a git binary: anybody may clone and push. It is what demos and
// end-to-end tests clone from and push to, so it prefers being simple to being
// quick, and keeps every repository in memory unless it is given a folder.
//
// Begin with New, which makes a Host; Add creates repositories in it; Handler
// serves them:
//
//	GET  /                         names of the repositories, as JSON
//	GET  /healthz                  200 as soon as it serves
//	GET  /REPO/info/refs           the protocol's first step (git does this)
//	POST /REPO/git-upload-pack     clone and fetch
//	POST /REPO/git-receive-pack    push
//	GET  /REPO/commits             newest commits of main, as JSON
//
// REPO may be written with or without ".git".
package githost

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/memory"
)

// repositoryName is what a repository may be called: one path element that
// needs no escaping in a URL.
var repositoryName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Host holds the repositories that are served.
type Host struct {
	folder string

	mu           sync.RWMutex
	repositories map[string]*repository
}

// repository is one repository. The lock covers every use of the storage:
// neither kind of storage allows use by several requests at once.
type repository struct {
	name string

	mu      sync.Mutex
	storage storage.Storer
}

// New makes a Host without repositories. With a folder the repositories live
// there, as bare repositories that git itself can open, and are found again
// after a restart; with an empty one they live in memory.
func New(folder string) *Host {
	return &Host{folder: folder, repositories: map[string]*repository{}}
}

// Add creates a repository with branch main and one commit of example files.
// One that exists in the Host's folder is served as it is.
func (h *Host) Add(name string) error {
	name = strings.TrimSuffix(name, ".git")
	if !repositoryName.MatchString(name) {
		return fmt.Errorf("repository name %q is not usable in a URL: use letters, digits, '.', '_' and '-'", name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, found := h.repositories[name]; found {
		return fmt.Errorf("repository %q was named twice: give each repository a name of its own", name)
	}
	store := h.storageFor(name)
	repo, err := git.InitWithOptions(store, nil, git.InitOptions{DefaultBranch: plumbing.Main})
	switch {
	case errors.Is(err, git.ErrRepositoryAlreadyExists):
	case err != nil:
		return fmt.Errorf("creating repository %q: %w", name, err)
	default:
		if err := commitExample(repo, name); err != nil {
			return err
		}
	}
	h.repositories[name] = &repository{name: name, storage: store}
	return nil
}

// Names lists the repositories in alphabetical order.
func (h *Host) Names() []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	names := make([]string, 0, len(h.repositories))
	for name := range h.repositories {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (h *Host) storageFor(name string) storage.Storer {
	if h.folder == "" {
		return memory.NewStorage()
	}
	files := osfs.New(filepath.Join(h.folder, name+".git"), osfs.WithBoundOS())
	return filesystem.NewStorage(files, cache.NewObjectLRUDefault())
}

func (h *Host) find(name string) (*repository, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	repo, found := h.repositories[strings.TrimSuffix(name, ".git")]
	return repo, found
}
