//go:build e2e

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// disturbing marks blocks that are not run: they would disturb the other steps, or need what this
// cluster does not have.
var disturbing = []string{" delete pod ", " rollout restart ", "MAX_CONCURRENT_RECONCILES", " top pods", " --previous", " port-forward "}

// kubectlTold stands for kubectl and notes which of its commands failed.
const kubectlTold = `#!/bin/sh
"$REAL_KUBECTL" --kubeconfig "$REAL_KUBECONFIG" --cache-dir "$HOME" "$@" || { echo "kubectl $* failed" >>"$FAILURES"; exit 1; }
`

// runbook runs the commands of the runbook, against a project whose sessions have ended.
func runbook(t *testing.T, project string) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectlTold), 0o700); err != nil {
		t.Fatal(err)
	}
	failures := filepath.Join(dir, "failures")
	environment := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir, "FAILURES="+failures,
		"REAL_KUBECTL="+cluster.Kubectl(), "REAL_KUBECONFIG="+cluster.Kubeconfig, "OPERATOR="+operatorNamespace, "PROJECT="+project)
	sessions := &v1alpha1.AgenticSessionList{}
	if err := cluster.Client.List(t.Context(), sessions, client.InNamespace(project)); err != nil || len(sessions.Items) == 0 {
		t.Fatalf("there are %d sessions (%v)", len(sessions.Items), err)
	}
	nodes := &corev1.NodeList{}
	if err := cluster.Client.List(t.Context(), nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatalf("there are %d nodes (%v)", len(nodes.Items), err)
	}
	known := strings.NewReplacer("NAME-run-1", sessions.Items[0].Name+"-run-1", "session NAME", "session "+sessions.Items[0].Name,
		"agentic-session=NAME", "agentic-session="+sessions.Items[0].Name, "node NODE", "node "+nodes.Items[0].Name)
	blocks := strings.Split(string(content), "```sh\n")[1:]
	if len(blocks) < 15 {
		t.Fatalf("the runbook has %d blocks of commands", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if strings.Contains(block, "OPERATOR=agentic-operator-system") {
			continue // what the environment has
		}
		if slices.ContainsFunc(disturbing, func(mark string) bool { return strings.Contains(block, mark) }) {
			continue
		}
		script := exec.CommandContext(t.Context(), "bash", "-c", known.Replace(block))
		script.Env = environment
		if out, err := script.CombinedOutput(); err != nil {
			t.Logf("%v:\n%s%s", err, block, out) // grep may rightly find nothing
		}
	}
	if failed, err := os.ReadFile(failures); err == nil {
		t.Errorf("commands of the runbook failed:\n%s", failed)
	}
}
