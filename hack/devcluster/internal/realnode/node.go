package realnode

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/build"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
)

const (
	// nodeName is what `kubectl get nodes` shows.
	nodeName = "node-1"
	// readyTimeout is generous: a node is Ready a few seconds after its start.
	readyTimeout = 90 * time.Second
)

// Node is the real node of a cluster. It keeps nothing in memory: all that is to be known of a
// running node lies in the cluster's folder.
type Node struct{}

var _ cluster.RealNode = Node{}

// Check says in one sentence why this machine can't run a real node; nil if it can.
func (Node) Check() error { return check() }

// Components are the programs of a node that are built and not installed.
func (Node) Components() []build.Component {
	return []build.Component{
		cluster.Kubernetes("kubelet"),
		cluster.Kubernetes("kube-proxy"),
		{Name: "coredns", Module: "coredns", Package: "github.com/coredns/coredns"},
		{Name: "volumes", Module: "volumes", Package: "."},
		{Name: "pause", Module: "pause", Package: "."},
	}
}

// Prepare makes the namespaces of the cluster and joins them to the host.
func (n Node) Prepare(ctx context.Context, c *cluster.Cluster) (cluster.Network, error) {
	if err := n.Clean(ctx, c); err != nil {
		return cluster.Network{}, err
	}
	c.Report("making the network of the node")
	if err := makeNamespaces(ctx, c.Layout); err != nil {
		return cluster.Network{}, err
	}
	chosen, err := connect(ctx, c.Layout.Node())
	if err != nil {
		return cluster.Network{}, err
	}
	return chosen.forCluster(c.Layout.Node()), nil
}

// Start brings up everything that runs on the node. The node reports itself Ready a moment later.
func (Node) Start(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	chosen, err := readNetwork(c.Layout.Node())
	if err != nil {
		return err
	}
	s := starting{Cluster: c, network: chosen}
	c.Report("starting containerd")
	if err := s.startContainerd(ctx); err != nil {
		return err
	}
	c.Report("starting kubelet, kube-proxy, DNS and volumes")
	if err := s.describeServices(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, start := range []func(context.Context) error{s.startKubelet, s.startProxy, s.startDNS, s.startVolumes} {
		group.Go(func() error { return start(ctx) })
	}
	return group.Wait()
}

// Stop has nothing to do while the control plane still runs: Clean ends the pods once nothing is left
// that would start them again.
func (Node) Stop(context.Context, *cluster.Cluster) error { return nil }

// LoadImage imports an image archive into the running node.
func (Node) LoadImage(ctx context.Context, c *cluster.Cluster, file string, out io.Writer) error {
	names, err := loadImage(ctx, c.Layout.Node(), file)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, names)
	return err
}

// starting is a node on its way up.
type starting struct {
	*cluster.Cluster
	network network
}

func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making a folder of the node: %w", err)
	}
	return nil
}
