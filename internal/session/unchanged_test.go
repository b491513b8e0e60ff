package session_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// A status that was refused is written again over what others wrote for themselves, and over nothing
// that a decision rests on.
func TestWhatOfALaterVersionDecisionsRestOn(t *testing.T) {
	now := metav1.Now()
	for _, row := range []struct {
		name   string
		change func(*v1alpha1.AgenticSession)
		same   bool
	}{
		{"version", func(s *v1alpha1.AgenticSession) { s.ResourceVersion = "2" }, true},
		{"an annotation of others", func(s *v1alpha1.AgenticSession) { s.Annotations = map[string]string{"team/x": "y"} }, true},
		{"a label of others", func(s *v1alpha1.AgenticSession) { s.Labels = map[string]string{"team/x": "y"} }, true},
		{"a finalizer", func(s *v1alpha1.AgenticSession) { s.Finalizers = []string{"example.com/keep"} }, true},
		{"activity", func(s *v1alpha1.AgenticSession) { s.Status.LastActivityTime = &now }, true},
		{"the framework's session", func(s *v1alpha1.AgenticSession) { s.Status.SDKSessionID, s.Status.SDKRestartCount = "x", 2 }, true},

		{"another session", func(s *v1alpha1.AgenticSession) { s.UID = "other" }, false},
		{"the spec", func(s *v1alpha1.AgenticSession) { s.Generation++ }, false},
		{"its end", func(s *v1alpha1.AgenticSession) { s.DeletionTimestamp = &now }, false},
		{"a request", func(s *v1alpha1.AgenticSession) {
			s.Annotations = map[string]string{v1alpha1.AnnotationDesiredPhase: v1alpha1.DesiredStopped}
		}, false},
		{"an empty request", func(s *v1alpha1.AgenticSession) {
			s.Annotations = map[string]string{v1alpha1.AnnotationDesiredPhase: ""}
		}, false},
		{"a forced prompt", func(s *v1alpha1.AgenticSession) {
			s.Annotations = map[string]string{v1alpha1.AnnotationForceExecutePrompt: "true"}
		}, false},
		{"the phase", func(s *v1alpha1.AgenticSession) { s.Status.Phase = v1alpha1.PhaseStopping }, false},
		{"the run", func(s *v1alpha1.AgenticSession) { s.Status.Run++ }, false},
		{"the request that was carried out", func(s *v1alpha1.AgenticSession) { s.Status.HandledRequest = "Running@" }, false},
		{"a condition", func(s *v1alpha1.AgenticSession) { s.Status.Conditions[0].Message += " " }, false},
	} {
		w := inPhase(v1alpha1.PhaseRunning, recordedJob, pod(runnerUp(true)))
		w.Session.Status = after(w)
		is := w.Session.DeepCopy()
		row.change(is)
		if session.Unchanged(w.Session, is) != row.same {
			t.Errorf("%s: unchanged is %t, want %t", row.name, !row.same, row.same)
		}
	}
}
