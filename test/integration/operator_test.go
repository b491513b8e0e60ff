package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/operator"
)

// operatorRun is an operator that works in this process.
type operatorRun struct {
	gate     *gate
	registry *prometheus.Registry
	health   string
	ended    chan error
	cancel   context.CancelFunc
	stopped  sync.Once
	err      error
}

// startOperator starts an operator with these variables and flags and returns when it is ready.
func startOperator(env map[string]string, flags ...string) (*operatorRun, error) {
	ctx, cancel := context.WithCancel(context.Background())
	run, err := launch(ctx, env, flags)
	if err != nil {
		cancel()
		return nil, err
	}
	run.cancel = cancel
	deadline := time.Now().Add(time.Minute)
	for run.ready() != nil {
		select {
		case err := <-run.ended:
			cancel()
			return nil, fmt.Errorf("the operator ended at once: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("the operator is not ready: %w", run.ready()), run.stop())
		}
	}
	return run, nil
}

func launch(ctx context.Context, env map[string]string, flags []string) (*operatorRun, error) {
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	flags = append([]string{"--metrics-bind-address=0", "--health-probe-bind-address=" + health}, flags...)
	settings, err := config.Load(flags, func(name string) string {
		if name == "NAMESPACE" {
			return suite.access.namespace
		}
		return env[name]
	})
	if err != nil {
		return nil, fmt.Errorf("configuring the operator: %w", err)
	}
	cluster, err := suite.access.config(ctx)
	if err != nil {
		return nil, err
	}
	run := &operatorRun{gate: &gate{}, registry: prometheus.NewRegistry(), health: health, ended: make(chan error, 1)}
	cluster.Wrap(func(next http.RoundTripper) http.RoundTripper { return run.gate.before(next) })
	mgr, certificates, err := operator.NewManager(settings, cluster)
	if err != nil {
		return nil, err
	}
	if err := operator.Add(ctx, mgr, settings, metrics.New(run.registry), certificates); err != nil {
		return nil, err
	}
	go func() { run.ended <- mgr.Start(ctx) }()
	return run, nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// ready asks the operator's own readiness check.
func (o *operatorRun) ready() error {
	answer, err := http.Get("http://" + o.health + "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // nothing was written
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s", answer.Status)
	}
	return nil
}

// stop ends the operator as SIGTERM does and returns when it has ended.
func (o *operatorRun) stop() error {
	o.stopped.Do(func() {
		o.cancel()
		select {
		case o.err = <-o.ended:
		case <-time.After(30 * time.Second):
			o.err = errors.New("the operator did not end within 30 s")
		}
	})
	return o.err
}

// alone starts an operator for one test. Such tests are not parallel, so they run before all that
// are: two operators would work on the same sessions.
func alone(t *testing.T, env map[string]string, flags ...string) *operatorRun {
	t.Helper()
	if shared.run != nil {
		t.Fatal("the shared operator runs already: a test that uses it is not parallel")
	}
	run, err := startOperator(env, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.stop(); err != nil {
			t.Errorf("the operator ended with an error: %v", err)
		}
	})
	return run
}

var shared struct {
	once sync.Once
	run  *operatorRun
	err  error
}

// sharedOperator is the one that all parallel tests have in common.
func sharedOperator(t *testing.T) *operatorRun {
	t.Helper()
	shared.once.Do(func() { shared.run, shared.err = startOperator(nil) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.run
}

func stopShared() error {
	if shared.run == nil {
		return nil
	}
	if err := shared.run.stop(); err != nil {
		return fmt.Errorf("the shared operator: %w", err)
	}
	return nil
}

// total adds up a counter or gauge of the operator over all series with these labels.
func (o *operatorRun) total(name string, labels map[string]string) (float64, error) {
	families, err := o.registry.Gather()
	if err != nil {
		return 0, fmt.Errorf("reading the metrics: %w", err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			matching := 0
			for _, label := range series.GetLabel() {
				if want, asked := labels[label.GetName()]; asked && want == label.GetValue() {
					matching++
				}
			}
			if matching == len(labels) {
				sum += series.GetCounter().GetValue() + series.GetGauge().GetValue() + float64(series.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum, nil
}

// call is one request of the operator.
type call struct {
	at     time.Time
	method string
	path   string
}

func (c call) write() bool { return c.method != http.MethodGet }

// about says that the call concerns a namespace.
func (c call) about(namespace string) bool {
	return strings.Contains(c.path, "/namespaces/"+namespace+"/")
}

// hook sees each request of the operator to a namespace before it is sent. It may wait, and it may
// answer in the server's place.
type hook func(*http.Request) *http.Response

// gate lies between the operator and the API server: it notes every call and lets tests step in.
type gate struct {
	mu    sync.Mutex
	calls []call
	hooks map[string]hook
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

func (g *gate) before(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		c := call{time.Now(), request.Method, request.URL.Path}
		g.mu.Lock()
		g.calls = append(g.calls, c)
		var h hook
		for namespace := range g.hooks {
			if c.about(namespace) {
				h = g.hooks[namespace]
			}
		}
		g.mu.Unlock()
		if h != nil {
			if answer := h(request); answer != nil {
				return answer, nil
			}
		}
		return next.RoundTrip(request)
	})
}

// hookInto has a hook see all calls about a namespace until the test ends.
func (g *gate) hookInto(t *testing.T, namespace string, h hook) {
	t.Helper()
	set := func(h hook) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.hooks == nil {
			g.hooks = map[string]hook{}
		}
		g.hooks[namespace] = h
	}
	set(h)
	t.Cleanup(func() { set(nil) })
}

// written lists the writes about a namespace, Events left out.
func (g *gate) written(namespace string) []call {
	g.mu.Lock()
	defer g.mu.Unlock()
	var writes []call
	for _, c := range g.calls {
		if c.write() && c.about(namespace) && !strings.HasSuffix(c.path, "/events") {
			writes = append(writes, c)
		}
	}
	return writes
}

// refusal is an answer of an API server that refuses a request.
func refusal(request *http.Request, code int32, reason metav1.StatusReason) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: "refused by the test",
	})
	if err != nil {
		body = nil
	}
	return &http.Response{
		StatusCode: int(code), Status: http.StatusText(int(code)), Request: request,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
