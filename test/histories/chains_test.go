package histories

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// rest lets everything happen that is due now or within moments: no look that makes up for what nobody told.
func (h *history) rest() {
	for until := h.now().Add(5 * time.Second); len(h.complaints) == 0; {
		if h.work() || h.clusterWorks(false) {
			continue
		}
		next := h.nextWake()
		if next.IsZero() || next.After(until) {
			return
		}
		h.pass(max(time.Millisecond, next.Sub(h.now())))
	}
}

// ask has people ask for a phase of a session, and everything come to rest.
func (h *history) ask(name, desired string) {
	at := v1alpha1.AnnotationStartRequestedAt
	if desired == v1alpha1.DesiredStopped {
		at = v1alpha1.AnnotationStopRequestedAt
	}
	h.request(h.session(name), desired, at)
	h.rest()
}

// chained are three sessions of which each continues the one before: one has a workspace, two has been
// stopped in it, three works or waits in it.
func chained(t *testing.T, waits bool) *history {
	t.Helper()
	h := newHistory(1, selected) // a seed with one session
	if h.trouble = (trouble{}); len(h.stories) != 1 {
		t.Fatalf("there are %d sessions", len(h.stories))
	}
	h.rest()
	h.ask("one", v1alpha1.DesiredStopped)
	h.begin("two", "one")
	h.rest()
	h.ask("two", v1alpha1.DesiredStopped)
	if waits {
		h.ask("one", v1alpha1.DesiredRunning)
	}
	h.begin("three", "two")
	h.rest()
	return h
}

// TestChainsOfContinuedSessionsAreWoken: whoever waits in a chain of three goes on as soon as it can, also
// where the one in the middle is gone, or the chain was cut, since it began to wait.
func TestChainsOfContinuedSessionsAreWoken(t *testing.T) {
	remove := func(h *history) {
		background := metav1.DeletePropagationBackground
		h.remove(people, "AgenticSession", h.session("two"), client.DeleteOptions{PropagationPolicy: &background})
	}
	cut := func(h *history) {
		three := h.session("three")
		delete(three.Annotations, v1alpha1.AnnotationParentSessionID)
		h.change(three, false)
	}
	for _, c := range []struct {
		name string
		cut  func(*history)
		// waits is who waits for the other to end.
		waits, works string
	}{
		{"the eldest waits for the youngest, the middle one is deleted", remove, "one", "three"},
		{"the eldest waits for the youngest, which then continues none", cut, "one", "three"},
		{"the youngest waits for the eldest, the middle one is deleted", remove, "three", "one"},
		{"the eldest waits for the youngest", func(*history) {}, "one", "three"},
		{"the youngest waits for the eldest", func(*history) {}, "three", "one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := chained(t, c.waits == "three")
				if c.waits == "one" {
					h.ask("one", v1alpha1.DesiredRunning)
				}
				for name, want := range map[string]v1alpha1.Phase{c.waits: "Pending", c.works: "Running", "two": "Stopped"} {
					if got := orPending(h.session(name).Status.Phase); got != want {
						t.Fatalf("session %s is %s, not %s:\n%s", name, got, want, strings.Join(h.notes, "\n"))
					}
				}
				c.cut(h)
				h.rest()
				h.ask(c.works, v1alpha1.DesiredStopped)
				if got := orPending(h.session(c.waits).Status.Phase); got != v1alpha1.PhaseRunning || len(h.complaints) > 0 {
					t.Errorf("session %s is %s: %q\n%s", c.waits, got, h.complaints, strings.Join(h.notes[max(0, len(h.notes)-25):], "\n"))
				}
			})
		})
	}
}
