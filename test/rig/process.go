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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
)

// Process is an operator that runs on this machine.
type Process struct {
	// Metrics is the address of its metrics, Health that of its health checks, Log the path of its log.
	Metrics string
	Health  string
	Log     string

	cmd        *exec.Cmd
	kubeconfig string
	ended      chan struct{}
	err        error
}

// RunOperator builds the operator and runs it on this machine as its ServiceAccount, with the
// given variables and flags, its log going to a file.
func (c *Cluster) RunOperator(ctx context.Context, log string, env map[string]string, args ...string) (*Process, error) {
	return c.RunOperatorAs(ctx, types.NamespacedName{Namespace: OperatorNamespace, Name: OperatorName}, log, env, args...)
}

// RunOperatorAs is RunOperator as another ServiceAccount, whose namespace is the operator's.
func (c *Cluster) RunOperatorAs(ctx context.Context, who types.NamespacedName, log string, env map[string]string, args ...string) (*Process, error) {
	if err := c.build(ctx, ".", "operator", "."); err != nil {
		return nil, err
	}
	kubeconfig := log + ".kubeconfig"
	if err := c.ServiceAccountKubeconfig(ctx, who, kubeconfig); err != nil {
		return nil, err
	}
	ports, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("opening the operator's log: %w", err)
	}
	args = append([]string{"--metrics-bind-address=" + ports[0], "--health-probe-bind-address=" + ports[1]}, args...)
	// It ends with Stop, which lets it finish, or with us; not with a context, which would kill it.
	cmd := exec.Command(filepath.Join(c.bin, "operator"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "NAMESPACE="+who.Namespace)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	cmd.Stdout, cmd.Stderr = file, file
	p := &Process{Metrics: ports[0], Health: ports[1], Log: log, cmd: cmd, kubeconfig: kubeconfig, ended: make(chan struct{})}
	return p, errors.Join(p.start(), file.Close())
}

// start runs the program in a thread that lives as long as it does: the kernel ends a child when
// the thread that made it ends, so nothing is left when we are killed.
func (p *Process) start() error {
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
		return fmt.Errorf("starting the operator: %w", err)
	}
	return nil
}

// Ended is closed when the operator has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Pause stops the operator's process in the middle of whatever it does, until Resume.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a paused operator go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Kill ends the operator without giving it time for anything.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

func (p *Process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("sending %s to the operator: %w", sig, err)
	}
	return nil
}

// Memory is how many bytes of memory the operator's process holds, by the kernel's account.
func (p *Process) Memory() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("reading how much memory the operator holds: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("the kernel does not tell how much memory the operator holds")
}

// Stop ends the operator as Kubernetes would, and waits for it. It fails where the operator ended
// badly, or before.
func (p *Process) Stop() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the operator ended by itself: see its log %s", p.Log)
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending the operator: %w", err)
	}
	<-p.ended
	if err := os.Remove(p.kubeconfig); err != nil {
		return fmt.Errorf("removing the operator's kubeconfig: %w", err)
	}
	if p.err != nil {
		return fmt.Errorf("the operator ended badly: %w; see its log %s", p.err, p.Log)
	}
	return nil
}

// freeAddresses finds addresses of this machine on which nobody listens.
func freeAddresses(n int) (addresses []string, err error) {
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
