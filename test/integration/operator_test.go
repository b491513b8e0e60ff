package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// everyFlag lists the flags that every operator of this run gets.
func everyFlag() []string { return strings.Fields(os.Getenv("INTEGRATION_FLAGS")) }

// legacyWatch says that the operators of this run have plain watches.
func legacyWatch() bool { return slices.Contains(everyFlag(), "--legacy-watch") }

// startOperator starts an operator with these variables and flags and returns when it is ready.
func startOperator(env map[string]string, flags ...string) (*operatorRun, error) {
	return startOperatorThrough(nil, env, flags...)
}

// startOperatorThrough is startOperator for one whose requests go through a test's own hands, unless
// these are nil.
func startOperatorThrough(hands func(http.RoundTripper) http.RoundTripper, env map[string]string, flags ...string) (*operatorRun, error) {
	ctx, cancel := context.WithCancel(context.Background())
	run, err := launch(ctx, hands, env, flags)
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

func launch(ctx context.Context, hands func(http.RoundTripper) http.RoundTripper, env map[string]string, flags []string) (*operatorRun, error) {
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	flags = slices.Concat([]string{"--metrics-bind-address=0", "--health-probe-bind-address=" + health}, everyFlag(), flags)
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
	cluster.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if hands != nil {
			next = hands(next)
		}
		return run.gate.before(next)
	})
	mgr, endpoint, err := operator.NewManager(settings, cluster)
	if err != nil {
		return nil, err
	}
	if err := operator.Add(ctx, mgr, settings, metrics.New(run.registry), endpoint); err != nil {
		return nil, err
	}
	go func() { run.ended <- mgr.Start(ctx) }()
	return run, nil
}

// lastPort is the port that was given away last.
var lastPort atomic.Int64

// freeAddress is one of this machine on which nobody listens. Its port is none that the kernel gives
// away, as it would to others before the operator listens on it; other processes of the suite begin
// elsewhere.
func freeAddress() (address string, err error) {
	const lowest, ports, apart = 10000, 10000, 131
	for range ports {
		port := lowest + (int64(os.Getpid())*apart+lastPort.Add(1))%ports
		address = fmt.Sprintf("127.0.0.1:%d", port)
		var listener net.Listener
		if listener, err = net.Listen("tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return "", fmt.Errorf("finding a free port: %w", err)
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
