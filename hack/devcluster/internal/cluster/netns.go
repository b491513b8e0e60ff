package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// DialContext connects from inside the cluster's network namespace. A socket belongs to the
// namespace in which it was made, so one thread enters it, connects and is thrown away.
func (c *Cluster) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	if c.Network.NetNS == "" {
		return dialer.DialContext(ctx, network, address)
	}
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go inOtherThread(func() {
		if err := enter(c.Network.NetNS); err != nil {
			done <- result{err: err}
			return
		}
		conn, err := dialer.DialContext(ctx, network, address)
		done <- result{conn, err}
	})
	r := <-done
	return r.conn, r.err
}

// inOtherThread runs f in a thread that ends with it. The process's first thread never ends, and by
// its namespace others see that of the whole process, so it is kept busy while f gets another.
func inOtherThread(f func()) {
	runtime.LockOSThread() // and never unlocked, but for the first thread
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		inOtherThread(f)
	}()
	<-done
	runtime.UnlockOSThread()
}

func enter(path string) (err error) {
	namespace, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the cluster's network namespace: %w", err)
	}
	defer func() { err = errors.Join(err, namespace.Close()) }()
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the cluster's network namespace: %w", err)
	}
	return nil
}
