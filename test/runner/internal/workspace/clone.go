package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
)

// present makes a folder hold a repository on a branch. A clone that is there
// already keeps its commits, pushed or not, as long as its URL is the same: it
// is what a resumed session goes on with. One of another URL is replaced.
func (w *Workspace) present(ctx context.Context, folder, url, branch string) (*git.Repository, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	repo, err := git.PlainOpen(folder)
	if err != nil && !errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("opening the clone in %s: %w", folder, err)
	}
	if err != nil || origin(repo) != url {
		return cloneInto(ctx, folder, url, branch)
	}
	head, err := repo.Head()
	if err != nil {
		return nil, fmt.Errorf("reading the branch of the clone in %s: %w", folder, err)
	}
	if head.Name() == branchRef(branch) {
		return repo, nil
	}
	return repo, switchTo(ctx, repo, branch)
}

func cloneInto(ctx context.Context, folder, url, branch string) (*git.Repository, error) {
	parent := filepath.Dir(folder)
	if err := os.MkdirAll(parent, 0o775); err != nil {
		return nil, fmt.Errorf("creating the folder for clones: %w", err)
	}
	fresh, err := os.MkdirTemp(parent, ".cloning-*")
	if err != nil {
		return nil, fmt.Errorf("creating a folder to clone into: %w", err)
	}
	_, err = git.PlainCloneContext(ctx, fresh, false, &git.CloneOptions{
		URL: url, ReferenceName: branchRef(branch), SingleBranch: true, Tags: git.NoTags,
	})
	if err != nil {
		return nil, errors.Join(
			fmt.Errorf("cloning branch %s of %s (check that the URL and the branch exist): %w", branch, Redacted(url), err),
			os.RemoveAll(fresh))
	}
	if err := os.Chmod(fresh, 0o775); err != nil { // temporary folders are for one user alone
		return nil, fmt.Errorf("opening the clone to the group: %w", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return nil, fmt.Errorf("removing the clone that %s replaces: %w", Redacted(url), err)
	}
	if err := os.Rename(fresh, folder); err != nil {
		return nil, fmt.Errorf("moving the clone to its place: %w", err)
	}
	repo, err := git.PlainOpen(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the new clone: %w", err)
	}
	return repo, nil
}

// switchTo checks out another branch, made from the server's when it is new here.
func switchTo(ctx context.Context, repo *git.Repository, branch string) error {
	remote, err := fetch(ctx, repo, branch)
	if err != nil {
		return err
	}
	tree, err := repo.Worktree()
	if err != nil {
		return fmt.Errorf("opening the work tree: %w", err)
	}
	checkout := &git.CheckoutOptions{Branch: branchRef(branch)}
	if _, err := repo.Reference(checkout.Branch, true); errors.Is(err, plumbing.ErrReferenceNotFound) {
		checkout.Create, checkout.Hash = true, remote
	}
	if err := tree.Checkout(checkout); err != nil {
		return fmt.Errorf("switching to branch %s: %w", branch, err)
	}
	return nil
}

// fetch brings a branch up to date with the server and returns where that stands.
func fetch(ctx context.Context, repo *git.Repository, branch string) (plumbing.Hash, error) {
	tracking := plumbing.NewRemoteReferenceName(git.DefaultRemoteName, branch)
	spec := config.RefSpec(fmt.Sprintf("+%s:%s", branchRef(branch), tracking))
	err := repo.FetchContext(ctx, &git.FetchOptions{RefSpecs: []config.RefSpec{spec}, Tags: git.NoTags})
	if err != nil && !errors.Is(err, git.NoErrAlreadyUpToDate) {
		return plumbing.ZeroHash, fmt.Errorf("fetching branch %s (check that it exists): %w", branch, err)
	}
	ref, err := repo.Reference(tracking, true)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading where branch %s stands on the server: %w", branch, err)
	}
	return ref.Hash(), nil
}

// origin is the URL a clone was made from; a clone that has lost it is replaced.
func origin(repo *git.Repository) string {
	remote, err := repo.Remote(git.DefaultRemoteName)
	if err != nil || len(remote.Config().URLs) == 0 {
		return ""
	}
	return remote.Config().URLs[0]
}
