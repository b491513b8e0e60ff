package cluster

import (
	"fmt"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

// Network is where the control plane listens and which addresses the cluster uses.
type Network struct {
	// NetNS is the path of the network namespace that every process is started in; empty means
	// the supervisor's own.
	NetNS string `json:"netns,omitempty"`
	// Address is the one the API server listens on and is reached at, by the node and by people.
	Address string `json:"address"`
	// ServiceCIDR holds the Service addresses; its first one is that of Service kubernetes.
	ServiceCIDR string `json:"serviceCIDR"`
	// PodCIDR holds the pod addresses.
	PodCIDR string `json:"podCIDR"`
	// ClusterDNS is the Service address of the cluster's DNS; empty where there is none.
	ClusterDNS string `json:"clusterDNS,omitempty"`
}

// Loopback is the network of a cluster without a real node.
func Loopback() Network {
	return Network{Address: "127.0.0.1", ServiceCIDR: "10.96.0.0/16", PodCIDR: "10.244.0.0/16"}
}

// Cluster is one local Kubernetes while its supervisor runs it. LoadImage and the like, which other
// processes call, get one from Open.
type Cluster struct {
	// Name tells clusters apart; it is a DNS label.
	Name string
	// Layout is the cluster's folder.
	Layout Layout
	// BinDir holds the built programs under their usual names (kube-apiserver, kubelet, …).
	BinDir string
	// Network is decided before the control plane starts.
	Network Network
	// Ports are free when the cluster starts.
	Ports Ports
	// PKI signs and keeps certificates.
	PKI *PKI
	// Procs are the processes of the cluster. Nil in a cluster from Open.
	Procs *proc.Group
	// Audit switches the audit log on.
	Audit bool
	// Report tells the person who waits what is happening now, such as "starting kubelet".
	Report func(step string)
}

// Server is the URL of the API server.
func (c *Cluster) Server() string {
	return fmt.Sprintf("https://%s:%d", c.Network.Address, c.Ports.APIServer)
}

// Bin is the path of a built program.
func (c *Cluster) Bin(name string) string { return c.BinDir + "/" + name }

// Spec is a process of this cluster: a built program started inside the cluster's network.
func (c *Cluster) Spec(name string, args ...string) proc.Spec {
	return proc.Spec{Name: name, Path: c.Bin(name), Args: args, Dir: c.Layout.Dir, NetNS: c.Network.NetNS}
}
