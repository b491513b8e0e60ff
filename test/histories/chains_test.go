package histories

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
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

// goingOn is a session that works in the workspace of one that has been stopped, up to a pod.
func goingOn(t *testing.T) *history {
	t.Helper()
	h := newHistory(1, selected)
	h.trouble = trouble{}
	h.rest()
	h.ask("one", v1alpha1.DesiredStopped)
	h.begin("two", "one")
	for len(alive(h, "two")) == 0 && len(h.complaints) == 0 {
		if !h.work() {
			h.clusterWorks(false)
		}
	}
	return h
}

func (h *history) claim() *corev1.PersistentVolumeClaim {
	claim, _ := h.api.objects["PersistentVolumeClaim"][types.NamespacedName{Namespace: project, Name: workload.WorkspaceName("one")}].(*corev1.PersistentVolumeClaim)
	return claim
}

// TestAWorkspaceIsNotMadeAnewUnderAPod: a pod that has no node yet does not keep its volume claim, and would
// take the next one of that name beside the pod for which that is made.
func TestAWorkspaceIsNotMadeAnewUnderAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := goingOn(t)
		h.remove(people, "PersistentVolumeClaim", h.claim(), client.DeleteOptions{})
		if !h.collect() || h.claim() != nil {
			t.Fatal("the claim is kept")
		}
		h.ask("one", v1alpha1.DesiredRunning)
		if phase := h.session("one").Status.Phase; phase != v1alpha1.PhasePending || len(h.complaints) > 0 {
			t.Errorf("session one is %s: %q\n%s", phase, h.complaints, strings.Join(h.notes[max(0, len(h.notes)-25):], "\n"))
		}
	})
}

// TestAnEndedSessionIsToldOfTheEndOfItsWorkspace: that a workspace is being deleted is not told for ever of a
// session that worked in it and has ended.
func TestAnEndedSessionIsToldOfTheEndOfItsWorkspace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := goingOn(t)
		h.rest()
		background := metav1.DeletePropagationBackground
		h.remove(people, "AgenticSession", h.session("one"), client.DeleteOptions{PropagationPolicy: &background})
		h.rest()
		told := func() *metav1.Condition {
			return meta.FindStatusCondition(h.session("two").Status.Conditions, v1alpha1.ConditionPVCReady)
		}
		if c := told(); c.Reason != v1alpha1.ReasonBeingDeleted || h.claim() == nil {
			t.Fatalf("while it works: %+v", c)
		}
		for _, pod := range alive(h, "two") {
			h.exit(pod.DeepCopy(), 0, false)
		}
		h.rest()
		if c := told(); c.Reason == v1alpha1.ReasonBeingDeleted || h.claim() != nil {
			t.Errorf("session two is %s: %+v", h.session("two").Status.Phase, c)
		}
	})
}
