package metrics_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/session"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// values lists every sample of the operator as name{labels} value, for a histogram its count and sum.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			key := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetCounter() != nil:
				samples[key] = m.GetCounter().GetValue()
			case m.GetHistogram() != nil:
				samples[key] = float64(m.GetHistogram().GetSampleCount())
				samples[key+" sum"] = m.GetHistogram().GetSampleSum()
			case m.GetGauge() != nil:
				samples[key] = m.GetGauge().GetValue()
			}
		}
	}
	return samples
}

func TestTheMetricsOfTheContract(t *testing.T) {
	for _, want := range []struct{ name, kind, labels string }{
		{"ambient_session_startup_duration_seconds", "histogram", "namespace"},
		{"ambient_sessions_total", "counter", "namespace"},
		{"ambient_sessions_completed_total", "counter", "namespace,final_phase"},
		{"ambient_session_phase_transitions_total", "counter", "namespace,from_phase,to_phase"},
		{"ambient_reconcile_duration_seconds", "histogram", "phase,success"},
		{"ambient_pod_creation_duration_seconds", "histogram", "namespace"},
		{"ambient_token_provision_duration_seconds", "histogram", "namespace"},
		{"ambient_session_errors_total", "counter", "namespace,phase,error_type"},
	} {
		i := slices.IndexFunc(metrics.Table, func(m metrics.Metric) bool { return m.Name == want.name })
		if i < 0 {
			t.Errorf("%s is missing", want.name)
			continue
		}
		m := metrics.Table[i]
		if m.Type != want.kind || strings.Join(m.Labels, ",") != want.labels || m.Meaning == "" {
			t.Errorf("%s is described as %+v; want %s with %s", want.name, m, want.kind, want.labels)
		}
		if b := m.Buckets; m.Type == metrics.Histogram && (b[0] != 0.05 || b[len(b)-1] != 1800) {
			t.Errorf("the buckets of %s are %v, want 50 ms to 30 min", m.Name, b)
		}
	}
}

// busy is a set that has counted something of everything.
func busy() (*metrics.Set, *prometheus.Registry) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	set.Leads(true)
	set.Admit("p")
	set.Passed("", time.Second, nil)
	set.TokenProvisioned("p", time.Second, nil)
	set.TokenExpires(types.NamespacedName{Namespace: "p", Name: "s"}, now.Add(time.Hour))
	set.Erred("p", "", "conflict")
	set.CountSessions(slices.Values([]*v1alpha1.AgenticSession{{ObjectMeta: metav1.ObjectMeta{Namespace: "p"}}}), func() time.Time { return now })
	return set, registry
}

// TestWhatIsDescribedIsWhatIsExported: types, labels, their values and the buckets too, and no more
// than that.
func TestWhatIsDescribedIsWhatIsExported(t *testing.T) {
	_, registry := busy()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]*dto.MetricFamily{}
	for _, family := range families {
		exported[family.GetName()] = family
	}
	for _, m := range metrics.Table {
		family := exported[m.Name]
		if family == nil {
			t.Errorf("%s is described and not exported", m.Name)
			continue
		}
		delete(exported, m.Name)
		if kind := strings.ToLower(family.GetType().String()); kind != m.Type || family.GetHelp() != m.Meaning {
			t.Errorf("%s is exported as %s, %q", m.Name, kind, family.GetHelp())
		}
		for _, series := range family.GetMetric() {
			var labels []string
			for _, l := range series.GetLabel() {
				labels = append(labels, l.GetName())
				if known := m.Values[l.GetName()]; known != nil && !slices.Contains(known, l.GetValue()) {
					t.Errorf("%s has %s=%s, which is not described", m.Name, l.GetName(), l.GetValue())
				}
			}
			if want := slices.Sorted(slices.Values(m.Labels)); !slices.Equal(labels, want) {
				t.Errorf("%s has labels %v, want %v", m.Name, labels, want)
			}
			if h := series.GetHistogram(); h != nil && len(h.GetBucket()) != len(m.Buckets) {
				t.Errorf("%s has %d buckets, want %d", m.Name, len(h.GetBucket()), len(m.Buckets))
			}
		}
	}
	for name := range exported {
		t.Errorf("%s is exported and not described", name)
	}
}

