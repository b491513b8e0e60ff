package session

import "github.com/ambient-code/agentic-operator/api/v1alpha1"

// Takes says that a workspace to go on in is all that a run waits for, and that it can be taken now.
func (w *World) Takes() bool {
	return w.Unheld && w.Awaited == "" && len(w.Missing) == 0 && w.Registry == "" && Decide(w).Rule == "prerequisites"
}

// awaited says why a run that is to begin cannot have its workspace yet; empty when it can.
func awaited(w *World) string {
	if w.Awaited == "" && w.Unheld {
		return "the workspace in which the session is to go on is being taken over"
	}
	return w.Awaited
}

// continued says in whose workspace a run worked whose Job is gone; empty for its own.
func continued(w *World, d Decision) string {
	known := find(w.Session.Status.Conditions, v1alpha1.ConditionPVCReady)
	if !d.To.Terminal() || known == nil || known.Reason != v1alpha1.ReasonContinued {
		return ""
	}
	return known.Message
}

// lastRun says what the end of a workspace means for the run that works in it.
func lastRun(w *World) string {
	if w.Continued == "" {
		return ""
	}
	return "; it belongs to session " + w.Continued + " and is removed when this run has ended and its Job is gone: save what is to be kept"
}
