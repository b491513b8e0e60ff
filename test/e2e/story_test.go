//go:build e2e

package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// story is the history of one session: every phase in order, as a watch saw it.
type story struct {
	name   string
	mutex  sync.Mutex
	phases []v1alpha1.Phase
	last   *v1alpha1.AgenticSession
	news   chan struct{}
}

// follow records the history of a session until the test ends.
func follow(t *testing.T, namespace, name string) *story {
	t.Helper()
	told := &story{name: name, news: make(chan struct{}, 1)}
	events, err := cluster.Client.Watch(t.Context(), &v1alpha1.AgenticSessionList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatalf("watching sessions: %v", err)
	}
	t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if s, ok := event.Object.(*v1alpha1.AgenticSession); ok && s.Name == name {
				told.record(s)
			}
		}
	}()
	return told
}

func (s *story) record(session *v1alpha1.AgenticSession) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last = session
	if len(s.phases) == 0 || s.phases[len(s.phases)-1] != session.Status.Phase {
		s.phases = append(s.phases, session.Status.Phase)
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// until waits until the session is as wanted, and returns it.
func (s *story) until(t *testing.T, patience time.Duration, wanted string, is func(*v1alpha1.AgenticSession) bool) *v1alpha1.AgenticSession {
	t.Helper()
	deadline := time.After(patience)
	for {
		s.mutex.Lock()
		last, phases := s.last, slices.Clone(s.phases)
		s.mutex.Unlock()
		if last != nil && is(last) {
			return last
		}
		select {
		case <-s.news:
		case <-deadline:
			t.Fatalf("session %s is not %s after %s; its phases were %v, its status is %+v", s.name, wanted, patience, phases, last)
		}
	}
}

// reaches waits for a phase.
func (s *story) reaches(t *testing.T, phase v1alpha1.Phase, patience time.Duration) *v1alpha1.AgenticSession {
	t.Helper()
	return s.until(t, patience, string(phase), func(session *v1alpha1.AgenticSession) bool { return session.Status.Phase == phase })
}

// went asserts on the whole history.
func (s *story) went(t *testing.T, phases ...v1alpha1.Phase) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !slices.Equal(s.phases, phases) {
		t.Errorf("session %s went through %v, want %v", s.name, s.phases, phases)
	}
}

// condition finds a condition of a session.
func condition(t *testing.T, s *v1alpha1.AgenticSession, kind string) (status, reason, message string) {
	t.Helper()
	for _, c := range s.Status.Conditions {
		if c.Type == kind {
			return string(c.Status), c.Reason, c.Message
		}
	}
	t.Errorf("session %s has no condition %s", s.Name, kind)
	return "", "", ""
}
