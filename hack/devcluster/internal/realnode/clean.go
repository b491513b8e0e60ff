package realnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

const (
	// killTimeout is how long killed processes may take to be gone.
	killTimeout = 15 * time.Second
	// pollMillis is how often a wait for them looks at its context.
	pollMillis = 100
)

// Clean removes whatever a node left on this machine: first the processes, then what they held. It
// relies on nothing but the cluster's folder, and does nothing where there is nothing.
func (Node) Clean(ctx context.Context, c *cluster.Cluster) error {
	dir := c.Layout.Node()
	used, err := readNetwork(dir)
	known := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cgroups := []string{}
	if known {
		if cgroups, _, err = cgroupDirs(used.cgroup()); err != nil {
			return err
		}
	}
	if err := killAll(ctx, netNS(dir), cgroups); err != nil {
		return err
	}
	if known {
		if err := errors.Join(removeCgroups(ctx, cgroups), used.disconnect(ctx)); err != nil {
			return err
		}
	}
	if err := unmountBelow(namespacesDir(dir)); err != nil {
		return err
	}
	// Last, so that a Clean which failed half-way can be repeated.
	for _, path := range []string{namespacesDir(dir), networkFile(dir)} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing what the node left: %w", err)
		}
	}
	return nil
}

// killAll kills every process that is in the cluster's network namespace (containerd, its shims, the
// kubelet, pods on the host network) or in its cgroups (all other pods), until there is none.
func killAll(ctx context.Context, netNS string, cgroups []string) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	for {
		inNetwork, err := processesIn(netNS)
		if err != nil {
			return err
		}
		inCgroups, err := cgroupProcesses(cgroups)
		if err != nil {
			return err
		}
		pids := slices.Concat(inNetwork, inCgroups)
		if len(pids) == 0 {
			return nil
		}
		if err := kill(ctx, pids); err != nil {
			return err
		}
	}
}

// kill returns when the processes are gone: one that is about to end has left its cgroup already,
// and still holds its namespaces.
func kill(ctx context.Context, pids []int) (err error) {
	var waiting []unix.PollFd
	defer func() {
		for _, process := range waiting {
			err = errors.Join(err, unix.Close(int(process.Fd)))
		}
	}()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("opening process %d of the node: %w", pid, err)
		}
		waiting = append(waiting, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("killing process %d of the node: %w", pid, err)
		}
	}
	for i := range waiting {
		for gone := 0; gone < 1; {
			if ctx.Err() != nil {
				return fmt.Errorf("the node's processes don't end though they were killed: %w", ctx.Err())
			}
			gone, err = unix.Poll(waiting[i:i+1], pollMillis)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("waiting for the node's processes to end: %w", err)
			}
		}
	}
	return nil
}

// processesIn lists the processes in the network namespace that a file holds; none when the file
// holds none.
func processesIn(netNS string) ([]int, error) {
	wanted, err := inode(netNS)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the cluster's network namespace: %w", err)
	}
	current, err := inode("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("looking at a network namespace: %w", err)
	}
	if wanted.device != current.device {
		return nil, nil // an ordinary file that no namespace is mounted on, or no longer
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		var pid int
		// This process is none of them, though a thread of it may be inside, where it made a connection.
		if _, err := fmt.Sscanf(entry.Name(), "%d", &pid); err != nil || pid == os.Getpid() {
			continue
		}
		// A process that has ended, or ends just now, has no namespace any more.
		if its, err := inode(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && its == wanted {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

type fileID struct{ device, number uint64 }

func inode(path string) (fileID, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, fmt.Errorf("%s has no inode", path)
	}
	return fileID{uint64(stat.Dev), stat.Ino}, nil
}

// disconnect takes the cable out. Its other end and the routes over it go with it.
func (n network) disconnect(ctx context.Context) error {
	if _, err := os.Stat("/sys/class/net/" + n.Link); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := proc.Run(ctx, ip("link", "del", n.Link)); err != nil {
		return fmt.Errorf("taking the cluster's network off the host: %w", err)
	}
	return nil
}

// unmountBelow unmounts dir and everything in it, the latest mount first.
func unmountBelow(dir string) error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, mount := range slices.Backward(mounts) {
		if mount.point != dir && !strings.HasPrefix(mount.point, dir+"/") {
			continue
		}
		if err := unix.Unmount(mount.point, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", mount.point, err)
		}
	}
	return nil
}
