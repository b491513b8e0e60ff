// Command devcluster runs a Kubernetes of its own on this machine, built from Go modules: a control
// plane with either simulated nodes or, as root, a real one.
//
//	devcluster up        start one (building its programs the first time)
//	devcluster kubectl get nodes
//	devcluster down      end it; nothing is left behind
//
// Each cluster has a name (--name), a folder, and ports of its own, so several run side by side.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.New(os.Stdout, os.Stderr).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		if errors.Is(err, cli.ErrNotBuilt) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}
