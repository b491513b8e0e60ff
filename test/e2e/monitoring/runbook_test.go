//go:build e2e

package monitoring

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// disturbing marks blocks that are not run: they would disturb the other steps, or need what this
// cluster does not have.
var disturbing = []string{" delete pod ", " rollout restart ", "MAX_CONCURRENT_RECONCILES", " top pods", " --previous"}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// kubectlTold stands for kubectl and notes which of its commands failed.
const kubectlTold = `#!/bin/sh
case "$*" in *port-forward*) exec "$REAL_KUBECTL" --kubeconfig "$REAL_KUBECONFIG" "$@";; esac
"$REAL_KUBECTL" --kubeconfig "$REAL_KUBECONFIG" --cache-dir "$HOME" "$@" || { echo "kubectl $* failed" >>"$FAILURES"; exit 1; }
`

// answered is what commands of the runbook answer here, where all is well and two sessions have
// failed, next to what the runbook says of it.
var answered = []struct {
	command string
	// instead stands for the first line of the block, to see an answer of another state.
	instead    string
	says       *regexp.Regexp
	documented string
}{
	{"get deployment,pods", "", regexp.MustCompile(`deployment.apps/agentic-operator +2/2 `), "`READY 2/2`"},
	{"configmap agentic-operator-monitoring", "", regexp.MustCompile(`(?m)^mode: UserWorkload$`), "`mode: UserWorkload`"},
	{"configmap agentic-operator-monitoring", "", regexp.MustCompile(`part: service_monitor\n +reason: Kept\n +wired: true`), "`wired: true`"},
	{"configmap agentic-operator-monitoring", "", regexp.MustCompile(`part: scraped\n +reason: Scraped\n +wired: true`), "`part: scraped`"},
	{"configmap agentic-operator-monitoring", "", regexp.MustCompile(`part: certificate\n +reason: Own\n +wired: true`), "`part: certificate`"},
	{"configmap agentic-operator-monitoring", "", regexp.MustCompile(`(?m)reason: NotServed\n +wired: false$`), "`wired: false`"},
	{"get servicemonitor,service", "", regexp.MustCompile(`(?m)^servicemonitor.monitoring.coreos.com/agentic-operator `), "ServiceMonitor `agentic-operator`"},
	{"get servicemonitor,service", "", regexp.MustCompile(`(?m)^service/agentic-operator-metrics `), "Service `agentic-operator-metrics`"},
	{"get servicemonitor,service", "", regexp.MustCompile(`(?m)^endpointslice.discovery.k8s.io/agentic-operator-metrics-\S+ +IPv4 +8443 +[0-9.]+,[0-9.]+ `), "with addresses"},
	{"get servicemonitor,service", "", regexp.MustCompile(`(?m)^secret/agentic-operator-metrics-token `), "Secret `agentic-operator-metrics-token`"},
	{"Bearer $TOKEN", "", regexp.MustCompile(`(?m)^# HELP .+\n.+\n.+$`), "`# HELP`"},
	{"Bearer $TOKEN", "TOKEN=", regexp.MustCompile(`(?m)^Metrics are for callers with a token`), "`Metrics are for callers with a token`"},
	{"Bearer $TOKEN", "TOKEN=old", regexp.MustCompile(`(?m)^The token is none of this cluster, or has expired`), "`The token is none of this cluster, or has expired`"},
	{"Bearer $TOKEN", "TOKEN=$(kubectl -n $OPERATOR create token default)", regexp.MustCompile(`:default may not get /metrics`), "`may not get /metrics`"},
	{"get pods -o wide", "", regexp.MustCompile(`(?m)^agentic-operator-\S+ +1/1 +Running +0 `), "`1/1 Running`"},
	{"get lease agentic-operator.ambient-code.io -o yaml", "", regexp.MustCompile(`(?s)holderIdentity: agentic-operator-.*renewTime: "`), "`holderIdentity`"},
	{"containers[0].args", "", regexp.MustCompile(`"--leader-elect"`), "`--leader-elect`"},
	{"auth can-i", "", regexp.MustCompile(`(?m)^yes$`), "`yes`"},
	{"ambient-code\\.io/managed", "", regexp.MustCompile(`^true\n$`), "`true`"},
	{"uniq -c", "", regexp.MustCompile(`^ +2 RunnerFailed\n$`), "`RunnerFailed`"},
	{"grep Failed", "", regexp.MustCompile(`round-\d-fails-0 +Failed`), "a reason for each"},
}

// runbook runs the commands of the runbook, against a project whose sessions have ended, and compares
// what they answer with what the runbook says.
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
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	known := strings.NewReplacer("agentic-operator-metrics 8443", "agentic-operator-metrics "+port+":8443", "localhost:8443", "localhost:"+port, "session NAME", "session "+sessions.Items[0].Name,
		"agentic-session=NAME", "agentic-session="+sessions.Items[0].Name, "node NODE", "node "+nodes.Items[0].Name)
	blocks := strings.Split(string(content), "```sh\n")[1:]
	if len(blocks) < 15 {
		t.Fatalf("the runbook has %d blocks of commands", len(blocks))
	}
	run := func(block string) string {
		script := exec.CommandContext(t.Context(), "bash", "-c", known.Replace(block))
		script.Env = environment
		out, err := script.CombinedOutput()
		t.Logf("%s%s(%v)", block, out, err) // grep may rightly find nothing
		return string(out)
	}
	compared := map[string]bool{}
	for _, block := range blocks {
		block, expected, _ := strings.Cut(block, "```")
		if strings.Contains(block, "OPERATOR=agentic-operator-system") {
			continue // what the environment has
		}
		if slices.ContainsFunc(disturbing, func(mark string) bool { return strings.Contains(block, mark) }) {
			continue
		}
		out := run(block)
		for _, a := range answered {
			if !strings.Contains(block, a.command) {
				continue
			}
			compared[a.command] = true
			seen := out
			if a.instead != "" {
				seen = run(a.instead + "\n" + block[strings.Index(block, "\n")+1:])
			}
			if !a.says.MatchString(seen) {
				t.Errorf("the answer is\n%s\nwant %s, of:\n%s", seen, a.says, block)
			}
			if !strings.Contains(strings.ReplaceAll(expected, "\n", " "), a.documented) {
				t.Errorf("the runbook does not say %q after:\n%s", a.documented, block)
			}
		}
	}
	for _, a := range answered {
		if !compared[a.command] {
			t.Errorf("the runbook has no command %q", a.command)
		}
	}
	if failed, err := os.ReadFile(failures); err == nil {
		t.Errorf("commands of the runbook failed:\n%s", failed)
	}
}
