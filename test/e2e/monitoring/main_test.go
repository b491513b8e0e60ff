//go:build e2e

// Package monitoring has the operator watched by a real Prometheus, which a real
// prometheus-operator configures out of what the operator makes by itself: on a real node, with the
// operator in a namespace that no manifest knows, and with monitoring added long after it. It needs
// root; "make e2e" runs it.
package monitoring

import (
	"context"
	"fmt"
	"os"
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
	os.Exit(rig.Suite{Name: "e2e-monitoring", Prepare: install}.Run(m.Run))
}

// install readies the monitoring and puts the operator onto the cluster, which has none yet.
func install(ctx context.Context, up *rig.Cluster, dir string) (after func() error, err error) {
	cluster = up
	if stack, err = monitoring.Prepare(ctx, cluster, dir); err != nil {
		return nil, err
	}
	if err := openShift(ctx); err != nil {
		return nil, err
	}
	if err := cluster.Load(ctx, rig.OperatorImage, rig.RunnerImage); err != nil {
		return nil, err
	}
	env := map[string]string{"AMBIENT_CODE_RUNNER_IMAGE": rig.RunnerImage.Name, "IMAGE_PULL_POLICY": "IfNotPresent"}
	if err := cluster.InstallInto(ctx, operatorNamespace, env); err != nil {
		return nil, err
	}
	return stack.Stop, cluster.ReadyIn(ctx, operatorNamespace)
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
