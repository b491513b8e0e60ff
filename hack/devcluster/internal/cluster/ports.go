package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Ports are those that the programs of a cluster listen on.
type Ports struct {
	APIServer         int `json:"apiServer"`
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
}

// The range lies below the one from which the kernel draws the ports of outgoing connections
// (32768 and up), so a port that is free now isn't taken by a passing connection before the
// program listens.
const (
	firstPort = 20000
	lastPort  = 32000
	portTries = 2000
)

// ChoosePorts finds free ports on the loopback address. taken are those of other clusters, which
// may be about to listen.
func ChoosePorts(taken []Ports) (Ports, error) {
	used := map[int]bool{}
	for _, ports := range taken {
		for _, port := range ports.list() {
			used[port] = true
		}
	}
	var chosen Ports
	for _, port := range []*int{&chosen.APIServer, &chosen.Etcd, &chosen.EtcdPeer, &chosen.ControllerManager, &chosen.Scheduler} {
		free, err := freePort(used)
		if err != nil {
			return Ports{}, err
		}
		used[free] = true
		*port = free
	}
	return chosen, nil
}

func (p Ports) list() []int {
	return []int{p.APIServer, p.Etcd, p.EtcdPeer, p.ControllerManager, p.Scheduler}
}

func freePort(used map[int]bool) (int, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if used[port] {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("looking for a free port: %w", err)
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1: end some of the programs that listen there", firstPort, lastPort)
}
