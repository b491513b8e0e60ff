package rig

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scrape reads the metrics of a pod of the operator as the manifests mean it: over TLS that the
// operator's own CA verifies, with a token of the reader, through a forwarded port.
func (c *Cluster) Scrape(ctx context.Context, pod string) (text []byte, err error) {
	const name = "agentic-operator-metrics"
	secret := &corev1.Secret{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: name + "-own-cert"}, secret); err != nil {
		return nil, fmt.Errorf("reading the CA of the metrics: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: OperatorNamespace, Name: name + "-reader"}}
	token := &authenticationv1.TokenRequest{}
	if err := c.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("asking for a token of the metrics' reader: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	port, err := c.forward(ctx, pod)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secret.Data["ca.crt"])
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: pool, ServerName: name + "." + OperatorNamespace + ".svc", MinVersion: tls.VersionTLS13,
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:"+port+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("asking for the metrics: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token.Status.Token)
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking for the metrics: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking for the metrics: the answer is %s", answer.Status)
	}
	return io.ReadAll(answer.Body)
}

var forwarding = regexp.MustCompile(`^Forwarding from 127\.0\.0\.1:([0-9]+)`)

// forward has a port of this machine lead to the pod's metrics until the context ends.
func (c *Cluster) forward(ctx context.Context, pod string) (port string, err error) {
	cmd := exec.CommandContext(ctx, c.Kubectl(), "--kubeconfig", c.Kubeconfig, "-n", OperatorNamespace,
		"port-forward", "--address", "127.0.0.1", "pod/"+pod, ":8443")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("forwarding a port to %s: %w", pod, err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("forwarding a port to %s: %w", pod, err)
	}
	lines := bufio.NewScanner(out)
	for port == "" && lines.Scan() {
		if match := forwarding.FindStringSubmatch(lines.Text()); match != nil {
			port = match[1]
		}
	}
	go func() {
		for lines.Scan() {
			continue // kubectl tells each connection, and waits while nobody reads
		}
		if err := cmd.Wait(); err != nil && ctx.Err() == nil {
			fmt.Printf("forwarding a port to %s ended: %v\n", pod, err)
		}
	}()
	if port == "" {
		return "", fmt.Errorf("forwarding a port to %s: kubectl does not say which", pod)
	}
	return port, nil
}
