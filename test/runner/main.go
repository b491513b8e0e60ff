// Command runner is a reference runner for agentic sessions: it honours the
// whole contract between the operator and a runner (environment, calls, token,
// exit codes, signals) and does a real piece of work, but obeys a script in the
// prompt instead of asking a language model. Demos and end-to-end tests run it
// as a real container. README.md beside this file describes it; package script
// has the language of the prompt.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ambient-code/agentic-operator/test/runner/internal/agui"
	"github.com/ambient-code/agentic-operator/test/runner/internal/artifact"
	"github.com/ambient-code/agentic-operator/test/runner/internal/environment"
	"github.com/ambient-code/agentic-operator/test/runner/internal/progress"
	"github.com/ambient-code/agentic-operator/test/runner/internal/run"
	"github.com/ambient-code/agentic-operator/test/runner/internal/script"
	"github.com/ambient-code/agentic-operator/test/runner/internal/workspace"
)

// Limits at the end of a run. After SIGTERM everything together must stay under
// a second.
const (
	workPatience     = 500 * time.Millisecond // for the work to notice that it is stopped
	stoppedPatience  = 300 * time.Millisecond // for the last progress message when stopped
	finishedPatience = 3 * time.Second        // for the last progress message otherwise
)

func main() {
	// Before anything else, so that no SIGTERM is lost.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	os.Exit(start(slog.New(slog.NewTextHandler(os.Stdout, nil)), signals))
}

// start prepares the run and starts serving, and returns the exit code.
func start(log *slog.Logger, signals <-chan os.Signal) int {
	started := time.Now()
	session, err := environment.Read(os.Environ())
	if err != nil {
		log.Error("a prerequisite is missing", "error", strings.ReplaceAll(err.Error(), "\n", "; "))
		return run.PrerequisiteMissing
	}
	folder, number, err := artifact.Folder(filepath.Join(session.WorkspacePath, session.ArtifactsDir))
	if err != nil {
		log.Error("a prerequisite is missing: the workspace cannot take artifacts", "error", err)
		return run.PrerequisiteMissing
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(session.Port)))
	if err != nil {
		log.Error("a prerequisite is missing: the port cannot be served on, name a free one in AGUI_PORT", "error", err)
		return run.PrerequisiteMissing
	}
	log.Info("serving", "address", listener.Addr().String(), "session", session.Name, "run", number, "resume", session.Resume)

	var orders script.Script
	if !session.Resume { // the first run obeyed the prompt
		orders = script.Parse(session.Prompt)
	}
	for _, line := range orders.Doubtful {
		log.Warn("a line of the prompt begins like a directive but is none, it is ignored", "line", line)
	}
	work := &run.Run{
		Session: session, Script: orders, Folder: folder,
		Workspace: workspace.New(session.WorkspacePath, author(session)),
		Progress:  progress.New(log, target(session)),
		Report: artifact.Report{
			Session: session.Name, Namespace: session.Namespace, Run: number, Resume: session.Resume,
			Started: started, Changes: []workspace.Change{},
		},
	}
	calls := &agui.Server{Log: log, Session: session, Script: orders, Workspace: work.Workspace, Run: number, Started: started}
	server := &http.Server{Handler: calls.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		// Serves until the process ends.
		log.Error("serving ended", "error", server.Serve(listener))
	}()
	return carryOut(log, work, signals)
}

// carryOut does the work until it ends or SIGTERM does.
func carryOut(log *slog.Logger, work *run.Run, signals <-chan os.Signal) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- work.Do(ctx) }()
	for {
		select {
		case code := <-ended:
			work.Progress.Close(finishedPatience)
			return code
		case <-signals:
			if work.Script.IgnoreSIGTERM {
				log.Info("SIGTERM is ignored, as the prompt asks")
				continue
			}
			stop()
			select {
			case <-ended:
				work.Progress.Close(stoppedPatience)
			case <-time.After(workPatience):
				log.Warn("the work did not stop in time, it is cut off")
			}
			return run.Terminated
		}
	}
}

// author is who makes the commits: the user who asked for the session, under an
// address that names the session.
func author(session environment.Session) workspace.Author {
	name := session.UserName
	if name == "" {
		name = session.Name
	}
	return workspace.Author{Name: name, Email: fmt.Sprintf("%s@%s.ambient-code.local", session.Name, session.Namespace)}
}

func target(session environment.Session) progress.Target {
	return progress.Target{
		Host: os.Getenv("KUBERNETES_SERVICE_HOST"), Port: os.Getenv("KUBERNETES_SERVICE_PORT"),
		CAFile: os.Getenv("KUBERNETES_CA_FILE"), TokenFile: session.TokenFile,
		Namespace: session.Namespace, Session: session.Name,
	}
}
