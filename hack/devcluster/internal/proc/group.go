package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Group is the processes of one cluster.
type Group struct {
	logDir string

	mu        sync.Mutex
	processes []*Process // in the order of their start
}

// NewGroup makes an empty group whose log files go to logDir, one file a process.
func NewGroup(logDir string) *Group { return &Group{logDir: logDir} }

// Start starts a process and keeps it running until it is stopped.
func (g *Group) Start(spec Spec) (*Process, error) {
	process, err := start(spec, LogFile(g.logDir, spec.Name))
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.processes = append(g.processes, process)
	return process, nil
}

// States lists the processes in the order of their start.
func (g *Group) States() []State {
	g.mu.Lock()
	defer g.mu.Unlock()
	states := make([]State, 0, len(g.processes))
	for _, process := range g.processes {
		states = append(states, process.State())
	}
	return states
}

// Stop stops the processes, the latest first, and returns when all are gone.
func (g *Group) Stop(ctx context.Context) error {
	g.mu.Lock()
	processes := g.processes
	g.processes = nil
	g.mu.Unlock()
	var failures []error
	for i := len(processes) - 1; i >= 0; i-- {
		failures = append(failures, processes[i].Stop(ctx))
	}
	return errors.Join(failures...)
}

// LogFile is the log file of the process of that name in logDir.
func LogFile(logDir, name string) string { return filepath.Join(logDir, name+".log") }

// Tail is the end of the process's log, for an error message.
func (p *Process) Tail() string { return Tail(p.logFile) }

// Tail returns the last lines of a log file, or the reason why it can't be read.
func Tail(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return strings.Join(lines, "\n")
}
