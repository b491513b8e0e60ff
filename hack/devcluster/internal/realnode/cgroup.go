package realnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// busyPause is how often the kernel is asked again to remove a cgroup.
const busyPause = 20 * time.Millisecond

// cgroup is the name of the cgroup that holds all pods of the cluster.
func (n network) cgroup() string { return n.Link }

type mount struct{ point, kind string }

// readMounts lists the mounts of this process in the order in which they were made.
func readMounts() ([]mount, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var mounts []mount
	for line := range strings.Lines(string(content)) {
		// 36 35 98:0 /root /mount/point rw,noatime shared:1 - ext3 /dev/root rw
		front, back, found := strings.Cut(line, " - ")
		fields := strings.Fields(front)
		if !found || len(fields) < 5 {
			return nil, fmt.Errorf("listing mounts: can't read %q", line)
		}
		kind, _, _ := strings.Cut(back, " ")
		mounts = append(mounts, mount{point: unescape.Replace(fields[4]), kind: kind})
	}
	return mounts, nil
}

// cgroupDirs lists where a cgroup is: once in each hierarchy of version 1, or in the one of version 2.
// unified tells that version 2 is alone.
func cgroupDirs(name string) (dirs []string, unified bool, err error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, false, err
	}
	unified = true
	for _, m := range mounts {
		if m.kind != "cgroup" && m.kind != "cgroup2" {
			continue
		}
		unified = unified && m.kind == "cgroup2"
		dirs = append(dirs, filepath.Join(m.point, name))
	}
	if len(dirs) == 0 {
		return nil, false, errors.New("no cgroups are mounted on this machine: mount them at /sys/fs/cgroup")
	}
	return dirs, unified, nil
}

// makeCgroup makes the cgroup, which the kubelet expects to find.
func makeCgroup(name string) error {
	dirs, unified, err := cgroupDirs(name)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making the cgroup of the node: %w", err)
		}
		// In version 1 a new cgroup may use no processor before it is told which.
		for _, setting := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inherit(dir, setting); err != nil {
				return err
			}
		}
	}
	if unified { // a cgroup has the controllers that its parent hands down
		control := filepath.Join(filepath.Dir(dirs[0]), "cgroup.subtree_control")
		if err := os.WriteFile(control, []byte("+cpu +cpuset +memory +pids"), 0o644); err != nil {
			return fmt.Errorf("handing the cgroup controllers to the node: %w", err)
		}
	}
	return nil
}

// inherit copies a setting from the parent, where the hierarchy has it and it is empty.
func inherit(dir, setting string) error {
	own := filepath.Join(dir, setting)
	content, err := os.ReadFile(own)
	if errors.Is(err, fs.ErrNotExist) || len(strings.TrimSpace(string(content))) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", own, err)
	}
	inherited, err := os.ReadFile(filepath.Join(filepath.Dir(dir), setting))
	if err != nil {
		return fmt.Errorf("reading the parent of %s: %w", own, err)
	}
	if len(strings.TrimSpace(string(inherited))) == 0 {
		return nil
	}
	if err := os.WriteFile(own, inherited, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", own, err)
	}
	return nil
}

// cgroupTree lists a cgroup and all below it, parents first.
func cgroupTree(root string) ([]string, error) {
	var tree []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed since, or never there
		}
		if err == nil && entry.IsDir() {
			tree = append(tree, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking at the cgroups of the node: %w", err)
	}
	return tree, nil
}

// cgroupProcesses lists the processes in cgroups and all below them.
func cgroupProcesses(roots []string) ([]int, error) {
	var pids []int
	for _, root := range roots {
		tree, err := cgroupTree(root)
		if err != nil {
			return nil, err
		}
		for _, dir := range tree {
			content, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
				continue // removed since
			}
			if err != nil {
				return nil, fmt.Errorf("listing the processes of a cgroup: %w", err)
			}
			for field := range strings.FieldsSeq(string(content)) {
				pid, err := strconv.Atoi(field)
				if err != nil {
					return nil, fmt.Errorf("listing the processes of %s: %w", dir, err)
				}
				if pid > 0 && !slices.Contains(pids, pid) {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids, nil
}

// removeCgroups removes cgroups that hold no process any more. The kernel needs a moment to see so.
func removeCgroups(ctx context.Context, roots []string) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	for _, root := range roots {
		tree, err := cgroupTree(root)
		if err != nil {
			return err
		}
		for _, dir := range slices.Backward(tree) {
			for {
				err := unix.Rmdir(dir)
				if err == nil || errors.Is(err, unix.ENOENT) {
					break
				}
				if !errors.Is(err, unix.EBUSY) || ctx.Err() != nil {
					return fmt.Errorf("removing the cgroup %s: %w", dir, err)
				}
				time.Sleep(busyPause)
			}
		}
	}
	return nil
}
