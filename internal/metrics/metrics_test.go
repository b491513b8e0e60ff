package metrics_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/metrics"
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
	registry := prometheus.NewRegistry()
	described := metrics.New(registry).Described
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
		i := slices.IndexFunc(described, func(m metrics.Metric) bool { return m.Name == want.name })
		if i < 0 {
			t.Errorf("%s is missing", want.name)
			continue
		}
		if m := described[i]; m.Type != want.kind || strings.Join(m.Labels, ",") != want.labels || m.Meaning == "" {
			t.Errorf("%s is described as %+v; want %s with %s", want.name, m, want.kind, want.labels)
		}
	}
}

func TestWhatIsDescribedIsWhatIsExported(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	queued := metav1.NewMicroTime(now)
	set.Observe("p", &v1alpha1.AgenticSessionStatus{}, &v1alpha1.AgenticSessionStatus{ObservedGeneration: 1, Phase: v1alpha1.PhaseRunning, QueuedTime: &queued}, now)
	set.Observe("p", &v1alpha1.AgenticSessionStatus{Phase: v1alpha1.PhaseRunning}, &v1alpha1.AgenticSessionStatus{Phase: v1alpha1.PhaseFailed}, now)
	set.Reconciled("", time.Second, nil)
	set.PodCreated("p", time.Second)
	set.TokenProvisioned("p", time.Second)
	set.Error("p", "", "other")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]string{}
	for _, family := range families {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		exported[family.GetName()] = fmt.Sprintln(strings.ToLower(family.GetType().String()), slices.Sorted(slices.Values(labels)), family.GetHelp())
	}
	for _, m := range set.Described {
		want := fmt.Sprintln(m.Type, slices.Sorted(slices.Values(m.Labels)), m.Meaning)
		if exported[m.Name] != want {
			t.Errorf("%s is exported as %q, described as %q", m.Name, exported[m.Name], want)
		}
		delete(exported, m.Name)
	}
	for name := range exported {
		t.Errorf("%s is exported and not described", name)
	}
}

func TestCase63Observe(t *testing.T) {
	queued := metav1.NewMicroTime(now.Add(-90 * time.Second))
	future := metav1.NewMicroTime(now.Add(time.Minute))
	status := func(generation int64, phase v1alpha1.Phase, queued *metav1.MicroTime) v1alpha1.AgenticSessionStatus {
		return v1alpha1.AgenticSessionStatus{ObservedGeneration: generation, Phase: phase, QueuedTime: queued}
	}
	const (
		created = "ambient_sessions_total{namespace=p}"
		startup = "ambient_session_startup_duration_seconds{namespace=p}"
	)
	moved := func(from, to v1alpha1.Phase) string {
		return fmt.Sprintf("ambient_session_phase_transitions_total{from_phase=%s,namespace=p,to_phase=%s}", from, to)
	}
	ended := func(phase v1alpha1.Phase) string {
		return fmt.Sprintf("ambient_sessions_completed_total{final_phase=%s,namespace=p}", phase)
	}
	for _, c := range []struct {
		name    string
		was, is v1alpha1.AgenticSessionStatus
		want    map[string]float64
	}{
		{"first look, waits", status(0, "", nil), status(1, v1alpha1.PhasePending, nil), map[string]float64{created: 1}},
		{"first look, after the API server's default", status(0, v1alpha1.PhasePending, nil), status(1, v1alpha1.PhasePending, nil), map[string]float64{created: 1}},
		{"first look, begins at once", status(0, "", nil), status(1, v1alpha1.PhaseCreating, nil),
			map[string]float64{created: 1, moved(v1alpha1.PhasePending, v1alpha1.PhaseCreating): 1}},
		{"second look", status(1, v1alpha1.PhasePending, nil), status(1, v1alpha1.PhasePending, nil), nil},
		{"an edit", status(1, v1alpha1.PhaseCompleted, nil), status(2, v1alpha1.PhaseCompleted, nil), nil},
		{"started", status(1, v1alpha1.PhaseCreating, nil), status(1, v1alpha1.PhaseRunning, &queued),
			map[string]float64{moved(v1alpha1.PhaseCreating, v1alpha1.PhaseRunning): 1, startup: 1, startup + " sum": 90}},
		{"started, queued by a clock ahead of ours", status(1, v1alpha1.PhaseCreating, nil), status(1, v1alpha1.PhaseRunning, &future),
			map[string]float64{moved(v1alpha1.PhaseCreating, v1alpha1.PhaseRunning): 1, startup: 1, startup + " sum": 0}},
		{"started, not known when queued", status(1, v1alpha1.PhaseCreating, nil), status(1, v1alpha1.PhaseRunning, nil),
			map[string]float64{moved(v1alpha1.PhaseCreating, v1alpha1.PhaseRunning): 1}},
		{"stays Running", status(1, v1alpha1.PhaseRunning, &queued), status(1, v1alpha1.PhaseRunning, &queued), nil},
		{"is being stopped", status(1, v1alpha1.PhaseRunning, nil), status(1, v1alpha1.PhaseStopping, nil),
			map[string]float64{moved(v1alpha1.PhaseRunning, v1alpha1.PhaseStopping): 1}},
		{"stopped", status(1, v1alpha1.PhaseStopping, nil), status(1, v1alpha1.PhaseStopped, nil),
			map[string]float64{moved(v1alpha1.PhaseStopping, v1alpha1.PhaseStopped): 1, ended(v1alpha1.PhaseStopped): 1}},
		{"completed", status(1, v1alpha1.PhaseRunning, nil), status(1, v1alpha1.PhaseCompleted, nil),
			map[string]float64{moved(v1alpha1.PhaseRunning, v1alpha1.PhaseCompleted): 1, ended(v1alpha1.PhaseCompleted): 1}},
		{"failed", status(1, v1alpha1.PhaseCreating, nil), status(1, v1alpha1.PhaseFailed, nil),
			map[string]float64{moved(v1alpha1.PhaseCreating, v1alpha1.PhaseFailed): 1, ended(v1alpha1.PhaseFailed): 1}},
		{"restarted", status(1, v1alpha1.PhaseFailed, nil), status(1, v1alpha1.PhasePending, nil),
			map[string]float64{moved(v1alpha1.PhaseFailed, v1alpha1.PhasePending): 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			set := metrics.New(registry)
			before := values(t, registry)
			set.Observe("p", &c.was, &c.is, now)
			got := values(t, registry)
			for key := range before {
				delete(got, key)
			}
			for key, want := range c.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v", key, got[key], want)
				}
				delete(got, key)
			}
			for key, value := range got {
				if !strings.HasSuffix(key, " sum") {
					t.Errorf("%s is counted: %v", key, value)
				}
			}
		})
	}
}

func TestALifeIsCountedOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	queued := metav1.NewMicroTime(now)
	was := v1alpha1.AgenticSessionStatus{}
	for _, phase := range []v1alpha1.Phase{
		v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning, v1alpha1.PhaseStopping, v1alpha1.PhaseStopped,
		v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning, v1alpha1.PhaseCompleted,
	} {
		is := v1alpha1.AgenticSessionStatus{ObservedGeneration: 1, Phase: phase, QueuedTime: &queued}
		set.Observe("p", &was, &is, now)
		set.Observe("p", &is, &is, now)
		was = is
	}
	got := values(t, registry)
	for key, want := range map[string]float64{
		"ambient_sessions_total{namespace=p}":                                                       1,
		"ambient_session_startup_duration_seconds{namespace=p}":                                     2,
		"ambient_session_phase_transitions_total{from_phase=Pending,namespace=p,to_phase=Creating}": 2,
		"ambient_session_phase_transitions_total{from_phase=Stopped,namespace=p,to_phase=Pending}":  1,
		"ambient_sessions_completed_total{final_phase=Stopped,namespace=p}":                         1,
		"ambient_sessions_completed_total{final_phase=Completed,namespace=p}":                       1,
		"ambient_sessions_completed_total{final_phase=Failed,namespace=p}":                          0,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}

func TestTheOtherMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	set.Reconciled("", 2*time.Second, nil)
	set.Reconciled(v1alpha1.PhaseRunning, time.Second, errors.New("no"))
	set.PodCreated("p", -time.Second)
	set.TokenProvisioned("p", 3*time.Second)
	set.Error("p", "", "token")
	set.Error("p", v1alpha1.PhaseRunning, "conflict")
	got := values(t, registry)
	for key, want := range map[string]float64{
		"ambient_reconcile_duration_seconds{phase=Pending,success=true} sum":          2,
		"ambient_reconcile_duration_seconds{phase=Running,success=false}":             1,
		"ambient_pod_creation_duration_seconds{namespace=p}":                          1,
		"ambient_pod_creation_duration_seconds{namespace=p} sum":                      0,
		"ambient_token_provision_duration_seconds{namespace=p} sum":                   3,
		"ambient_session_errors_total{error_type=token,namespace=p,phase=Pending}":    1,
		"ambient_session_errors_total{error_type=conflict,namespace=p,phase=Running}": 1,
	} {
		if value, found := got[key]; !found || value != want {
			t.Errorf("%s is %v (there: %t), want %v", key, value, found, want)
		}
	}
}
