package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ambient-code/agentic-operator/test/rig"
)

const repository = "../.."

// startCluster starts a local cluster that ends with this process, or uses the one that the
// environment names. Where it would have to be built first, that is done only if the tests are
// required.
func startCluster(ctx context.Context) (*rig.Cluster, error) {
	options := rig.Options{
		Name: "integration-" + strconv.Itoa(os.Getpid()), Node: rig.NodeSimulated, Kubeconfig: os.Getenv("INTEGRATION_KUBECONFIG"),
		Audit: true, DieWithUs: true, OnlyIfBuilt: true,
	}
	if os.Getenv("INTEGRATION") == "required" {
		options.OnlyIfBuilt, options.Progress = false, os.Stderr
	}
	cluster, err := rig.Up(ctx, options)
	if err == nil && cluster.AuditLog == "" {
		cluster.AuditLog = os.Getenv("INTEGRATION_AUDIT_LOG")
	}
	return cluster, err
}

// endCluster ends it, when the context of the tests may have ended already.
func endCluster(cluster *rig.Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return cluster.Down(ctx)
}

// adminConfig is the administrator's access, without a limit of our own.
func adminConfig(cluster *rig.Cluster) *rest.Config {
	config := rest.CopyConfig(cluster.Config)
	config.QPS = -1
	config.UserAgent = "integration-tests"
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// runKubectl runs kubectl as the administrator and returns what it printed.
func runKubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cache, err := os.MkdirTemp("", "integration-kubectl-")
	if err != nil {
		return "", fmt.Errorf("making a folder for what kubectl caches: %w", err)
	}
	cmd := exec.CommandContext(ctx, suite.cluster.Kubectl(), append([]string{"--kubeconfig", suite.cluster.Kubeconfig, "--cache-dir", cache}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, os.RemoveAll(cache))
}

// trouble skips a test that harms the cluster itself unless the cluster is ours.
func trouble(t *testing.T) {
	t.Helper()
	if !suite.cluster.Local() {
		t.Skip("only a cluster that these tests have started may be harmed")
	}
}
