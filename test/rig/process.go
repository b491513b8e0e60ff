package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Process is an operator that runs on this machine.
type Process struct {
	*Program
	// Metrics is the address of its metrics, Health that of its health checks.
	Metrics string
	Health  string

	kubeconfig string
}

// RunOperator builds the operator and runs it on this machine as its ServiceAccount, with the
// given variables and flags, its log going to a file.
func (c *Cluster) RunOperator(ctx context.Context, log string, env map[string]string, args ...string) (*Process, error) {
	return c.RunOperatorAs(ctx, types.NamespacedName{Namespace: OperatorNamespace, Name: OperatorName}, log, env, args...)
}

// RunOperatorAs is RunOperator as another ServiceAccount, whose namespace is the operator's.
func (c *Cluster) RunOperatorAs(ctx context.Context, who types.NamespacedName, log string, env map[string]string, args ...string) (*Process, error) {
	program := c.Operator
	if program == "" {
		program = filepath.Join(c.bin, "operator")
		if err := c.build(ctx, ".", "operator", "."); err != nil {
			return nil, err
		}
	}
	kubeconfig := log + ".kubeconfig"
	if err := c.ServiceAccountKubeconfig(ctx, who, kubeconfig); err != nil {
		return nil, err
	}
	ports, err := FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	args = append([]string{"--metrics-bind-address=" + ports[0], "--health-probe-bind-address=" + ports[1]}, args...)
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "NAMESPACE="+who.Namespace)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	started, err := Start("the operator", log, cmd)
	if err != nil {
		return nil, err
	}
	return &Process{Program: started, Metrics: ports[0], Health: ports[1], kubeconfig: kubeconfig}, nil
}

// BuildOperator builds the operator under a name of its own, with further flags for go build, and
// returns its path.
func (c *Cluster) BuildOperator(ctx context.Context, name string, flags ...string) (string, error) {
	return filepath.Join(c.bin, name), c.build(ctx, ".", name, ".", flags...)
}

// Pause stops the operator's process in the middle of whatever it does, until Resume.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a paused operator go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Kill ends the operator without giving it time for anything.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// Memory is how many bytes of memory the operator's process holds, by the kernel's account.
func (p *Process) Memory() (int64, error) { return p.status("VmRSS:") }

// PeakMemory is the most that it has held.
func (p *Process) PeakMemory() (int64, error) { return p.status("VmHWM:") }

// status is a number of bytes from the kernel's account of the process.
func (p *Process) status(field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("reading how much memory the operator holds: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == field {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("the kernel does not tell how much memory the operator holds")
}

// tick is the unit in which the kernel tells times of processors.
const tick = 10 * time.Millisecond

// CPU is how much time of a processor the operator has used.
func (p *Process) CPU() (time.Duration, error) { return cpu(p.cmd.Process.Pid) }

// CPU is how much time of a processor the control plane has used.
func (c *Cluster) CPU() (time.Duration, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, fmt.Errorf("listing processes: %w", err)
	}
	var used time.Duration
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(line), c.Dir+"/") {
			continue // it has ended, or is another's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return 0, fmt.Errorf("reading the number of a process: %w", err)
		}
		one, err := cpu(pid)
		if err != nil {
			return 0, err
		}
		used += one
	}
	return used, nil
}

func cpu(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading how much time of a processor process %d used: %w", pid, err)
	}
	// The name of the program, in parentheses, may have blanks in it.
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	var used time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading how much time of a processor process %d used: %w", pid, err)
		}
		used += time.Duration(ticks) * tick
	}
	return used, nil
}

// Stop ends the operator as Kubernetes would, and waits for it. It fails where the operator ended
// badly, or before.
func (p *Process) Stop() error {
	if err := p.Program.Stop(); err != nil {
		return err
	}
	if err := os.Remove(p.kubeconfig); err != nil {
		return fmt.Errorf("removing the operator's kubeconfig: %w", err)
	}
	return nil
}

// FreeAddresses finds addresses of this machine on which nobody listens.
func FreeAddresses(n int) (addresses []string, err error) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		// Closed only at the end, so that each is another.
		defer func() { err = errors.Join(err, listener.Close()) }()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
