package session_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

func TestARunWaitsForTheWorkspaceThatItIsToUse(t *testing.T) {
	for name, c := range map[string]struct {
		change change
		takes  bool
	}{
		"in use":       {func(w *session.World) { w.Awaited, w.Unheld = "session b is Running", true }, false},
		"not taken":    {func(w *session.World) { w.Unheld = true }, true},
		"other things": {func(w *session.World) { w.Unheld, w.Missing = true, []string{"a Secret"} }, false},
		"previous run": {func(w *session.World) { w.Unheld, w.Leftovers = true, 1 }, false},
	} {
		w := inPhase(v1alpha1.PhasePending, c.change)
		if d := session.Decide(w); d.Moves() {
			t.Errorf("%s: it moves to %s", name, d.To)
		}
		if w.Takes() != c.takes {
			t.Errorf("%s: it takes the workspace: %v", name, w.Takes())
		}
	}
	w := inPhase(v1alpha1.PhasePending, func(w *session.World) { w.Awaited = "session b is Running" })
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionPVCReady} {
		c := meta.FindStatusCondition(after(w).Conditions, kind)
		if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonWorkspaceInUse || c.Message != "session b is Running" {
			t.Errorf("condition %s is %+v", kind, c)
		}
	}
	if d := session.Decide(inPhase(v1alpha1.PhasePending)); d.To != v1alpha1.PhaseCreating {
		t.Errorf("a session that waits for nothing stays %s", d.To)
	}
}

func TestThePVCConditionTellsWhoseWorkspaceItIs(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "ambient-workspace-b"}}
	w := inPhase(v1alpha1.PhaseRunning, recordedJob, pod(runnerUp(true)), func(w *session.World) {
		w.Continued, w.Workspace = "b", claim
	})
	told := func() *metav1.Condition {
		return meta.FindStatusCondition(after(w).Conditions, v1alpha1.ConditionPVCReady)
	}
	if c := told(); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonContinued || !strings.Contains(c.Message, "session b") {
		t.Errorf("while it runs: %+v", c)
	}
	said := told().Message
	claim.DeletionTimestamp = ago(0)
	if c := told(); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonBeingDeleted || !strings.Contains(c.Message, "belongs to session b") {
		t.Errorf("when it is being deleted: %+v", c)
	}
	w = inPhase(v1alpha1.PhaseCompleted)
	w.Session.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPVCReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonContinued, Message: said}}
	if c := told(); c.Message != said {
		t.Errorf("after the end, without its Job: %+v", c)
	}
	w = inPhase(v1alpha1.PhaseCreating, func(w *session.World) {
		w.Workspace, w.Uncontinued = claim, "session b had none"
		claim.DeletionTimestamp = nil
	})
	if c := told(); c.Status != metav1.ConditionTrue || !strings.HasSuffix(c.Message, "session b had none") {
		t.Errorf("with one of its own: %+v", c)
	}
}
