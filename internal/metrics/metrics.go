// Package metrics holds every metric of the operator. Table (table.go) describes them without a
// registry, for whatever refers to them: documentation, rules, dashboards. A Set registers and counts
// them; what is read from the sessions at each scrape is in sessions.go.
//
// Numbers are kept so that rate and increase tell the truth. A namespace is admitted when it is
// first seen to be managed: all its series begin at 0 then, not with their first event. What happens
// before that is counted as soon as it is admitted. When the namespace is no longer managed, or gone,
// it is forgotten with all its series. Phase changes are counted once, by the process that stored
// them, after the write has succeeded: an operator that is killed between the two, or that never
// learns that its write succeeded, misses that change and nothing else.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/internal/buildinfo"
)

// What is held back for namespaces that are not admitted is limited, for all and for each of them: much
// more than happens in the moment before a namespace is. In those that are never managed nothing runs,
// but whoever may create sessions in one must not use up what others need.
const (
	mostHeldBack     = 10000
	mostHeldBackEach = 1000
)

// Set is the operator's metrics. Its methods may be called at the same time.
type Set struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
	gauges     map[string]*prometheus.GaugeVec

	mu       sync.RWMutex
	admitted map[string]bool
	// heldBack is what is to be counted in namespaces that are not admitted yet.
	heldBack map[string][]func()
	held     int
	// tokens is when the tokens of runners expire.
	tokens map[types.NamespacedName]time.Time
	leads  bool
	source *source
}

// New registers the metrics.
func New(registry prometheus.Registerer) *Set {
	s := &Set{
		counters:   map[string]*prometheus.CounterVec{},
		histograms: map[string]*prometheus.HistogramVec{},
		gauges:     map[string]*prometheus.GaugeVec{},
		admitted:   map[string]bool{},
		heldBack:   map[string][]func(){},
		tokens:     map[types.NamespacedName]time.Time{},
	}
	for _, m := range Table {
		switch {
		case m.read:
		case m.Type == Counter:
			s.counters[m.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Meaning}, m.Labels)
			registry.MustRegister(s.counters[m.Name])
		case m.Type == Histogram:
			s.histograms[m.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Meaning, Buckets: m.Buckets}, m.Labels)
			registry.MustRegister(s.histograms[m.Name])
		default:
			s.gauges[m.Name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Meaning}, m.Labels)
			registry.MustRegister(s.gauges[m.Name])
		}
	}
	registry.MustRegister(reader{s})
	for _, values := range named(PassDuration).born() {
		s.histograms[PassDuration].WithLabelValues(values...)
	}
	s.gauges[BuildInfo].WithLabelValues(buildinfo.Version, buildinfo.Revision()).Set(1)
	s.gauges[Leader].WithLabelValues().Set(0)
	return s
}

// Admit makes all series of a namespace begin, at 0.
func (s *Set) Admit(namespace string) {
	s.mu.RLock()
	known := s.admitted[namespace]
	s.mu.RUnlock()
	if known {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admitted[namespace] = true
	for _, m := range Table {
		if m.read || !m.ofNamespace() {
			continue
		}
		for _, values := range m.born() {
			if labels := append([]string{namespace}, values...); m.Type == Counter {
				s.counters[m.Name].WithLabelValues(labels...)
			} else {
				s.histograms[m.Name].WithLabelValues(labels...)
			}
		}
	}
	for _, count := range s.heldBack[namespace] {
		count()
	}
	s.held -= len(s.heldBack[namespace])
	delete(s.heldBack, namespace)
}

// Forget removes all series of a namespace.
func (s *Set) Forget(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// What was held back of a namespace that is gone is nothing of one that gets its name later.
	s.held -= len(s.heldBack[namespace])
	delete(s.heldBack, namespace)
	if !s.admitted[namespace] {
		return
	}
	delete(s.admitted, namespace)
	all := prometheus.Labels{labelNamespace: namespace}
	for _, m := range Table {
		switch {
		case m.read || !m.ofNamespace():
		case m.Type == Counter:
			s.counters[m.Name].DeletePartialMatch(all)
		default:
			s.histograms[m.Name].DeletePartialMatch(all)
		}
	}
}

// count counts in a namespace that is admitted, or holds it back until it is.
func (s *Set) count(namespace string, what func()) {
	s.mu.RLock()
	admitted := s.admitted[namespace]
	if admitted {
		// Under the lock, so that no series comes back after the namespace was forgotten.
		what()
	}
	s.mu.RUnlock()
	if admitted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.admitted[namespace]:
		what()
	case s.held < mostHeldBack && len(s.heldBack[namespace]) < mostHeldBackEach:
		s.heldBack[namespace] = append(s.heldBack[namespace], what)
		s.held++
	}
}

func (s *Set) add(name, namespace string, labels ...string) {
	s.counters[name].WithLabelValues(append([]string{namespace}, labels...)...).Inc()
}

func (s *Set) observe(name, namespace string, took time.Duration) {
	s.histograms[name].WithLabelValues(namespace).Observe(max(0, took.Seconds()))
}
