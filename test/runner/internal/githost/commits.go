package githost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// listedCommits is how many commits are listed at most.
const listedCommits = 50

// Commit is one commit as GET /REPO/commits lists it.
type Commit struct {
	Hash    string    `json:"hash"`
	Author  string    `json:"author"`
	Email   string    `json:"email"`
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
}

func (repo *repository) commits() (reply, error) {
	repo.mu.Lock()
	defer repo.mu.Unlock()
	listed := []Commit{}
	opened, err := git.Open(repo.storage, nil)
	if err != nil {
		return reply{}, fmt.Errorf("opening %q to list its commits: %w", repo.name, err)
	}
	main, err := opened.Reference(plumbing.Main, true)
	if err != nil {
		return reply{}, fmt.Errorf("finding branch main of %q: %w", repo.name, err)
	}
	history, err := opened.Log(&git.LogOptions{From: main.Hash()})
	if err != nil {
		return reply{}, fmt.Errorf("reading the commits of %q: %w", repo.name, err)
	}
	defer history.Close()
	for len(listed) < listedCommits {
		commit, err := history.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return reply{}, fmt.Errorf("reading a commit of %q: %w", repo.name, err)
		}
		listed = append(listed, describe(commit))
	}
	body, err := json.MarshalIndent(listed, "", "  ")
	if err != nil {
		return reply{}, fmt.Errorf("writing the commits of %q: %w", repo.name, err)
	}
	return reply{contentType: "application/json", body: append(body, '\n')}, nil
}

func describe(commit *object.Commit) Commit {
	return Commit{
		Hash: commit.Hash.String(), Author: commit.Author.Name, Email: commit.Author.Email,
		Time: commit.Author.When, Message: commit.Message,
	}
}
