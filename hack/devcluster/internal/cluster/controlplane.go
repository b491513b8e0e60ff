package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

// StartControlPlane makes certificates and kubeconfigs and starts etcd, the API server, the
// controller manager and the scheduler. It returns when all four are ready.
func (c *Cluster) StartControlPlane(ctx context.Context) error {
	if err := c.makeIdentities(); err != nil {
		return err
	}
	c.Report("starting etcd")
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	c.Report("starting kube-apiserver")
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	c.Report("starting kube-controller-manager and kube-scheduler")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return c.startProbed(ctx, "kube-controller-manager", c.controllerManagerArgs(), "https", "127.0.0.1", c.Ports.ControllerManager, "/healthz")
	})
	group.Go(func() error {
		return c.startProbed(ctx, "kube-scheduler", c.schedulerArgs(), "https", "127.0.0.1", c.Ports.Scheduler, "/healthz")
	})
	return group.Wait()
}

// makeIdentities makes the authorities and everything that is signed by them.
func (c *Cluster) makeIdentities() error {
	var err error
	if c.PKI, err = NewPKI(c.Layout.PKI()); err != nil {
		return err
	}
	first, err := firstAddress(c.Network.ServiceCIDR)
	if err != nil {
		return err
	}
	loopback := []string{"localhost", "127.0.0.1"}
	names := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", first, c.Network.Address}
	err = errors.Join(
		c.PKI.Sign("etcd", Identity{CommonName: "etcd", Hosts: loopback}),
		c.PKI.Sign("kube-apiserver", Identity{CommonName: "kube-apiserver", Hosts: append(names, loopback...)}),
		c.PKI.Sign("kube-apiserver-etcd-client", Identity{CommonName: "kube-apiserver"}),
		c.PKI.Sign("kube-apiserver-kubelet-client", Identity{CommonName: "kube-apiserver-kubelet-client", Organizations: []string{"system:masters"}}),
		c.PKI.Sign("kube-controller-manager-server", Identity{CommonName: "kube-controller-manager", Hosts: loopback}),
		c.PKI.Sign("kube-scheduler-server", Identity{CommonName: "kube-scheduler", Hosts: loopback}),
		c.PKI.sign(c.PKI.frontProxy, "front-proxy-client", Identity{CommonName: "front-proxy-client"}),
		c.WriteKubeconfig(c.Layout.Kubeconfig(), "admin", Identity{CommonName: "devcluster-admin", Organizations: []string{"system:masters"}}),
	)
	if err != nil {
		return err
	}
	for _, component := range []string{"kube-controller-manager", "kube-scheduler"} {
		id := Identity{CommonName: "system:" + component}
		if err := c.WriteKubeconfig(c.Layout.ComponentKubeconfig(component), component, id); err != nil {
			return err
		}
	}
	return nil
}

// firstAddress is the address after that of the network itself.
func firstAddress(cidr string) (string, error) {
	ip, _, err := net.ParseCIDR(cidr)
	if err != nil {
		return "", fmt.Errorf("reading the Service network: %w", err)
	}
	ip = ip.To4()
	if ip == nil {
		return "", fmt.Errorf("the Service network %s is not IPv4", cidr)
	}
	ip[3]++
	return ip.String(), nil
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	return c.startProbed(ctx, "etcd", c.etcdArgs(), "https", "127.0.0.1", c.Ports.Etcd, "/readyz")
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	if c.Audit {
		if err := os.WriteFile(c.auditPolicyFile(), []byte(auditPolicy), 0o600); err != nil {
			return fmt.Errorf("writing the audit policy: %w", err)
		}
	}
	return c.startProbed(ctx, "kube-apiserver", c.apiServerArgs(), "https", c.Network.Address, c.Ports.APIServer, "/readyz")
}

// startProbed starts a program and waits until its health endpoint answers 200.
func (c *Cluster) startProbed(ctx context.Context, name string, args []string, scheme, host string, port int, path string) error {
	process, err := c.Procs.Start(c.Spec(name, args...))
	if err != nil {
		return err
	}
	client, err := c.probeClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	url := fmt.Sprintf("%s://%s:%d%s", scheme, host, port, path)
	return process.WaitReady(ctx, func(ctx context.Context) error { return probe(ctx, client, url) })
}

const probeTimeout = 2 * time.Second

// probeClient presents the administrator's certificate: etcd and the API server ask for one.
func (c *Cluster) probeClient() (*http.Client, error) {
	ca, err := os.ReadFile(c.PKI.CA())
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(c.PKI.Cert("admin"), c.PKI.Key("admin"))
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	return &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
			DialContext:     c.DialContext,
		},
	}, nil
}

func probe(ctx context.Context, client *http.Client, url string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	said, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, said)
	}
	return nil
}
