package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

const (
	// The networks that clusters can have: 10.99.N.0/24 for the cable, and so on.
	networks = 256
	// narrowest is the shortest prefix of a host's route that rules a network out. A wider one, such
	// as a VPN's 10.0.0.0/8, loses only the few addresses that the cluster takes out of it.
	narrowest = 16
	linkName  = "devcluster%d"
	insideEnd = "eth0"
)

// network is where a cluster's addresses are. Its number N is free on this host when it is chosen.
type network struct {
	// Link is the host's end of the cable; the node's end is called eth0.
	Link string `json:"link"`
	// Host is the host's address as the node and its pods reach it: 10.99.N.1.
	Host netip.Addr `json:"host"`
	// Node is the node's address, where the API server listens: 10.99.N.2.
	Node netip.Addr `json:"node"`
	// Pods is where pods get their addresses: 10.100.N.0/24.
	Pods netip.Prefix `json:"pods"`
	// Services is where Services get their cluster IPs: 10.101.N.0/24.
	Services netip.Prefix `json:"services"`
	// DNS is the cluster IP of the Service kube-dns: 10.101.N.10.
	DNS netip.Addr `json:"dns"`
}

func numbered(n byte) network {
	at := func(second, last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, second, n, last}) }
	return network{
		Link:     fmt.Sprintf(linkName, n),
		Host:     at(99, 1),
		Node:     at(99, 2),
		Pods:     netip.PrefixFrom(at(100, 0), 24),
		Services: netip.PrefixFrom(at(101, 0), 24),
		DNS:      at(101, 10),
	}
}

// forCluster is what the control plane must know of the network.
func (n network) forCluster(dir string) cluster.Network {
	return cluster.Network{
		NetNS:       netNS(dir),
		Address:     n.Node.String(),
		ServiceCIDR: n.Services.String(),
		PodCIDR:     n.Pods.String(),
		ClusterDNS:  n.DNS.String(),
	}
}

func (n network) cable() netip.Prefix { return netip.PrefixFrom(n.Host, 24).Masked() }

// connect lays the cable between the host and the namespace, on the first network that is free.
func connect(ctx context.Context, dir string) (network, error) {
	routes, err := hostRoutes(ctx)
	if err != nil {
		return network{}, err
	}
	var taken error
	for n := range networks {
		chosen := numbered(byte(n))
		if chosen.overlaps(routes) {
			continue
		}
		// Making the link claims the number: the kernel lets only one of two clusters that start at
		// the same time have it.
		_, err := proc.Run(ctx, ip("link", "add", chosen.Link, "type", "veth", "peer", "name", insideEnd, "netns", netNS(dir)))
		if err != nil && strings.Contains(err.Error(), "File exists") {
			taken = err
			continue
		}
		if err != nil {
			return network{}, fmt.Errorf("joining the cluster's network to the host: %w", err)
		}
		// Written before anything else is done with the link, so that Sweep finds it.
		if err := errors.Join(chosen.save(dir), chosen.configure(ctx, dir)); err != nil {
			return network{}, err
		}
		return chosen, nil
	}
	return network{}, errors.Join(errors.New("no network of 10.99.0.0/16, 10.100.0.0/16 and 10.101.0.0/16 is free on this host; take down a cluster that is no longer needed"), taken)
}

func (n network) configure(ctx context.Context, dir string) error {
	inside := func(args ...string) proc.Spec {
		spec := ip(args...)
		spec.NetNS = netNS(dir)
		return spec
	}
	cable := func(addr netip.Addr) string { return netip.PrefixFrom(addr, n.cable().Bits()).String() }
	for _, command := range []proc.Spec{
		inside("link", "set", "lo", "up"),
		inside("addr", "add", cable(n.Node), "dev", insideEnd),
		inside("link", "set", insideEnd, "up"),
		// The node itself reaches Services: a packet must have a route before it is rewritten.
		inside("route", "add", n.Services.String(), "dev", insideEnd),
		ip("addr", "add", cable(n.Host), "dev", n.Link),
		ip("link", "set", n.Link, "up"),
		ip("route", "add", n.Pods.String(), "via", n.Node.String()),
		ip("route", "add", n.Services.String(), "via", n.Node.String()),
		{Path: "sh", Args: []string{"-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"}, NetNS: netNS(dir)},
	} {
		if _, err := proc.Run(ctx, command); err != nil {
			return fmt.Errorf("giving the cluster its addresses: %w", err)
		}
	}
	return nil
}

func (n network) overlaps(routes []netip.Prefix) bool {
	for _, own := range []netip.Prefix{n.cable(), n.Pods, n.Services} {
		for _, route := range routes {
			if route.Bits() >= narrowest && route.Overlaps(own) {
				return true
			}
		}
	}
	return false
}

// hostRoutes lists where the host sends packets to, apart from its default route.
func hostRoutes(ctx context.Context) ([]netip.Prefix, error) {
	output, err := proc.Run(ctx, ip("-json", "-4", "route", "show", "table", "all"))
	if err != nil {
		return nil, fmt.Errorf("listing the host's routes: %w", err)
	}
	var listed []struct {
		Dst string `json:"dst"`
	}
	if err := json.Unmarshal([]byte(output), &listed); err != nil {
		return nil, fmt.Errorf("reading the host's routes: %w", err)
	}
	var routes []netip.Prefix
	for _, route := range listed {
		if prefix, err := netip.ParsePrefix(route.Dst); err == nil {
			routes = append(routes, prefix)
		} else if addr, err := netip.ParseAddr(route.Dst); err == nil {
			routes = append(routes, netip.PrefixFrom(addr, addr.BitLen()))
		} // what is left is "default"
	}
	return routes, nil
}

func ip(args ...string) proc.Spec { return proc.Spec{Path: "ip", Args: args} }

func networkFile(dir string) string { return filepath.Join(dir, "network.json") }

func (n network) save(dir string) error {
	content, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return fmt.Errorf("writing down the cluster's network: %w", err)
	}
	if err := os.WriteFile(networkFile(dir), content, 0o600); err != nil {
		return fmt.Errorf("writing down the cluster's network: %w", err)
	}
	return nil
}

// readNetwork returns what Prepare wrote down in dir, or an error that is fs.ErrNotExist.
func readNetwork(dir string) (network, error) {
	content, err := os.ReadFile(networkFile(dir))
	if err != nil {
		return network{}, fmt.Errorf("reading the cluster's network: %w", err)
	}
	var chosen network
	if err := json.Unmarshal(content, &chosen); err != nil {
		return network{}, fmt.Errorf("reading the cluster's network from %s: %w", networkFile(dir), err)
	}
	return chosen, nil
}
