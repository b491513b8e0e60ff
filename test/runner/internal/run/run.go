// Package run carries out one run of a session: it gets the repositories, obeys
// the script of the prompt, keeps the report, and says with which exit code the
// process must end.
//
// A run that resumes an earlier one gets its repositories and its workflow, and
// then waits to be stopped: the prompt was obeyed by the first run. With
// RESUME_EXIT in its environment it ends at once with that code instead.
package run

import (
	"context"
	"fmt"
	"time"

	"github.com/ambient-code/agentic-operator/test/runner/internal/artifact"
	"github.com/ambient-code/agentic-operator/test/runner/internal/ending"
	"github.com/ambient-code/agentic-operator/test/runner/internal/environment"
	"github.com/ambient-code/agentic-operator/test/runner/internal/progress"
	"github.com/ambient-code/agentic-operator/test/runner/internal/script"
	"github.com/ambient-code/agentic-operator/test/runner/internal/workspace"
)

// The exit codes of the runner contract.
const (
	Finished            = 0
	Failed              = 1
	PrerequisiteMissing = 2
	Terminated          = 143
)

// Run is one run of a session.
type Run struct {
	Session   environment.Session
	Script    script.Script
	Workspace *workspace.Workspace
	Progress  *progress.Reporter
	Folder    string // where the report goes
	Report    artifact.Report
}

// Do carries out the run until it ends or the context does, and returns the
// exit code. The report is written as soon as there is something to report, so
// that also a run that is cut off leaves one.
func (r *Run) Do(ctx context.Context) int {
	code, err := r.work(ctx)
	switch {
	case ctx.Err() != nil:
		code, r.Report.Outcome = Terminated, "stopped by SIGTERM"
		r.Progress.Say("Stopped by SIGTERM")
	case err != nil:
		r.Report.Outcome = "failed: " + err.Error()
		r.Progress.Say("Failed", "error", err)
	default:
		r.Report.Outcome = fmt.Sprintf("ended with exit code %d", code)
		r.Progress.Say("Finished", "exitCode", code)
	}
	if err := artifact.Write(r.Folder, r.Report); err != nil && ctx.Err() == nil {
		r.Progress.Say("The report cannot be written", "error", err)
		return Failed
	}
	return code
}

func (r *Run) work(ctx context.Context) (int, error) {
	if err := artifact.Write(r.Folder, r.Report); err != nil {
		return Failed, err
	}
	if err := r.fetch(ctx); err != nil {
		return Failed, err
	}
	if r.Session.Resume {
		if r.Session.ResumeExit != nil {
			return *r.Session.ResumeExit, nil
		}
		r.Progress.Say("Resumed, waiting to be stopped")
		<-ctx.Done()
		return Terminated, nil
	}
	for _, step := range r.Script.Steps {
		if code, ended, err := r.obey(ctx, step); ended || err != nil {
			return code, err
		}
	}
	return Finished, nil
}

// fetch gets the repositories and the workflow that the session starts with.
func (r *Run) fetch(ctx context.Context) error {
	for _, repo := range r.Session.Repos {
		name := workspace.NameOf(repo.URL)
		if err := r.Workspace.Add(ctx, name, repo); err != nil {
			return err
		}
		r.Progress.Say("Cloned", "repository", name, "branch", repo.Branch)
	}
	if r.Session.Workflow.GitURL == "" {
		return nil
	}
	if err := r.Workspace.SetWorkflow(ctx, r.Session.Workflow); err != nil {
		return err
	}
	r.Progress.Say("Workflow is active", "path", r.Session.Workflow.Path)
	return nil
}

// obey carries out one step. It says whether the run ends with it, and how.
func (r *Run) obey(ctx context.Context, step script.Step) (code int, ended bool, err error) {
	switch step.Verb {
	case script.Write:
		return Failed, false, r.write(ctx, step)
	case script.Sleep:
		r.Progress.Say("Sleeping", "for", step.Pause)
		select {
		case <-ctx.Done():
			return Terminated, true, nil
		case <-time.After(step.Pause):
			return Finished, false, nil
		}
	case script.Exit:
		return step.Code, true, nil
	case script.Fail:
		return Failed, true, fmt.Errorf("%s", step.Text)
	case script.Hang:
		r.Progress.Say("Waiting to be stopped")
		<-ctx.Done()
		return Terminated, true, nil
	case script.Crash:
		r.Progress.Say("Crashing")
		ending.Crash()
	case script.OOM:
		r.Progress.Say("Filling memory")
		ending.OutOfMemory()
	}
	return Failed, true, fmt.Errorf("the runner does not know the directive %q", step.Verb)
}

func (r *Run) write(ctx context.Context, step script.Step) error {
	changes, err := r.Workspace.Append(ctx, step.File, step.Text)
	r.Report.Changes = append(r.Report.Changes, changes...)
	for _, change := range changes {
		r.Progress.Say("Committed", "repository", change.Repository, "branch", change.Branch,
			"file", change.File, "commit", change.Commit, "pushed", change.Pushed)
	}
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		r.Progress.Say("There is no repository to change")
	}
	return artifact.Write(r.Folder, r.Report)
}
