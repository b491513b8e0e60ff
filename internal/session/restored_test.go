package session_test

import (
	"testing"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

func marked(mark string) change {
	return func(w *session.World) {
		w.Session.Annotations[v1alpha1.AnnotationRunOf] = mark
	}
}

// restored is a session of which a run began in another life.
func restored(w *session.World) { marked("a/" + string(otherUID))(w) }

// begun is a session of which a run began.
func begun(w *session.World) {
	marked(session.RunOf(w.Session))(w)
	w.Session.Status.Run = 1
}

func statusLost(w *session.World) { w.Session.Status = v1alpha1.AgenticSessionStatus{} }

// TestARestoredSessionIsNotRun: wherever a backup has found it, and whatever was asked then.
func TestARestoredSessionIsNotRun(t *testing.T) {
	for _, c := range []struct {
		name    string
		world   *session.World
		through []v1alpha1.Phase
	}{
		{"without status", inPhase(v1alpha1.PhasePending, restored, statusLost), []v1alpha1.Phase{v1alpha1.PhaseStopped}},
		{"without status, start asked", inPhase(v1alpha1.PhasePending, restored, statusLost, asksStart), []v1alpha1.Phase{v1alpha1.PhaseStopped}},
		{"queued again", inPhase(v1alpha1.PhasePending, restored, asksStart), []v1alpha1.Phase{v1alpha1.PhaseStopped}},
		{"status lost", inPhase(v1alpha1.PhasePending, begun, statusLost), []v1alpha1.Phase{v1alpha1.PhaseStopped}},
		{"creating", inPhase(v1alpha1.PhaseCreating, restored), []v1alpha1.Phase{v1alpha1.PhaseStopping, v1alpha1.PhaseStopped}},
		{"running", inPhase(v1alpha1.PhaseRunning, restored, asksStart), []v1alpha1.Phase{v1alpha1.PhaseStopping, v1alpha1.PhaseStopped}},
	} {
		w := c.world
		for _, want := range c.through {
			d := session.Decide(w)
			w.Session.Status = session.Status(w, d)
			if d.To != want || d.Reason != v1alpha1.ReasonRestored {
				t.Fatalf("%s: it goes to %s for %s, want %s for %s", c.name, d.To, d.Reason, want, v1alpha1.ReasonRestored)
			}
		}
		status := &w.Session.Status
		if !status.RanBefore || status.StoppedReason != "" {
			t.Errorf("%s: ranBefore is %t, stoppedReason %q; the prompt is not to be carried out again, and nobody stopped it", c.name, status.RanBefore, status.StoppedReason)
		}
		if d := session.Decide(w); d.Moves() {
			t.Errorf("%s: it goes on to %s", c.name, d.To)
		}
		if w.Unmarked() != w.Foreign() {
			t.Errorf("%s: that it is to be marked as this one is %t", c.name, w.Unmarked())
		}
		begun(w)
		asksStart(w)
		status.HandledRequest = "" // forgotten once the request was removed
		if d := session.Decide(w); d.To != v1alpha1.PhasePending {
			t.Errorf("%s: a start that is asked for afterwards does not start it", c.name)
		}
	}
}

// TestTheMark: ended sessions that have run carry the mark, no others get it by their end.
func TestTheMark(t *testing.T) {
	for name, c := range map[string]struct {
		world *session.World
		want  bool
	}{
		"ran before there was a mark": {inPhase(v1alpha1.PhaseCompleted), true},
		"has it":                      {inPhase(v1alpha1.PhaseCompleted, begun), false},
		"restored":                    {inPhase(v1alpha1.PhaseFailed, restored), true},
		"stopped before it ran":       {inPhase(v1alpha1.PhaseStopped, func(w *session.World) { w.Session.Status.Run = 0 }), false},
		"runs":                        {inPhase(v1alpha1.PhaseRunning), false},
	} {
		if got := c.world.Unmarked(); got != c.want {
			t.Errorf("%s: to be marked is %t, want %t", name, got, c.want)
		}
	}
}
