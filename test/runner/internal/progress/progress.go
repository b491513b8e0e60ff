// Package progress tells how a run gets on: as log lines, and, where the
// Kubernetes API can be reached, as an annotation on the runner's own session.
//
// The annotation is a courtesy to people who look at the session. It is written
// in the background, only the newest message counts, and a failure is logged and
// changes nothing else.
package progress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Annotation is the key under which people find the newest message.
const Annotation = "ambient-code.io/runner-progress"

// writePatience is how long one write of the annotation may take.
const writePatience = 3 * time.Second

// clusterCA is where Kubernetes puts the API's certificate authority in pods
// that get a ServiceAccount token mounted. Beside a runner's own token stands a copy.
const clusterCA = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

// Target says which session to annotate and how to reach the API.
type Target struct {
	Host, Port         string // KUBERNETES_SERVICE_HOST and _PORT; no host, no annotation
	CAFile             string // KUBERNETES_CA_FILE; the usual places if empty
	TokenFile          string // read anew each time, because it is renewed
	Namespace, Session string
}

// Reporter tells about one run.
type Reporter struct {
	log     *slog.Logger
	target  Target
	client  *http.Client
	newest  chan string
	written chan struct{}
}

// New makes a Reporter; Close must be called at the end.
func New(log *slog.Logger, target Target) *Reporter {
	r := &Reporter{log: log, target: target, newest: make(chan string, 1), written: make(chan struct{})}
	if target.Port == "" {
		r.target.Port = "443"
	}
	r.client = &http.Client{Timeout: writePatience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: r.authorities(), MinVersion: tls.VersionTLS12},
	}}
	go r.write()
	return r
}

// Say tells a message to the log and to the annotation. It is not for secrets,
// nor for the text of prompts. It must not be called after Close, nor by two
// goroutines at once.
func (r *Reporter) Say(message string, details ...any) {
	r.log.Info(message, details...)
	for i := 0; i+1 < len(details); i += 2 {
		message += fmt.Sprintf(" %v=%v", details[i], details[i+1])
	}
	select {
	case <-r.newest: // overtaken before it was written
	default:
	}
	r.newest <- message
}

// Close waits for the newest message to be written, but not for long.
func (r *Reporter) Close(patience time.Duration) {
	close(r.newest)
	select {
	case <-r.written:
	case <-time.After(patience):
		r.log.Warn("the last progress annotation was not written in time")
	}
}

func (r *Reporter) write() {
	defer close(r.written)
	for message := range r.newest {
		if r.target.Host == "" {
			continue
		}
		if err := r.annotate(message); err != nil {
			r.log.Warn("the progress annotation cannot be written, the run goes on without", "error", err)
		}
	}
}

func (r *Reporter) annotate(message string) (err error) {
	token, err := os.ReadFile(r.target.TokenFile)
	if err != nil {
		return fmt.Errorf("reading the runner's token: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{Annotation: message}}})
	if err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), writePatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, r.sessionURL(), bytes.NewReader(patch))
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/merge-patch+json")
	request.Header.Set("Accept", "application/json")
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking the Kubernetes API: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("reading the answer of the Kubernetes API: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the Kubernetes API answered %s: %s", response.Status, reason(answer))
	}
	return nil
}

func (r *Reporter) sessionURL() string {
	address := url.URL{Scheme: "https", Host: net.JoinHostPort(r.target.Host, r.target.Port)}
	return address.JoinPath("apis", "vteam.ambient-code", "v1alpha1",
		"namespaces", r.target.Namespace, "agenticsessions", r.target.Session).String()
}

// authorities are those the system trusts, and the cluster's own. Without the
// cluster's the annotation fails: the token is shown to nobody unknown.
func (r *Reporter) authorities() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		r.log.Warn("the system's certificate authorities cannot be read", "error", err)
		pool = x509.NewCertPool()
	}
	files := []string{r.target.CAFile}
	if r.target.CAFile == "" {
		files = []string{filepath.Join(filepath.Dir(r.target.TokenFile), "ca.crt"), clusterCA}
	}
	for _, file := range files {
		if pem, err := os.ReadFile(file); err == nil && !pool.AppendCertsFromPEM(pem) {
			r.log.Warn("the file of the cluster's certificate authority holds no certificate", "file", file)
		}
	}
	return pool
}

// reason takes the message out of a Kubernetes status.
func reason(answer []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(answer, &status); err != nil || status.Message == "" {
		return "no reason given"
	}
	return status.Message
}
