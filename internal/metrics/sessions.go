package metrics

import (
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// source is where the sessions are that are counted at each scrape.
type source struct {
	sessions iter.Seq[*v1alpha1.AgenticSession]
	now      func() time.Time
}

// CountSessions has all sessions that exist counted at each scrape. They are read in place: sessions
// must yield what a cache holds, without asking the API server, and nobody changes it.
func (s *Set) CountSessions(sessions iter.Seq[*v1alpha1.AgenticSession], now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source = &source{sessions, now}
}

// reader makes at each scrape what is read then and not counted before.
type reader struct{ set *Set }

var (
	sessionsDesc   = describe(Sessions)
	oldestDesc     = describe(OldestAge)
	nextExpiryDesc = describe(TokenNextExpiry)
)

func describe(name string) *prometheus.Desc {
	m := named(name)
	return prometheus.NewDesc(m.Name, m.Meaning, m.Labels, nil)
}

// Describe is for the registry.
func (r reader) Describe(descs chan<- *prometheus.Desc) {
	descs <- sessionsDesc
	descs <- oldestDesc
	descs <- nextExpiryDesc
}

// Collect is for the registry.
func (r reader) Collect(metrics chan<- prometheus.Metric) {
	s := r.set
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.leads {
		return
	}
	var first time.Time
	for _, at := range s.tokens {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if !first.IsZero() {
		metrics <- gauge(nextExpiryDesc, float64(first.Unix()))
	}
	if s.source == nil {
		return
	}
	for namespace, t := range s.tally() {
		for i := range v1alpha1.Phases {
			metrics <- gauge(sessionsDesc, t.number[i], namespace, string(v1alpha1.Phases[i].Phase))
		}
		for i, phase := range waitingPhases {
			metrics <- gauge(oldestDesc, t.oldest[i].Seconds(), namespace, string(phase))
		}
	}
}

// tally is what is told of the sessions of a namespace.
type tally struct {
	// number is how many there are, in the order of v1alpha1.Phases.
	number []float64
	// oldest is for how long the one that has been there for longest is in a phase, in the order of
	// waitingPhases.
	oldest []time.Duration
}

// tally goes through all sessions once. There may be ten thousand of them.
func (s *Set) tally() map[string]*tally {
	all := make(map[string]*tally, len(s.admitted))
	for namespace := range s.admitted {
		all[namespace] = &tally{make([]float64, len(v1alpha1.Phases)), make([]time.Duration, len(waitingPhases))}
	}
	now := s.source.now()
	for object := range s.source.sessions {
		t := all[object.Namespace]
		if t == nil {
			continue
		}
		phase := orPending(object.Status.Phase)
		for i := range v1alpha1.Phases {
			if v1alpha1.Phases[i].Phase == phase {
				t.number[i]++
			}
		}
		for i, waiting := range waitingPhases {
			if waiting == phase {
				t.oldest[i] = max(t.oldest[i], now.Sub(session.InPhaseSince(object)))
			}
		}
	}
	return all
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}
