package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
)

const restartTimeout = 3 * time.Minute

func (c *commands) restart() *cobra.Command {
	return &cobra.Command{
		Use: "restart COMPONENT", Short: "Kill a component of the control plane and wait until it works again", Args: cobra.ExactArgs(1),
		Example: "  devcluster restart kube-apiserver",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), restartTimeout)
			defer cancel()
			running, info, err := cluster.Open(c.name)
			if err != nil {
				return err
			}
			was, err := componentOf(info.SupervisorPID, args[0])
			if err != nil {
				return err
			}
			// Killed, for that is what a lost machine looks like to everybody else.
			if err := unix.Kill(was, unix.SIGKILL); err != nil {
				return fmt.Errorf("killing %s: %w", args[0], err)
			}
			if err := again(ctx, info.SupervisorPID, args[0], was); err != nil {
				return err
			}
			if err := running.WaitUsable(ctx, info.Node != cluster.NodeNone); err != nil {
				return err
			}
			return c.tell("%s works again.", args[0])
		},
	}
}

var errNoComponent = errors.New("is no running component of the control plane")

// again waits until the supervisor has started another process of a component.
func again(ctx context.Context, supervisor int, name string, was int) error {
	for {
		is, err := componentOf(supervisor, name)
		if err == nil && is != was {
			return nil
		}
		if err != nil && !errors.Is(err, errNoComponent) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s is started again: %w", name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// componentOf finds the process of a component among the children of the supervisor.
func componentOf(supervisor int, name string) (int, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", supervisor))
	if err != nil {
		return 0, fmt.Errorf("finding %s: %w", name, err)
	}
	for _, file := range files {
		children, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended
		}
		for _, child := range bytes.Fields(children) {
			command, err := os.ReadFile(filepath.Join("/proc", string(child), "cmdline"))
			if err != nil {
				continue // a process that has ended
			}
			program, _, _ := bytes.Cut(command, []byte{0})
			if filepath.Base(string(program)) == name {
				return strconv.Atoi(string(child))
			}
		}
	}
	return 0, fmt.Errorf("%s %w", name, errNoComponent)
}
