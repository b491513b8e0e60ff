package cluster

import (
	"context"
	"io"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/build"
)

// RealNode is what package realnode provides (as realnode.Node{}) to the supervisor and the command line. It is written
// down as an interface so that the rest of this program builds and runs without root.
type RealNode interface {
	// Check says in one sentence what is missing for a real node here: root, a Debian package, a
	// kernel feature. Nil means that one can be started.
	Check() error
	// Components are the programs it needs beside those of the control plane.
	Components() []build.Component
	// Prepare makes the network namespace of the cluster and says what the control plane must know
	// of it. Called in the supervisor before the control plane starts, with c.Network still empty.
	Prepare(ctx context.Context, c *Cluster) (Network, error)
	// Start brings the node up with everything that runs on it (containerd, kubelet, kube-proxy,
	// DNS, volumes). It returns when the node is Ready and the cluster can be used. Processes are
	// started in c.Procs, which restarts and stops them.
	Start(ctx context.Context, c *Cluster) error
	// Stop ends what c.Procs does not: pods, shims, mounts. Called before the control plane stops
	// and before c.Procs is stopped; also after a Start that failed.
	Stop(ctx context.Context, c *Cluster) error
	// Clean removes whatever a node of that cluster left on the machine (namespace, mounts, shims,
	// cgroups), after all processes of c.Procs have ended or when the supervisor was killed. c comes from Open or is half made: only Name
	// and Layout are certain. Cleaning twice, or where there is nothing, is no error.
	Clean(ctx context.Context, c *Cluster) error
	// LoadImage imports an image archive into the running node. Called from another process, with
	// a cluster from Open.
	LoadImage(ctx context.Context, c *Cluster, file string, out io.Writer) error
}
