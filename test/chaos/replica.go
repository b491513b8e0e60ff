package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	dto "github.com/prometheus/client_model/go"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// replica is one of the operator's two. It is started again when it ends, as Kubernetes would.
type replica struct {
	name  string
	dir   string
	proxy *proxy
	// through is the cluster as the replica reaches it.
	through rig.Cluster

	mu      sync.Mutex
	process *rig.Process
	profile string // address of its profiles
	skew    time.Duration
	starts  int
	logs    []string
	held    bool          // not to be started again yet
	ended   chan struct{} // closed when it is started no more
}

// keep starts the replica, and again whenever it has ended, until the context does.
func (r *replica) keep(ctx context.Context) {
	defer close(r.ended)
	for ctx.Err() == nil {
		if r.isHeld() {
			pause(ctx, 100*time.Millisecond)
			continue
		}
		process, err := r.start(ctx)
		if err != nil {
			pause(ctx, 500*time.Millisecond) // the API server is away, and gives no token
			continue
		}
		select {
		case <-process.Ended():
			pause(ctx, time.Second)
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	process := r.process
	r.mu.Unlock()
	if process == nil {
		return
	}
	select {
	case <-process.Ended():
	default:
		if err := process.Kill(); err != nil {
			fmt.Println(err)
		}
	}
}

// hold keeps the replica from being started again once it has ended, or lets it.
func (r *replica) hold(held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = held
}

func (r *replica) isHeld() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

func (r *replica) start(ctx context.Context) (*rig.Process, error) {
	r.mu.Lock()
	skew, log := r.skew, filepath.Join(r.dir, fmt.Sprintf("%s-%d.log", r.name, r.starts))
	r.starts++
	r.mu.Unlock()
	ports, err := rig.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	env := map[string]string{skewVariable: strconv.Itoa(int(skew.Seconds()))}
	process, err := r.through.RunOperator(ctx, log, env, "--leader-elect", "--pprof-bind-address="+ports[0])
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process, r.profile = process, ports[0]
	r.logs = append(r.logs, log)
	return process, nil
}

// signal sends the process a signal; one that has ended meanwhile gets none.
func (r *replica) signal(signal os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return
	}
	select {
	case <-r.process.Ended():
	default:
		if err := r.process.Signal(signal); err != nil {
			fmt.Println("  ", err) // it has ended this moment
		}
	}
}

// kill ends it without giving it time for anything.
func (r *replica) kill() { r.signal(syscall.SIGKILL) }

// scrape reads its metrics; an error where it does not answer.
func (r *replica) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	r.mu.Lock()
	process := r.process
	r.mu.Unlock()
	if process == nil {
		return nil, fmt.Errorf("%s does not run", r.name)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+process.Metrics+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s for its metrics: %w", r.name, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s for its metrics: %w", r.name, err)
	}
	defer answer.Body.Close() //nolint:errcheck // nothing was written
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", r.name, err)
	}
	return families, nil
}

// total adds up a counter or gauge over all series with these labels.
func total(families map[string]*dto.MetricFamily, name string, labels map[string]string) float64 {
	sum := 0.0
	for _, series := range families[name].GetMetric() {
		matching := 0
		for _, label := range series.GetLabel() {
			if want, asked := labels[label.GetName()]; asked && want == label.GetValue() {
				matching++
			}
		}
		if matching == len(labels) {
			sum += series.GetCounter().GetValue() + series.GetGauge().GetValue()
		}
	}
	return sum
}

const leaderMetric = "ambient_operator_leader"

// leads says that it works.
func (r *replica) leads(ctx context.Context) bool {
	families, err := r.scrape(ctx)
	return err == nil && total(families, leaderMetric, nil) == 1
}

// collect has the process collect its garbage, so that what it holds is what it needs.
func (r *replica) collect(ctx context.Context) error {
	r.mu.Lock()
	url := "http://" + r.profile + "/debug/pprof/heap?gc=1"
	r.mu.Unlock()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("having %s collect its garbage: %w", r.name, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("having %s collect its garbage: %w", r.name, err)
	}
	return answer.Body.Close()
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
