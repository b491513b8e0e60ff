//go:build e2e

// Package monitoring has the operator watched by a real Prometheus, which a real
// prometheus-operator configures out of what the operator makes by itself: on a real node, with the
// operator in a namespace that no manifest knows, and with monitoring added long after it. It needs
// root; "make e2e" runs it.
package monitoring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/monitoring"
)

const (
	// operatorNamespace is one that the manifests do not name.
	operatorNamespace = "tools-of-the-team"
	// consoleNamespace is where OpenShift's Console looks for dashboards.
	consoleNamespace = "openshift-config-managed"
	// pace stands for the half minute between two scrapes.
	pace = time.Second
	// soon is enough for what should take seconds, on a machine that has much else to do.
	soon = 2 * time.Minute
)

var (
	cluster *rig.Cluster
	stack   *monitoring.Stack
)

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e of monitoring:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	if os.Geteuid() != 0 && os.Getenv("E2E") != "required" {
		fmt.Println("skipped: a real node needs root; run: sudo make e2e")
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "e2e-monitoring-")
	if err != nil {
		return 1, fmt.Errorf("making a folder: %w", err)
	}
	defer func() {
		if err == nil && code == 0 {
			err = os.RemoveAll(dir)
		} else {
			fmt.Println("files and logs of monitoring are in", dir)
		}
	}()
	cluster, err = rig.Up(ctx, rig.Options{Name: fmt.Sprintf("e2e-monitoring-%d", os.Getpid()), Node: rig.NodeReal, DieWithUs: true, Progress: os.Stdout})
	if err != nil {
		return 1, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, cluster.Down(ending))
	}()
	if stack, err = monitoring.Prepare(ctx, cluster, dir); err != nil {
		return 1, err
	}
	if err := openShift(ctx); err != nil {
		return 1, err
	}
	if err := cluster.Load(ctx, rig.OperatorImage, rig.RunnerImage); err != nil {
		return 1, err
	}
	env := map[string]string{"AMBIENT_CODE_RUNNER_IMAGE": rig.RunnerImage.Name, "IMAGE_PULL_POLICY": "IfNotPresent"}
	if err := cluster.InstallInto(ctx, operatorNamespace, env); err != nil {
		return 1, err
	}
	if err := cluster.ReadyIn(ctx, operatorNamespace); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, stack.Stop()
}

// openShift makes what an operator tells OpenShift by: the namespaces of its monitoring and of what
// its Console shows.
func openShift(ctx context.Context) error {
	for _, name := range []string{monitoring.Platform.Namespace, consoleNamespace} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := cluster.Client.Create(ctx, namespace); err != nil {
			return fmt.Errorf("making the namespace %s: %w", name, err)
		}
	}
	return nil
}
