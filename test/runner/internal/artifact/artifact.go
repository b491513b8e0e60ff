// Package artifact writes what a run leaves behind for people and for tests: a
// report of the work, in a folder of its own for each run of the session, as
// report.md and as report.json.
//
// The folders are numbered from 1 by what is there already, so after a restart
// on the same workspace run-2 stands beside run-1.
package artifact

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ambient-code/agentic-operator/test/runner/internal/workspace"
)

// runPrefix begins the name of each run's folder.
const runPrefix = "run-"

// Report is what is written.
type Report struct {
	Session   string             `json:"session"`
	Namespace string             `json:"namespace"`
	Run       int                `json:"run"`
	Resume    bool               `json:"resume"`
	Started   time.Time          `json:"started"`
	Changes   []workspace.Change `json:"changes"`
	// Outcome is empty while the run goes on, or when it was cut off.
	Outcome string `json:"outcome,omitempty"`
}

// Folder makes the folder of a new run inside the folder of artifacts, and
// returns it with the number of the run.
func Folder(artifacts string) (string, int, error) {
	if err := os.MkdirAll(artifacts, 0o775); err != nil {
		return "", 0, fmt.Errorf("creating the folder of artifacts: %w", err)
	}
	entries, err := os.ReadDir(artifacts)
	if err != nil {
		return "", 0, fmt.Errorf("reading the folder of artifacts: %w", err)
	}
	run := 1
	for _, entry := range entries {
		text, isRun := strings.CutPrefix(entry.Name(), runPrefix)
		if number, err := strconv.Atoi(text); isRun && err == nil && number >= run {
			run = number + 1
		}
	}
	folder := filepath.Join(artifacts, runPrefix+strconv.Itoa(run))
	if err := os.Mkdir(folder, 0o775); err != nil {
		return "", 0, fmt.Errorf("creating the folder of run %d: %w", run, err)
	}
	return folder, run, nil
}

// Write writes the report into a run's folder, over an older one.
func Write(folder string, report Report) error {
	asJSON, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := replace(filepath.Join(folder, "report.json"), append(asJSON, '\n')); err != nil {
		return err
	}
	return replace(filepath.Join(folder, "report.md"), []byte(markdown(report)))
}

func markdown(report Report) string {
	var text strings.Builder
	outcome := report.Outcome
	if outcome == "" {
		outcome = "not ended"
	}
	fmt.Fprintf(&text, "# Session %s, run %d\n\n", report.Session, report.Run)
	fmt.Fprintf(&text, "- Namespace: %s\n- Resumed: %t\n- Started: %s\n- Outcome: %s\n\n",
		report.Namespace, report.Resume, report.Started.UTC().Format(time.RFC3339), outcome)
	if len(report.Changes) == 0 {
		text.WriteString("Nothing was changed.\n")
		return text.String()
	}
	text.WriteString("| Repository | Branch | File | Commit | Pushed |\n|---|---|---|---|---|\n")
	for _, change := range report.Changes {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %t |\n", change.Repository, change.Branch, change.File, change.Commit, change.Pushed)
	}
	return text.String()
}

// replace writes a file in one step: who reads it sees the old or the new one.
func replace(file string, content []byte) error {
	if err := os.WriteFile(file+".new", content, 0o664); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(file), err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("replacing %s: %w", filepath.Base(file), err)
	}
	return nil
}
