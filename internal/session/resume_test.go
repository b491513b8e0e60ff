package session_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// A prompt that was given and never carried out must be carried out by the next run; one that was
// must not be carried out again.
func TestWhetherASessionRanBefore(t *testing.T) {
	restart := func(startedBefore, ranBefore bool) v1alpha1.AgenticSessionStatus {
		w := inPhase(v1alpha1.PhaseFailed, asksStart)
		w.Session.Status.RanBefore = ranBefore
		w.Session.Status.StartTime = nil
		if startedBefore {
			w.Session.Status.StartTime = ago(time.Minute)
		}
		return after(w)
	}
	for name, c := range map[string]struct{ started, ran, want bool }{
		"the runner never started":           {false, false, false},
		"the runner started":                 {true, false, true},
		"an earlier runner started, not now": {false, true, true},
	} {
		s := restart(c.started, c.ran)
		if s.Phase != v1alpha1.PhasePending || s.RanBefore != c.want || s.StartTime != nil {
			t.Errorf("%s: phase %s, ranBefore %t, startTime %v; want Pending, %t, none", name, s.Phase, s.RanBefore, s.StartTime, c.want)
		}
	}
}

// A run that ended with success carried out its prompt, also where its pod was not to be seen when that
// was told.
func TestASuccessIsNotRunAgain(t *testing.T) {
	w := inPhase(v1alpha1.PhaseCreating, recordedJob, jobIs(batchv1.JobComplete, ""))
	w.Job.Status.StartTime = ago(30 * time.Second)
	w.Session.Status = after(w)
	if s := &w.Session.Status; s.Phase != v1alpha1.PhaseCompleted || s.StartTime == nil || !s.StartTime.Equal(w.Job.Status.StartTime) {
		t.Errorf("phase %s, startTime %v; want Completed, and when the Job started", s.Phase, s.StartTime)
	}
	w.Session.Status.StartTime = nil // as an earlier version left it
	asksStart(w)
	if s := after(w); s.Phase != v1alpha1.PhasePending || !s.RanBefore {
		t.Errorf("phase %s, ranBefore %t; want Pending, true", s.Phase, s.RanBefore)
	}
}

// A runner may have started without being seen in Running when it is stopped.
func TestAStopInCreatingNotesThatTheRunnerStarted(t *testing.T) {
	for name, c := range map[string]struct {
		world *session.World
		want  bool
	}{
		"its container runs": {inPhase(v1alpha1.PhaseCreating, job, asksStop, pod(runnerUp(false))), true},
		"it has no pod":      {inPhase(v1alpha1.PhaseCreating, job, asksStop), false},
	} {
		if s := after(c.world); s.Phase != v1alpha1.PhaseStopping || (s.StartTime != nil) != c.want {
			t.Errorf("%s: phase %s, startTime %v", name, s.Phase, s.StartTime)
		}
	}
}
