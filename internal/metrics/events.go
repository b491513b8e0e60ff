package metrics

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Change is a change of a session's status that was stored.
type Change struct {
	Namespace string
	// Was and Is are the status before and after.
	Was, Is *v1alpha1.AgenticSessionStatus
	// Reason is why the phase changed.
	Reason string
	// Startup, Run and PodCreation are how long these took, by stored times; nil where the change does
	// not complete them, or where it is not known.
	Startup, Run, PodCreation *time.Duration
}

// Changed counts what a status write changed. It is to be called once, after the write succeeded.
func (s *Set) Changed(c *Change) {
	created := c.Was.ObservedGeneration == 0 && c.Is.ObservedGeneration != 0
	from, to := orPending(c.Was.Phase), orPending(c.Is.Phase)
	if !created && from == to && c.PodCreation == nil {
		return
	}
	s.count(c.Namespace, func() {
		if created {
			s.add(SessionsCreated, c.Namespace)
		}
		if c.PodCreation != nil {
			s.observe(PodCreation, c.Namespace, *c.PodCreation)
		}
		if from != to {
			s.moved(c, from, to)
		}
	})
}

func (s *Set) moved(c *Change, from, to v1alpha1.Phase) {
	s.add(PhaseTransitions, c.Namespace, string(from), string(to))
	if to == v1alpha1.PhaseRunning && c.Startup != nil {
		s.observe(StartupDuration, c.Namespace, *c.Startup)
	}
	if !to.Terminal() {
		return
	}
	s.add(SessionsEnded, c.Namespace, string(to))
	s.add(RunOutcomes, c.Namespace, string(to), among(endings[to], c.Reason))
	if c.Run != nil {
		s.observe(RunDuration, c.Namespace, *c.Run)
	}
}

// Passed records a pass over a session that began in a phase.
func (s *Set) Passed(phase v1alpha1.Phase, took time.Duration, err error) {
	success := "true"
	if err != nil {
		success = "false"
	}
	s.histograms[PassDuration].WithLabelValues(string(orPending(phase)), success).Observe(took.Seconds())
}

// Erred counts a pass that failed, by one of the types of errors.
func (s *Set) Erred(namespace string, phase v1alpha1.Phase, kind string) {
	s.count(namespace, func() {
		s.add(SessionErrors, namespace, string(orPending(phase)), among(errorTypes, kind))
	})
}

// TokenProvisioned records an attempt to mint a runner's token and to store it.
func (s *Set) TokenProvisioned(namespace string, took time.Duration, err error) {
	s.count(namespace, func() {
		if err != nil {
			s.add(TokenRenewals, namespace, "failure")
			return
		}
		s.add(TokenRenewals, namespace, "success")
		s.observe(TokenProvision, namespace, took)
	})
}

// TokenExpires notes when the token of a session's runner expires; the zero time says that it has
// none.
func (s *Set) TokenExpires(session types.NamespacedName, at time.Time) {
	s.mu.RLock()
	known, is := s.tokens[session]
	s.mu.RUnlock()
	if known.Equal(at) && is != at.IsZero() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.IsZero() {
		delete(s.tokens, session)
	} else {
		s.tokens[session] = at
	}
}

// Leads says whether this replica works.
func (s *Set) Leads(leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = leads
	value := 0.0
	if leads {
		value = 1
		for _, part := range parts {
			s.gauges[Wired].WithLabelValues(string(part))
		}
	} else {
		s.gauges[Wired].Reset()
	}
	s.gauges[Leader].WithLabelValues().Set(value)
}

// Wired says whether a part of the monitoring wiring is in place.
func (s *Set) Wired(part Part, wired bool) {
	if !slices.Contains(parts, part) {
		return
	}
	value := 0.0
	if wired {
		value = 1
	}
	s.gauges[Wired].WithLabelValues(string(part)).Set(value)
}

// orPending is the phase of a session; one that nobody looked at yet is Pending.
func orPending(phase v1alpha1.Phase) v1alpha1.Phase {
	if phase == "" {
		return v1alpha1.PhasePending
	}
	return phase
}

// among keeps the values of a label within their closed set.
func among(known []string, word string) string {
	if slices.Contains(known, word) {
		return word
	}
	return Other
}
