package artifact_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/test/runner/internal/artifact"
	"github.com/ambient-code/agentic-operator/test/runner/internal/workspace"
)

func TestFoldersAreNumbered(t *testing.T) {
	artifacts := filepath.Join(t.TempDir(), "artifacts")
	for want := 1; want <= 3; want++ {
		if want == 3 { // strangers do not disturb the count
			if err := os.Mkdir(filepath.Join(artifacts, "run-x"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		folder, run, err := artifact.Folder(artifacts)
		if err != nil || run != want {
			t.Fatalf("run %d in %s, %v; want %d", run, folder, err, want)
		}
	}
}

func TestWrite(t *testing.T) {
	folder := t.TempDir()
	report := artifact.Report{Session: "s", Namespace: "ns", Run: 2, Resume: true}
	for _, outcome := range []string{"", "finished"} {
		report.Outcome = outcome
		report.Changes = append(report.Changes, workspace.Change{Repository: "app", Branch: "main", File: "README.md", Commit: "abc", Pushed: true})
		if err := artifact.Write(folder, report); err != nil {
			t.Fatal(err)
		}
	}
	var read artifact.Report
	text, err := os.ReadFile(filepath.Join(folder, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &read); err != nil || read.Outcome != "finished" || len(read.Changes) != 2 || !read.Resume {
		t.Errorf("report.json holds %+v, %v", read, err)
	}
	text, err = os.ReadFile(filepath.Join(folder, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Session s, run 2", "Resumed: true", "Outcome: finished", "| app | main | README.md | abc | true |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("report.md lacks %q:\n%s", want, text)
		}
	}
}
