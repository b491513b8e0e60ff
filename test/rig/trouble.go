package rig

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Local says that the cluster is one of ours, to which trouble may be made.
func (c *Cluster) Local() bool { return c.BinDir != "" }

// Restart kills a component of the control plane, such as kube-apiserver, and returns when the
// cluster works again.
func (c *Cluster) Restart(ctx context.Context, component string) error {
	if _, err := c.run(ctx, c.devcluster(), "restart", "--name", c.Name, component); err != nil {
		return fmt.Errorf("restarting %s: %w", component, err)
	}
	return nil
}

// Compact has etcd forget every version of every object but the latest, so that nobody can go on
// watching from where they were.
func (c *Cluster) Compact(ctx context.Context) error {
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := c.etcd(ctx, "range", map[string]any{"key": "AA=="}, &now); err != nil {
		return err
	}
	revision, err := strconv.ParseInt(now.Header.Revision, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the revision of etcd: %w", err)
	}
	err = c.etcd(ctx, "compaction", map[string]any{"revision": strconv.FormatInt(revision, 10), "physical": true}, &struct{}{})
	if err != nil && strings.Contains(err.Error(), "has been compacted") {
		// Nothing was written since the API server had it compacted itself.
		return nil
	}
	return err
}

// etcd calls a method of etcd's JSON interface.
func (c *Cluster) etcd(ctx context.Context, method string, body, answer any) (err error) {
	pki := filepath.Join(c.Dir, "pki")
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return fmt.Errorf("reading the cluster's authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(filepath.Join(pki, "kube-apiserver-etcd-client.crt"), filepath.Join(pki, "kube-apiserver-etcd-client.key"))
	if err != nil {
		return fmt.Errorf("reading a client certificate for etcd: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a request to etcd: %w", err)
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/v3/kv/%s", c.Ports.Etcd, method)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", method, err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request)
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", method, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		reason, err := io.ReadAll(io.LimitReader(response.Body, 1000))
		return errors.Join(fmt.Errorf("asking etcd for %s: it answers %s: %s", method, response.Status, reason), err)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("reading the answer of etcd to %s: %w", method, err)
	}
	return nil
}
