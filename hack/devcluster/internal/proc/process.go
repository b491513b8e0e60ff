package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	firstBackOff = 200 * time.Millisecond
	lastBackOff  = 10 * time.Second
	// steadyAfter is how long a process must have run for its next crash to count as the first.
	steadyAfter = 30 * time.Second
	probeEvery  = 50 * time.Millisecond
	tailLines   = 15
)

// State is what a process is doing at a moment.
type State struct {
	Name     string `json:"name"`
	PID      int    `json:"pid,omitempty"`
	Restarts int    `json:"restarts"`
	// LastExit tells how the latest run ended; empty when none has.
	LastExit string `json:"lastExit,omitempty"`
}

// Process is one program that is kept running until Stop.
type Process struct {
	spec    Spec
	logFile string

	stopping chan struct{} // closed by Stop
	ended    chan struct{} // closed when the process is gone for good

	mu    sync.Mutex
	cmd   *exec.Cmd // nil between two runs
	state State
}

// Name is the name in its Spec.
func (p *Process) Name() string { return p.spec.Name }

// LogFile is where its output goes.
func (p *Process) LogFile() string { return p.logFile }

// State tells what the process is doing now.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func start(spec Spec, logFile string) (*Process, error) {
	p := &Process{
		spec:     spec,
		logFile:  logFile,
		stopping: make(chan struct{}),
		ended:    make(chan struct{}),
		state:    State{Name: spec.Name},
	}
	cmd, err := p.launch()
	if err != nil {
		return nil, err
	}
	go p.keepRunning(cmd)
	return p, nil
}

// launch starts the program once more. The log file is handed to the child and closed here.
func (p *Process) launch() (cmd *exec.Cmd, err error) {
	output, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", p.spec.Name, err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	cmd = p.spec.command()
	cmd.Stdout, cmd.Stderr = output, output
	if err := spawn(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.spec.Name, err)
	}
	p.mu.Lock()
	p.cmd = cmd
	p.state.PID = cmd.Process.Pid
	p.mu.Unlock()
	select {
	case <-p.stopping: // Stop came while there was nothing to signal yet
		return cmd, p.signal(syscall.SIGKILL)
	default:
		return cmd, nil
	}
}

// keepRunning waits for the program and starts it again, with growing pauses, until Stop.
func (p *Process) keepRunning(cmd *exec.Cmd) {
	defer close(p.ended)
	pause := firstBackOff
	for {
		if cmd != nil {
			began := time.Now()
			p.recordExit(cmd.Wait())
			if time.Since(began) > steadyAfter {
				pause = firstBackOff
			}
		}
		select {
		case <-p.stopping:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, lastBackOff)
		var err error
		if cmd, err = p.launch(); err != nil {
			p.recordExit(err)
			cmd = nil
		}
	}
}

func (p *Process) recordExit(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = nil
	p.state.PID = 0
	p.state.Restarts++
	p.state.LastExit = "exit status 0"
	if err != nil {
		p.state.LastExit = err.Error()
	}
}

// WaitReady calls probe until it returns nil. It fails early, with the end of the log, when the
// program exits before it was ready, and when ctx ends.
func (p *Process) WaitReady(ctx context.Context, probe func(context.Context) error) error {
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		if state := p.State(); state.Restarts > 0 {
			return fmt.Errorf("%s ended while starting (%s); the end of its log:\n%s", p.spec.Name, state.LastExit, p.Tail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready (%w): %w; the end of its log:\n%s", p.spec.Name, ctx.Err(), err, p.Tail())
		case <-time.After(probeEvery):
		}
	}
}

// Stop asks the program to end, kills it when it does not within its time or that of ctx, and
// returns when it is gone. Stopping twice is harmless.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	select {
	case <-p.stopping:
	default:
		close(p.stopping)
	}
	p.mu.Unlock()
	if err := p.signal(p.spec.stopSignal()); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(p.spec.stopTimeout()):
	case <-ctx.Done():
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// signal reaches the whole process group of the program, so that what it started goes as well.
func (p *Process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	err := syscall.Kill(-p.cmd.Process.Pid, sig)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to %s: %w", sig, p.spec.Name, err)
	}
	return nil
}
