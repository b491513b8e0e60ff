package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// pushAttempts is how often a push is tried while others push to the same
// branch. Each round somebody gets through.
const pushAttempts = 20

// Change is one commit that was made.
type Change struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	File       string `json:"file"`
	Commit     string `json:"commit"`
	Pushed     bool   `json:"pushed"`
}

// Append adds a line to a file in every repository, commits that with the line
// as message, and pushes it where the session asked for pushes. It returns the
// changes made, also those made before an error.
func (w *Workspace) Append(ctx context.Context, file, line string) ([]Change, error) {
	w.changing.Lock()
	defer w.changing.Unlock()
	var made []Change
	for _, noted := range w.Repos() {
		change, err := w.appendTo(ctx, noted, file, line)
		if err != nil {
			return made, fmt.Errorf("changing %s in repository %s: %w", file, noted.Name, err)
		}
		made = append(made, change)
	}
	return made, nil
}

func (w *Workspace) appendTo(ctx context.Context, noted Repository, file, line string) (Change, error) {
	folder := filepath.Join(w.folder, reposFolder, noted.Name)
	repo, err := git.PlainOpen(folder)
	if err != nil {
		return Change{}, fmt.Errorf("opening it: %w", err)
	}
	change := Change{Repository: noted.Name, Branch: noted.Branch, File: file}
	for attempt := 1; ; attempt++ {
		hash, err := w.commit(repo, folder, file, line)
		if err != nil {
			return Change{}, err
		}
		change.Commit = hash.String()
		if !noted.AutoPush {
			break
		}
		pushErr := push(ctx, repo, noted.Branch)
		if pushErr == nil {
			change.Pushed = true
			break
		}
		moved, err := startOver(ctx, repo, noted.Branch, hash)
		if err != nil || !moved || attempt == pushAttempts {
			return Change{}, errors.Join(pushErr, err)
		}
	}
	return change, w.record(repo, noted)
}

func (w *Workspace) commit(repo *git.Repository, folder, file, line string) (plumbing.Hash, error) {
	if err := appendLine(folder, file, line); err != nil {
		return plumbing.ZeroHash, err
	}
	tree, err := repo.Worktree()
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("opening the work tree: %w", err)
	}
	// Without the status of the whole tree: it changes nothing and costs time.
	if err := tree.AddWithOptions(&git.AddOptions{Path: filepath.ToSlash(filepath.Clean(file)), SkipStatus: true}); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("staging the change: %w", err)
	}
	author := &object.Signature{Name: w.author.Name, Email: w.author.Email, When: time.Now()}
	hash, err := tree.Commit(line, &git.CommitOptions{Author: author})
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("committing: %w", err)
	}
	return hash, nil
}

func push(ctx context.Context, repo *git.Repository, branch string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ref := branchRef(branch)
	err := repo.PushContext(ctx, &git.PushOptions{RefSpecs: []config.RefSpec{config.RefSpec(ref + ":" + ref)}})
	if err != nil && !errors.Is(err, git.NoErrAlreadyUpToDate) {
		return fmt.Errorf("pushing branch %s: %w", branch, err)
	}
	return nil
}

// startOver undoes a commit that could not be pushed because others pushed
// first, and moves to where they are. It says false when nobody did: then the
// push failed for another reason. Commits older than this one are never given up.
func startOver(ctx context.Context, repo *git.Repository, branch string, made plumbing.Hash) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	remote, err := fetch(ctx, repo, branch)
	if err != nil {
		return false, err
	}
	ours, err := repo.CommitObject(made)
	if err != nil {
		return false, fmt.Errorf("reading commit %s: %w", made, err)
	}
	base, err := ours.Parent(0)
	if err != nil {
		return false, fmt.Errorf("reading the parent of commit %s: %w", made, err)
	}
	if base.Hash == remote {
		return false, nil
	}
	theirs, err := repo.CommitObject(remote)
	if err != nil {
		return false, fmt.Errorf("reading commit %s: %w", remote, err)
	}
	shared, err := base.IsAncestor(theirs)
	if err != nil {
		return false, fmt.Errorf("comparing branch %s with the server's: %w", branch, err)
	}
	if !shared {
		return false, fmt.Errorf("branch %s has commits that were never pushed, and the server's has others: merge them by hand", branch)
	}
	tree, err := repo.Worktree()
	if err != nil {
		return false, fmt.Errorf("opening the work tree: %w", err)
	}
	if err := tree.Reset(&git.ResetOptions{Commit: remote, Mode: git.HardReset}); err != nil {
		return false, fmt.Errorf("moving to the server's branch %s: %w", branch, err)
	}
	return true, nil
}

// appendLine writes only inside the folder, whatever links a repository holds.
func appendLine(folder, file, line string) (err error) {
	first, _, _ := strings.Cut(filepath.ToSlash(filepath.Clean(file)), "/")
	if !filepath.IsLocal(file) || first == git.GitDirName {
		return fmt.Errorf("%s is not a file of the repository: name one inside it, outside %s", file, git.GitDirName)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("opening its folder: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.MkdirAll(filepath.Dir(file), 0o775); err != nil {
		return fmt.Errorf("creating the file's folder: %w", err)
	}
	before, err := root.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the file: %w", err)
	}
	if len(before) > 0 && before[len(before)-1] != '\n' {
		line = "\n" + line
	}
	opened, err := root.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o664)
	if err != nil {
		return fmt.Errorf("opening the file: %w", err)
	}
	_, err = io.WriteString(opened, line+"\n")
	if err := errors.Join(err, opened.Close()); err != nil {
		return fmt.Errorf("writing the file: %w", err)
	}
	return nil
}
