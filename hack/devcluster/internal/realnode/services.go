package realnode

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

const (
	dnsUser    = "devcluster:dns"
	volumeUser = "devcluster:volumes"
	// provisionerName joins the StorageClass to the program that serves it.
	provisionerName = "devcluster/folders"
	probeTimeout    = 2 * time.Second
)

var (
	//go:embed services.yaml
	services string
	//go:embed Corefile
	corefile string
)

// describeServices tells the cluster of its DNS and volumes, and gives both the rights that they need.
func (s starting) describeServices(ctx context.Context) error {
	manifest := filepath.Join(s.Layout.Node(), "services.yaml")
	err := render(manifest, services, map[string]any{
		"DNS":         s.network.DNS,
		"Node":        s.network.Node,
		"DNSUser":     dnsUser,
		"VolumeUser":  volumeUser,
		"Provisioner": provisionerName,
	})
	if err != nil {
		return err
	}
	spec := s.Spec("kubectl", "--kubeconfig="+s.Layout.Kubeconfig(), "apply", "--server-side", "--filename="+manifest)
	_, err = proc.Run(ctx, spec)
	return err
}

func (s starting) startVolumes(context.Context) error {
	folders := filepath.Join(s.Layout.Node(), "volumes")
	if err := makeDir(folders); err != nil {
		return err
	}
	kubeconfig := s.Layout.ComponentKubeconfig("volumes")
	if err := s.WriteKubeconfig(kubeconfig, "volumes", cluster.Identity{CommonName: volumeUser}); err != nil {
		return err
	}
	_, err := s.Procs.Start(s.Spec("volumes",
		"--kubeconfig="+kubeconfig,
		"--folder="+folders,
		"--node="+nodeName,
		"--provisioner="+provisionerName,
	))
	return err
}

// startDNS runs CoreDNS on the node's address. The Service kube-dns leads there, so there is no pod
// that names could depend on.
func (s starting) startDNS(ctx context.Context) error {
	kubeconfig := s.Layout.ComponentKubeconfig("coredns")
	if err := s.WriteKubeconfig(kubeconfig, "coredns", cluster.Identity{CommonName: dnsUser}); err != nil {
		return err
	}
	config := filepath.Join(s.Layout.Node(), "Corefile")
	err := render(config, corefile, map[string]any{
		"Address":    s.network.Node,
		"Kubeconfig": kubeconfig,
		"Ready":      dnsHealth,
	})
	if err != nil {
		return err
	}
	process, err := s.Procs.Start(s.Spec("coredns", "-conf="+config))
	if err != nil {
		return err
	}
	return process.WaitReady(ctx, s.answers(dnsHealth+"/ready"))
}

// answers asks, from inside the node's network, whether a program is well.
func (s starting) answers(url string) func(context.Context) error {
	client := http.Client{Timeout: probeTimeout, Transport: &http.Transport{DialContext: s.DialContext, DisableKeepAlives: true}}
	return func(ctx context.Context) (err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+url, nil)
		if err != nil {
			return fmt.Errorf("asking %s: %w", url, err)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, response.Body.Close()) }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}
