package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/simnode"
)

// startNodes starts the nodes of the kind that was asked for.
func (s *supervisor) startNodes(ctx context.Context) error {
	switch s.options.Node {
	case cluster.NodeReal:
		return s.node.Start(ctx, s.cluster)
	case cluster.NodeSimulated:
		return s.startSimulated(ctx)
	}
	return nil
}

func (s *supervisor) startSimulated(ctx context.Context) error {
	s.cluster.Report(fmt.Sprintf("starting %d simulated nodes", s.options.Nodes))
	config, err := s.cluster.ClientConfig("simnode", cluster.Identity{CommonName: "devcluster:simnode", Organizations: []string{"system:masters"}})
	if err != nil {
		return err
	}
	// The nodes outlive ctx, which is that of the start.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	wait, err := simnode.Start(running, config, s.options.Nodes, s.cluster.Network.Address)
	if err != nil {
		cancel()
		return err
	}
	s.stopNodes, s.waitNodes = cancel, wait
	return nil
}

// dieWith calls end when the process is gone. The descriptor stays with this process for its life,
// and it can't come to mean another process that is given the same number.
func dieWith(pid int, end context.CancelCauseFunc) error {
	if pid == 0 {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("no process %d to die with: %w", pid, err)
	}
	go func() {
		for {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, int(time.Hour/time.Millisecond))
			if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
				continue
			}
			end(fmt.Errorf("process %d is gone", pid))
			return
		}
	}()
	return nil
}
