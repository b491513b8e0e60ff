package realnode

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

// The files that hold the namespaces are in a folder of their own, which is mounted on itself: the
// kernel lets a mount namespace be held only by a file on a private mount.
func namespacesDir(dir string) string { return filepath.Join(dir, "namespaces") }
func netNS(dir string) string         { return filepath.Join(namespacesDir(dir), "net") }
func mountNS(dir string) string       { return filepath.Join(namespacesDir(dir), "mnt") }

//go:embed mounts.sh
var mountsScript string

func makeNamespaces(ctx context.Context, layout cluster.Layout) error {
	dir := layout.Node()
	holder := namespacesDir(dir)
	if err := makeDir(holder); err != nil {
		return err
	}
	script := filepath.Join(dir, "mounts.sh")
	if err := os.WriteFile(script, []byte(mountsScript), 0o600); err != nil {
		return fmt.Errorf("making the cluster's namespaces: %w", err)
	}
	for _, command := range []proc.Spec{
		{Path: "mount", Args: []string{"--bind", holder, holder}},
		{Path: "mount", Args: []string{"--make-private", holder}},
		{Path: "touch", Args: []string{netNS(dir), mountNS(dir)}},
		{Path: "unshare", Args: []string{
			"--net=" + netNS(dir), "--mount=" + mountNS(dir), "--propagation=slave",
			"sh", "-eu", script, layout.Dir, holder,
		}},
	} {
		if _, err := proc.Run(ctx, command); err != nil {
			return fmt.Errorf("making the cluster's namespaces: %w", err)
		}
	}
	return nil
}

// inNode makes spec run where containerd and the kubelet are: in both namespaces.
func inNode(dir string, spec proc.Spec) proc.Spec {
	spec.Args = append([]string{"--net=" + netNS(dir), "--mount=" + mountNS(dir), "--", spec.Path}, spec.Args...)
	spec.Path = "nsenter"
	return spec
}
