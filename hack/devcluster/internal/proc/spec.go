package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Spec says what to run and how to stop it.
type Spec struct {
	// Name is unique within a group; the log file is called after it.
	Name string
	// Path is the program, absolute or found on PATH.
	Path string
	// Args are its arguments, without the program itself.
	Args []string
	// Env is added to the environment of the supervisor, as KEY=value.
	Env []string
	// Dir is the working directory; empty means the supervisor's.
	Dir string
	// NetNS is the path of a network namespace to start in, such as /var/run/netns/dev. Empty
	// means the supervisor's own.
	NetNS string
	// StopSignal asks the program to end; zero means SIGTERM.
	StopSignal syscall.Signal
	// StopTimeout is how long it may take to end before it is killed; zero means ten seconds.
	StopTimeout time.Duration
}

const defaultStopTimeout = 10 * time.Second

func (s Spec) stopSignal() syscall.Signal {
	if s.StopSignal == 0 {
		return syscall.SIGTERM
	}
	return s.StopSignal
}

func (s Spec) stopTimeout() time.Duration {
	if s.StopTimeout == 0 {
		return defaultStopTimeout
	}
	return s.StopTimeout
}

// argv is the program with its arguments, entered through nsenter where a namespace is named.
// nsenter replaces itself with the program, so the process that we started stays the one we watch.
func (s Spec) argv() []string {
	var argv []string
	if s.NetNS != "" {
		argv = append(argv, "nsenter", "--net="+s.NetNS)
	}
	argv = append(argv, s.Path)
	return append(argv, s.Args...)
}

// command is not bound to a context: a group stops its processes in its own order and manner.
func (s Spec) command() *exec.Cmd {
	argv := s.argv()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Run runs a command that ends by itself and returns what it printed on standard output. The error
// of a command that failed carries what it said. The process is killed when ctx ends.
func Run(ctx context.Context, spec Spec) (string, error) {
	argv := spec.argv()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = spec.Dir
	cmd.Env = append(os.Environ(), spec.Env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		if said == "" {
			said = strings.TrimSpace(stdout.String())
		}
		if said != "" {
			err = errors.Join(err, errors.New(said))
		}
		return stdout.String(), fmt.Errorf("running %s: %w", strings.Join(argv, " "), err)
	}
	return stdout.String(), nil
}
