package realnode

import (
	"net/netip"
	"testing"
)

func TestNetworksOfClustersAreApart(t *testing.T) {
	first, second := numbered(0), numbered(1)
	if first.overlaps([]netip.Prefix{second.cable(), second.Pods, second.Services}) {
		t.Errorf("%+v and %+v overlap", first, second)
	}
	if got, want := second.Node.String()+" "+second.DNS.String(), "10.99.1.2 10.101.1.10"; got != want {
		t.Errorf("the second cluster's node and DNS are %s, want %s", got, want)
	}
}

func TestOverlaps(t *testing.T) {
	for route, taken := range map[string]bool{
		"10.99.3.0/24":   true,
		"10.100.3.7/32":  true,
		"10.101.0.0/16":  true,
		"10.99.4.0/24":   false,
		"192.168.0.0/16": false,
		// A VPN that takes all private addresses leaves no network that it does not overlap.
		"10.0.0.0/8": false,
		"0.0.0.0/0":  false,
	} {
		if got := numbered(3).overlaps([]netip.Prefix{netip.MustParsePrefix(route)}); got != taken {
			t.Errorf("with a route to %s the network is taken: %v, want %v", route, got, taken)
		}
	}
}
