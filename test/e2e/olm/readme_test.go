//go:build e2e

package olm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// readme runs the commands of the README's section on OLM that hold a text, as they stand there but
// for the namespace and the given replacements, in pairs of old and new.
func (s site) readme(t *testing.T, holding string, replacements ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(cluster.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n## Install with OLM\n")
	section, _, _ = strings.Cut(section, "\n## ")
	commands := ""
	for i, block := range strings.Split(section, "```") {
		if i%2 == 1 && strings.Contains(block, holding) {
			commands = strings.TrimPrefix(block, "sh\n")
		}
	}
	if commands == "" {
		t.Fatalf("the README tells no command with %q", holding)
	}
	commands = strings.NewReplacer(append(replacements, rig.OperatorNamespace, string(s))...).Replace(commands)
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	shell.Dir = cluster.Root()
	shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "PATH="+filepath.Dir(cluster.Kubectl())+":"+os.Getenv("PATH"))
	output, err := shell.CombinedOutput()
	t.Logf("%s\n%s", commands, output)
	if err != nil {
		t.Fatalf("running the README's commands: %v", err)
	}
}
