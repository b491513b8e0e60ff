package realnode

import (
	"context"
	_ "embed"
	"path/filepath"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

// Where the programs tell how they are, inside the node's network.
const (
	kubeletHealth = "127.0.0.1:10248"
	proxyHealth   = "127.0.0.1:10256"
	dnsHealth     = "127.0.0.1:8181"
)

//go:embed kubelet.yaml
var kubeletConfig string

func (s starting) startProxy(ctx context.Context) error {
	kubeconfig := s.Layout.ComponentKubeconfig("kube-proxy")
	if err := s.WriteKubeconfig(kubeconfig, "kube-proxy", cluster.Identity{CommonName: "system:kube-proxy"}); err != nil {
		return err
	}
	process, err := s.Procs.Start(inNode(s.Layout.Node(), proc.Spec{
		Name: "kube-proxy",
		Path: s.Bin("kube-proxy"),
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--hostname-override=" + nodeName,
			"--proxy-mode=iptables",
			"--cluster-cidr=" + s.network.Pods.String(),
			"--iptables-min-sync-period=100ms",
			"--healthz-bind-address=" + proxyHealth,
			"--metrics-bind-address=127.0.0.1:10249",
			// The limits of the connection table belong to the whole machine; they are left alone.
			"--conntrack-max-per-core=0",
			"--conntrack-min=0",
			"--conntrack-tcp-timeout-established=0",
			"--conntrack-tcp-timeout-close-wait=0",
		},
	}))
	if err != nil {
		return err
	}
	return process.WaitReady(ctx, s.answers(proxyHealth+"/healthz"))
}

func (s starting) startKubelet(ctx context.Context) error {
	if err := makeCgroup(s.network.cgroup()); err != nil {
		return err
	}
	dir := s.Layout.Node()
	kubeconfig := s.Layout.ComponentKubeconfig("kubelet")
	id := cluster.Identity{CommonName: "system:node:" + nodeName, Organizations: []string{"system:nodes"}}
	if err := s.WriteKubeconfig(kubeconfig, "kubelet", id); err != nil {
		return err
	}
	serving := cluster.Identity{CommonName: "system:node:" + nodeName, Hosts: []string{nodeName, s.network.Node.String()}}
	if err := s.PKI.Sign("kubelet-server", serving); err != nil {
		return err
	}
	// Pods with dnsPolicy Default, and image pulls, ask the same DNS as everything else here.
	resolver := filepath.Join(dir, "resolv.conf")
	if err := render(resolver, "nameserver {{.}}\n", s.network.Node); err != nil {
		return err
	}
	config := filepath.Join(dir, "kubelet.yaml")
	err := render(config, kubeletConfig, map[string]any{
		"Address":  s.network.Node,
		"CA":       s.PKI.CA(),
		"Cert":     s.PKI.Cert("kubelet-server"),
		"Key":      s.PKI.Key("kubelet-server"),
		"DNS":      s.network.DNS,
		"Resolver": resolver,
		"Socket":   containerdSocket,
		"Cgroup":   "/" + s.network.cgroup(),
		"Logs":     filepath.Join(dir, "pods"),
	})
	if err != nil {
		return err
	}
	process, err := s.Procs.Start(inNode(dir, proc.Spec{
		Name: "kubelet",
		Path: s.Bin("kubelet"),
		Args: []string{
			"--config=" + config,
			"--kubeconfig=" + kubeconfig,
			"--root-dir=" + filepath.Join(dir, "kubelet"),
			"--hostname-override=" + nodeName,
			"--node-ip=" + s.network.Node.String(),
		},
	}))
	if err != nil {
		return err
	}
	return process.WaitReady(ctx, s.answers(kubeletHealth+"/healthz"))
}
