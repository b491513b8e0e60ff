// The Agentic Operator runs AI agent sessions on Kubernetes. This program turns flags and
// environment into a manager with controllers; nothing else happens here.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/operator"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run() error {
	settings, err := config.Load(os.Args[1:], os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w; set KUBECONFIG to the path of a kubeconfig; a local cluster is started with: make devcluster && bin/devcluster up", err)
	}
	return operator.Run(ctrl.SetupSignalHandler(), settings, cluster)
}
