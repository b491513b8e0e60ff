package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
)

func markerFile(layout cluster.Layout) string { return filepath.Join(layout.Dir, keepLogsMarker) }

// Down ends a cluster and returns when nothing of it is left. found is false when there was
// nothing to end or to clean up.
func Down(ctx context.Context, name string, node cluster.RealNode, keepLogs bool) (found bool, err error) {
	layout, err := cluster.LayoutOf(name)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(layout.Dir); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	alive, err := layout.Alive()
	if err != nil {
		return false, err
	}
	if !alive {
		return true, sweep(ctx, layout, node, keepLogs)
	}
	if keepLogs {
		if err := os.WriteFile(markerFile(layout), nil, 0o600); err != nil {
			return true, fmt.Errorf("asking the supervisor to keep the logs: %w", err)
		}
	}
	if err := end(ctx, layout); err != nil {
		return true, err
	}
	// One that was killed while it was waited for has not tidied up.
	if _, err := os.Stat(layout.Dir); errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	return true, sweep(ctx, layout, node, keepLogs)
}

// end sends SIGTERM until the supervisor is gone: one that is just starting may not have written
// its number yet.
func end(ctx context.Context, layout cluster.Layout) error {
	signalled := 0
	for {
		alive, err := layout.Alive()
		if err != nil || !alive {
			return err
		}
		info, err := layout.ReadInfo()
		if err == nil && info.SupervisorPID != 0 && info.SupervisorPID != signalled {
			if err := terminate(layout, info.SupervisorPID); err != nil {
				return err
			}
			signalled = info.SupervisorPID
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the supervisor to end: %w", ctx.Err())
		case <-time.After(lookAgain):
		}
	}
}

// terminate signals the supervisor by a descriptor: between reading its number and here it may have
// ended and the number may have been given to another process, which the lock would tell.
func terminate(layout cluster.Layout, pid int) (err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the supervisor's process: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if alive, err := layout.Alive(); err != nil || !alive {
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("asking the supervisor to end: %w", err)
	}
	return nil
}

// sweep removes what a supervisor that was killed left behind.
func sweep(ctx context.Context, layout cluster.Layout, node cluster.RealNode, keepLogs bool) error {
	info, err := layout.ReadInfo()
	if err != nil && !errors.Is(err, cluster.ErrNotRunning) {
		return errors.Join(err, layout.Remove(keepLogs))
	}
	// A supervisor that was killed early has a node, but has not yet said so.
	if _, err := os.Stat(layout.Node()); err == nil {
		c := &cluster.Cluster{Name: info.Name, Layout: layout, BinDir: info.BinDir, Network: info.Network, Report: func(string) {}}
		if err := node.Clean(ctx, c); err != nil {
			return err
		}
	}
	return layout.Remove(keepLogs)
}