// TestLabels: every label is a closed set, or one of those that cannot be.
func TestLabels(t *testing.T) {
	open := []string{"namespace", "version", "revision"}
	for _, m := range metrics.Table {
		for _, label := range m.Labels {
			if closed := m.Values[label] != nil; closed == slices.Contains(open, label) {
				t.Errorf("label %s of %s: closed is %t", label, m.Name, closed)
			}
		}
	}
}

func TestPromlint(t *testing.T) {
	_, registry := busy()
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestCase63Changed(t *testing.T) {
	status := func(generation int64, phase v1alpha1.Phase) v1alpha1.AgenticSessionStatus {
		return v1alpha1.AgenticSessionStatus{ObservedGeneration: generation, Phase: phase}
	}
	const (
		created = "ambient_sessions_total{namespace=p}"
		startup = "ambient_session_startup_duration_seconds{namespace=p}"
		run     = "ambient_session_run_duration_seconds{namespace=p}"
		pod     = "ambient_pod_creation_duration_seconds{namespace=p}"
	)
	moved := func(from, to v1alpha1.Phase) string {
		return fmt.Sprintf("ambient_session_phase_transitions_total{from_phase=%s,namespace=p,to_phase=%s}", from, to)
	}
	ended := func(phase v1alpha1.Phase) string {
		return fmt.Sprintf("ambient_sessions_completed_total{final_phase=%s,namespace=p}", phase)
	}
	because := func(phase v1alpha1.Phase, reason string) string {
		return fmt.Sprintf("ambient_session_run_outcomes_total{final_phase=%s,namespace=p,reason=%s}", phase, reason)
	}
	took := func(d time.Duration) *time.Duration { return &d }
	const pending, creating, running = v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning
	const stopping, stopped, completed, failed = v1alpha1.PhaseStopping, v1alpha1.PhaseStopped, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed
	for _, c := range []struct {
		name    string
		was, is v1alpha1.AgenticSessionStatus
		change  metrics.Change
		want    map[string]float64
	}{
		{"first look, waits", status(0, ""), status(1, pending), metrics.Change{}, map[string]float64{created: 1}},
		{"first look, after the API server's default", status(0, pending), status(1, pending), metrics.Change{}, map[string]float64{created: 1}},
		{"first look, begins at once", status(0, ""), status(1, creating), metrics.Change{}, map[string]float64{created: 1, moved(pending, creating): 1}},
		{"second look", status(1, pending), status(1, pending), metrics.Change{}, nil},
		{"an edit", status(1, completed), status(2, completed), metrics.Change{}, nil},
		{"a pod", status(1, creating), status(1, creating), metrics.Change{PodCreation: took(time.Second)}, map[string]float64{pod: 1, pod + " sum": 1}},
		{"started", status(1, creating), status(1, running), metrics.Change{Startup: took(90 * time.Second)},
			map[string]float64{moved(creating, running): 1, startup: 1, startup + " sum": 90}},
		{"started, not known when queued", status(1, creating), status(1, running), metrics.Change{}, map[string]float64{moved(creating, running): 1}},
		{"stays Running", status(1, running), status(1, running), metrics.Change{Startup: took(time.Second)}, nil},
		{"is being stopped", status(1, running), status(1, stopping), metrics.Change{}, map[string]float64{moved(running, stopping): 1}},
		{"stopped", status(1, stopping), status(1, stopped), metrics.Change{Reason: v1alpha1.ReasonStoppedByUser, Run: took(time.Hour)},
			map[string]float64{moved(stopping, stopped): 1, ended(stopped): 1, because(stopped, "StoppedByUser"): 1, run: 1, run + " sum": 3600}},
		{"completed", status(1, running), status(1, completed), metrics.Change{Reason: v1alpha1.ReasonRunnerCompleted},
			map[string]float64{moved(running, completed): 1, ended(completed): 1, because(completed, "RunnerCompleted"): 1}},
		{"failed", status(1, creating), status(1, failed), metrics.Change{Reason: v1alpha1.ReasonUnschedulable},
			map[string]float64{moved(creating, failed): 1, ended(failed): 1, because(failed, "Unschedulable"): 1}},
		{"failed for a reason of its own", status(1, creating), status(1, failed), metrics.Change{Reason: "user alice said: no"},
			map[string]float64{moved(creating, failed): 1, ended(failed): 1, because(failed, "other"): 1}},
		{"restarted", status(1, failed), status(1, pending), metrics.Change{}, map[string]float64{moved(failed, pending): 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			set := metrics.New(registry)
			set.Admit("p")
			before := values(t, registry)
			c.change.Namespace, c.change.Was, c.change.Is = "p", &c.was, &c.is
			set.Changed(&c.change)
			for key, value := range values(t, registry) {
				if grown := value - before[key]; grown != c.want[key] {
					t.Errorf("%s grows by %v, want %v", key, grown, c.want[key])
				}
				if _, born := before[key]; !born {
					t.Errorf("%s was not there before the event", key)
				}
				delete(c.want, key)
			}
			for key := range c.want {
				t.Errorf("%s is missing", key)
			}
		})
	}
}

// TestEveryRuleCountsInSeriesThatAreThere: no phase change that a rule can make is a newborn series.
func TestEveryRuleCountsInSeriesThatAreThere(t *testing.T) {
	for _, rule := range session.Rules {
		for _, from := range rule.From {
			registry := prometheus.NewRegistry()
			set := metrics.New(registry)
			set.Admit("p")
			before := values(t, registry)
			set.Changed(&metrics.Change{Namespace: "p", Was: &v1alpha1.AgenticSessionStatus{Phase: from}, Is: &v1alpha1.AgenticSessionStatus{Phase: rule.To}, Reason: rule.Reason})
			after := values(t, registry)
			if len(after) != len(before) {
				t.Errorf("rule %s from %s makes %d new samples", rule.Name, from, len(after)-len(before))
			}
			if key := fmt.Sprintf("ambient_session_run_outcomes_total{final_phase=%s,namespace=p,reason=other}", rule.To); after[key] != 0 {
				t.Errorf("the reason %s of rule %s is not known", rule.Reason, rule.Name)
			}
		}
	}
}

func TestTheOtherMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	set.Admit("p")
	set.Passed("", 2*time.Second, nil)
	set.Passed(v1alpha1.PhaseRunning, time.Second, errors.New("no"))
	set.TokenProvisioned("p", 3*time.Second, nil)
	set.TokenProvisioned("p", time.Second, errors.New("no"))
	set.Erred("p", "", "token")
	set.Erred("p", v1alpha1.PhaseRunning, "what a server said")
	got := values(t, registry)
	for key, want := range map[string]float64{
		"ambient_reconcile_duration_seconds{phase=Pending,success=true} sum":          2,
		"ambient_reconcile_duration_seconds{phase=Running,success=false}":             1,
		"ambient_reconcile_duration_seconds{phase=Failed,success=false}":              0,
		"ambient_token_provision_duration_seconds{namespace=p}":                       1,
		"ambient_token_provision_duration_seconds{namespace=p} sum":                   3,
		"ambient_token_renewals_total{namespace=p,result=success}":                    1,
		"ambient_token_renewals_total{namespace=p,result=failure}":                    1,
		"ambient_session_errors_total{error_type=token,namespace=p,phase=Pending}":    1,
		"ambient_session_errors_total{error_type=other,namespace=p,phase=Running}":    1,
		"ambient_session_errors_total{error_type=conflict,namespace=p,phase=Running}": 0,
	} {
		if value, there := got[key]; !there || value != want {
			t.Errorf("%s is %v (%t), want %v", key, value, there, want)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(key string) bool { return strings.HasPrefix(key, "ambient_operator_build_info{") }) {
		t.Error("the build is missing")
	}
}
