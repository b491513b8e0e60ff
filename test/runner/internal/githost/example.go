package githost

import (
	"fmt"
	"path"
	"time"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/util"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// exampleTime is fixed, so that a server's first commit has the same hash each
// time the server starts and clones made earlier still fit.
var exampleTime = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// exampleFiles is what a new repository holds: enough for an agent to have
// something to change, and a workflow folder for sessions that name one.
func exampleFiles(name string) map[string]string {
	return map[string]string{
		"README.md":              "# " + name + "\n\nA small example repository. Agents may change it as they like.\n",
		"CHANGELOG.md":           "# Changelog\n",
		"greeting/main.go":       "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"Hello.\")\n}\n",
		"workflows/review/GO.md": "# Review\n\nRead the change, say what could break.\n",
	}
}

// commitExample makes the first commit of a new bare repository through a work
// tree in memory.
func commitExample(repo *git.Repository, name string) error {
	files := memfs.New()
	worked, err := git.Open(repo.Storer, files)
	if err != nil {
		return fmt.Errorf("opening the new repository %q: %w", name, err)
	}
	tree, err := worked.Worktree()
	if err != nil {
		return fmt.Errorf("opening a work tree for %q: %w", name, err)
	}
	for file, text := range exampleFiles(name) {
		if err := files.MkdirAll(path.Dir(file), 0o755); err != nil {
			return fmt.Errorf("creating the folder of %s in %q: %w", file, name, err)
		}
		if err := util.WriteFile(files, file, []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing %s in %q: %w", file, name, err)
		}
		if _, err := tree.Add(file); err != nil {
			return fmt.Errorf("staging %s in %q: %w", file, name, err)
		}
	}
	author := &object.Signature{Name: "Example", Email: "example@ambient-code.local", When: exampleTime}
	if _, err := tree.Commit("Start of "+name, &git.CommitOptions{Author: author}); err != nil {
		return fmt.Errorf("making the first commit of %q: %w", name, err)
	}
	return nil
}
