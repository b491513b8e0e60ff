// Package metrics holds every metric of the operator as one table, and the one function that
// counts phase changes. Names, types and labels of the first eight are the contract's.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/buildinfo"
)

// Metric describes a metric for generated documentation.
type Metric struct {
	Name    string
	Type    string
	Labels  []string
	Meaning string
}

// buckets run from 50 ms to 30 minutes.
var buckets = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800}

// Set is the operator's metrics.
type Set struct {
	Described []Metric

	startup     *prometheus.HistogramVec
	created     *prometheus.CounterVec
	completed   *prometheus.CounterVec
	transitions *prometheus.CounterVec
	reconcile   *prometheus.HistogramVec
	podCreation *prometheus.HistogramVec
	token       *prometheus.HistogramVec
	errors      *prometheus.CounterVec
}

// New registers the metrics.
func New(registry prometheus.Registerer) *Set {
	s := &Set{}
	histogram := func(name, meaning string, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: meaning, Buckets: buckets}, labels)
		s.describe(registry, v, Metric{name, "histogram", labels, meaning})
		return v
	}
	counter := func(name, meaning string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: meaning}, labels)
		s.describe(registry, v, Metric{name, "counter", labels, meaning})
		return v
	}
	s.startup = histogram("ambient_session_startup_duration_seconds", "Time from Pending to Running, waiting for prerequisites included.", "namespace")
	s.created = counter("ambient_sessions_total", "Sessions created.", "namespace")
	s.completed = counter("ambient_sessions_completed_total", "Runs that reached Stopped, Failed or Completed.", "namespace", "final_phase")
	s.transitions = counter("ambient_session_phase_transitions_total", "Phase changes.", "namespace", "from_phase", "to_phase")
	s.reconcile = histogram("ambient_reconcile_duration_seconds", "Duration of one pass over a session.", "phase", "success")
	s.podCreation = histogram("ambient_pod_creation_duration_seconds", "Time from the Job of a run to its pod.", "namespace")
	s.token = histogram("ambient_token_provision_duration_seconds", "Time to mint a runner's token and store it.", "namespace")
	s.errors = counter("ambient_session_errors_total", "Errors met while working on sessions.", "namespace", "phase", "error_type")

	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ambient_operator_build_info", Help: "Which build of the operator this is; always 1."}, []string{"version", "revision"})
	s.describe(registry, info, Metric{"ambient_operator_build_info", "gauge", []string{"version", "revision"}, "Which build of the operator this is; always 1."})
	info.WithLabelValues(buildinfo.Version, buildinfo.Revision()).Set(1)
	return s
}

func (s *Set) describe(registry prometheus.Registerer, c prometheus.Collector, m Metric) {
	registry.MustRegister(c)
	s.Described = append(s.Described, m)
}

// Observe counts what a status write changed. It is to be called once, after the write succeeded.
func (s *Set) Observe(namespace string, was, is *v1alpha1.AgenticSessionStatus, now time.Time) {
	if was.ObservedGeneration == 0 && is.ObservedGeneration != 0 {
		s.created.WithLabelValues(namespace).Inc()
	}
	from := was.Phase
	if from == "" {
		from = v1alpha1.PhasePending
	}
	if from == is.Phase {
		return
	}
	s.transitions.WithLabelValues(namespace, string(from), string(is.Phase)).Inc()
	if is.Phase.Terminal() {
		s.completed.WithLabelValues(namespace, string(is.Phase)).Inc()
	}
	if is.Phase == v1alpha1.PhaseRunning && is.QueuedTime != nil {
		s.startup.WithLabelValues(namespace).Observe(max(0, now.Sub(is.QueuedTime.Time).Seconds()))
	}
}

// Reconciled records a pass.
func (s *Set) Reconciled(phase v1alpha1.Phase, took time.Duration, err error) {
	success := "true"
	if err != nil {
		success = "false"
	}
	if phase == "" {
		phase = v1alpha1.PhasePending
	}
	s.reconcile.WithLabelValues(string(phase), success).Observe(took.Seconds())
}

// PodCreated records how long the Job controller took to make the pod.
func (s *Set) PodCreated(namespace string, took time.Duration) {
	s.podCreation.WithLabelValues(namespace).Observe(max(0, took.Seconds()))
}

// TokenProvisioned records how long a token took.
func (s *Set) TokenProvisioned(namespace string, took time.Duration) {
	s.token.WithLabelValues(namespace).Observe(took.Seconds())
}

// Error counts an error of one of a closed set of types.
func (s *Set) Error(namespace string, phase v1alpha1.Phase, kind string) {
	if phase == "" {
		phase = v1alpha1.PhasePending
	}
	s.errors.WithLabelValues(namespace, string(phase), kind).Inc()
}
