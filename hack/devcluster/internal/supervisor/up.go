package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

const (
	supervisorLog = "supervisor"
	lookAgain     = 50 * time.Millisecond
	longestReport = 1 << 20
	// portTries is how often a cluster is started when another program takes one of its ports
	// between the choice and the start.
	portTries = 3
)

// Up starts a cluster and returns when it is ready, or finds it running. step hears what happens.
func Up(ctx context.Context, options Options, node cluster.RealNode, step func(string)) (info cluster.Info, started bool, err error) {
	for range portTries - 1 {
		info, started, err = up(ctx, options, node, step)
		if err == nil || !strings.Contains(err.Error(), "address already in use") {
			return info, started, err
		}
		step("a port was taken meanwhile; starting again with others")
	}
	return up(ctx, options, node, step)
}

func up(ctx context.Context, options Options, node cluster.RealNode, step func(string)) (info cluster.Info, started bool, err error) {
	layout, err := cluster.LayoutOf(options.Name)
	if err != nil {
		return cluster.Info{}, false, err
	}
	unlock, err := lockRoot(filepath.Dir(layout.Dir))
	if err != nil {
		return cluster.Info{}, false, err
	}
	alive, err := layout.Alive()
	if err != nil || alive {
		if err := errors.Join(err, unlock()); err != nil {
			return cluster.Info{}, false, err
		}
		info, err := waitReady(ctx, layout)
		return info, false, err
	}
	child, err := spawn(ctx, layout, options, node)
	if err != nil {
		return cluster.Info{}, false, errors.Join(err, unlock())
	}
	if err := child.follow(ctx, step, unlock); err != nil {
		return cluster.Info{}, false, err
	}
	info, err = layout.ReadInfo()
	return info, true, err
}

// lockRoot keeps two runs from choosing the same ports or starting the same cluster.
func lockRoot(root string) (unlock func() error, err error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the clusters (set %s to another one): %w", cluster.StateVariable, err)
	}
	file, err := os.OpenFile(filepath.Join(root, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the folder of the clusters: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the folder of the clusters: %w", err), file.Close())
	}
	return file.Close, nil
}

// waitReady waits for a cluster that another command is starting.
func waitReady(ctx context.Context, layout cluster.Layout) (cluster.Info, error) {
	for {
		info, err := layout.ReadInfo()
		if err == nil && info.Ready {
			return info, nil
		}
		alive, aliveErr := layout.Alive()
		if aliveErr != nil {
			return cluster.Info{}, aliveErr
		}
		if !alive {
			return cluster.Info{}, errors.New("the cluster ended while it was starting")
		}
		select {
		case <-ctx.Done():
			return cluster.Info{}, fmt.Errorf("waiting for the cluster to start: %w", ctx.Err())
		case <-time.After(lookAgain):
		}
	}
}

var errInterrupted = errors.New("interrupted; nothing was left running")

// child is a supervisor that was just started.
type child struct {
	cmd      *exec.Cmd
	reports  *os.File
	lifeline *os.File
	log      string
}

// spawn makes the cluster's folder and starts the supervisor.
func spawn(ctx context.Context, layout cluster.Layout, options Options, node cluster.RealNode) (*child, error) {
	if err := sweep(ctx, layout, node, false); err != nil {
		return nil, err
	}
	others, err := cluster.List()
	if err != nil {
		return nil, err
	}
	var taken []cluster.Ports
	for _, other := range others {
		taken = append(taken, other.Ports)
	}
	if options.Ports, err = cluster.ChoosePorts(taken); err != nil {
		return nil, err
	}
	if err := layout.Make(); err != nil {
		return nil, err
	}
	// The ports are noted at once, for whoever chooses next.
	note := cluster.Info{Name: options.Name, Dir: layout.Dir, Node: options.Node, BinDir: options.BinDir, Ports: options.Ports}
	if err := layout.WriteInfo(note); err != nil {
		return nil, err
	}
	c, err := launch(layout, options)
	if err != nil {
		return nil, errors.Join(err, layout.Remove(false))
	}
	return c, nil
}

func launch(layout cluster.Layout, options Options) (c *child, err error) {
	argument, err := options.Encode()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	output, err := os.OpenFile(proc.LogFile(layout.Logs(), supervisorLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the supervisor's log: %w", err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	reports, reportsEnd, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	lifelineEnd, lifeline, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a pipe: %w", err), reports.Close(), reportsEnd.Close())
	}
	cmd := exec.Command(self, Command, argument)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{reportsEnd, lifelineEnd} // descriptors 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	if err = errors.Join(err, reportsEnd.Close(), lifelineEnd.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the supervisor: %w", err), reports.Close(), lifeline.Close())
	}
	return &child{cmd: cmd, reports: reports, lifeline: lifeline, log: output.Name()}, nil
}

// follow passes the supervisor's steps on until it is ready; held is called once it holds its lock
// or has failed to. When ctx ends first it lets go of the lifeline and waits for the supervisor to
// clean up.
func (c *child) follow(ctx context.Context, step func(string), held func() error) error {
	unwatch := context.AfterFunc(ctx, func() { closeQuietly(c.lifeline) })
	defer unwatch()
	ready, failure := c.listen(step, sync.OnceValue(held))
	if ready {
		return errors.Join(failure, c.lifeline.Close(), c.reports.Close(), c.cmd.Process.Release())
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		failure = errors.Join(failure, err)
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	if failure == nil {
		failure = fmt.Errorf("the supervisor ended without a word; the end of its log:\n%s", proc.Tail(c.log))
	}
	return failure
}

// listen reads reports until the cluster is ready or the supervisor has ended.
func (c *child) listen(step func(string), held func() error) (ready bool, failure error) {
	lines := bufio.NewScanner(c.reports)
	lines.Buffer(nil, longestReport)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return false, errors.Join(fmt.Errorf("reading the supervisor's report: %w", err), held())
		}
		failure = errors.Join(failure, held())
		switch {
		case m.Step != "":
			step(m.Step)
		case m.Error != "":
			failure = errors.Join(failure, errors.New(m.Error))
		case m.Ready:
			if _, err := io.WriteString(c.lifeline, confirmation); err == nil {
				return true, failure
			}
		}
	}
	return false, errors.Join(failure, lines.Err(), held())
}

// closeQuietly closes a pipe that may be closed already.
func closeQuietly(file *os.File) {
	if err := file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return
	}
}
