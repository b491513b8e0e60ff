package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Program is a program that runs beside the cluster until it is stopped or we end, however that is.
type Program struct {
	// Log is the path of its log.
	Log string

	name  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// Start starts a program whose log goes to a file. It does not end with a context, which would kill
// it, but with Stop, which lets it finish, or with us.
func Start(name, log string, cmd *exec.Cmd) (*Program, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	cmd.Stdout, cmd.Stderr = file, file
	p := &Program{Log: log, name: name, cmd: cmd, ended: make(chan struct{})}
	if err := errors.Join(p.start(), file.Close()); err != nil {
		return nil, err
	}
	return p, nil
}

// start starts it in a thread that lives as long as it does: the kernel ends a child when the
// thread that made it ends, so nothing is left when we are killed.
func (p *Program) start() error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	return nil
}

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// Signal sends it a signal.
func (p *Program) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("signalling %s: %w", p.name, err)
	}
	return nil
}

// Stop ends the program as Kubernetes would, and waits for it. It fails where the program ended
// badly, or before.
func (p *Program) Stop() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended by itself: see its log %s", p.name, p.Log)
	default:
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-p.ended
	if p.err != nil {
		return fmt.Errorf("%s ended badly: %w; see its log %s", p.name, p.err, p.Log)
	}
	return nil
}
