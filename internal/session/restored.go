package session

import (
	"strings"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// A backup holds a session at one moment of its life, and mostly without its status. What became of
// its work since then is not known. The annotation v1alpha1.AnnotationRunOf was written before the Job
// of its first run was made; by that a restored session is told from a new one, and from itself.

const restoredMessage = "the session was restored from a backup after a run of it had begun; its work is not run again by itself: to go on, set the annotation " +
	v1alpha1.AnnotationDesiredPhase + "=Running, and to have the prompt carried out once more " + v1alpha1.AnnotationForceExecutePrompt + "=true with it"

// RunOf is what AnnotationRunOf says on a session of which a run has begun.
func RunOf(s *v1alpha1.AgenticSession) string { return s.Name + "/" + string(s.UID) }

// Foreign says that a run began of another object with the name of this one, of which this is the
// restored form. A copy by another name is a session of its own.
func (w *World) Foreign() bool {
	mark := w.Session.Annotations[v1alpha1.AnnotationRunOf]
	return strings.HasPrefix(mark, w.Session.Name+"/") && mark != RunOf(w.Session)
}

// restored says that the session was restored and would be run, or its run be gone on with. Its own mark
// without any status means that the status alone was lost.
func (w *World) restored() bool {
	s := w.Session
	if s.Annotations[v1alpha1.AnnotationRunOf] == RunOf(s) {
		return w.Phase() == v1alpha1.PhasePending && s.Status.Run == 0 && s.Status.ObservedGeneration == 0 && len(s.Status.Conditions) == 0
	}
	return w.Foreign() && !w.Phase().Terminal()
}

// Unmarked says that the annotations of an ended session are to say that it has run: a restored one is
// this one from now on, and one that ran before there was the mark gets it.
func (w *World) Unmarked() bool {
	s := &w.Session.Status
	ran := s.Run > 0 || s.StartTime != nil || s.Phase == v1alpha1.PhaseCompleted
	return s.Phase.Terminal() && (w.Foreign() || ran && w.Session.Annotations[v1alpha1.AnnotationRunOf] != RunOf(w.Session))
}
