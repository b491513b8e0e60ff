package controllers

import (
	"testing"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// What was observed of a run belongs to the status under which it was observed: with the status that
// another operator has written meanwhile it would tell of a Job that is not there.
func TestCase47AnotherOperatorMovedTheSession(t *testing.T) {
	status := func(phase v1alpha1.Phase, run int64, job string) *v1alpha1.AgenticSession {
		return &v1alpha1.AgenticSession{Status: v1alpha1.AgenticSessionStatus{Phase: phase, Run: run, JobUID: job}}
	}
	for name, c := range map[string]struct {
		now   *v1alpha1.AgenticSession
		taken bool
	}{
		"as it was":       {status(v1alpha1.PhaseCreating, 1, ""), true},
		"another phase":   {status(v1alpha1.PhaseRunning, 1, ""), false},
		"another run":     {status(v1alpha1.PhaseCreating, 2, ""), false},
		"its Job is told": {status(v1alpha1.PhaseCreating, 1, "uid"), false},
	} {
		o := &seen{}
		o.world.Session = status(v1alpha1.PhaseCreating, 1, "")
		if taken := o.take(c.now); taken != c.taken || (o.world.Session == c.now) != c.taken {
			t.Errorf("%s: taken %t, want %t", name, taken, c.taken)
		}
	}
}
