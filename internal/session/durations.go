package session

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Startup is how long it took from the moment the run was asked for until its runner answered, by
// what session and pod say: an operator that was away meanwhile does not lengthen it. False when it
// is not known when the run was asked for.
func (w *World) Startup() (time.Duration, bool) {
	queued := w.Session.Status.QueuedTime
	if queued == nil {
		return 0, false
	}
	return max(0, w.readySince().Sub(queued.Time)), true
}

// readySince is when the runner's pod became ready; now when the pod does not say. Nodes tell whole
// seconds: within that second now is closest, later the middle of it.
func (w *World) readySince() time.Time {
	pod := w.pod()
	if pod == nil {
		return w.Now
	}
	for _, c := range pod.Status.Conditions {
		at := c.LastTransitionTime.Time
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && !at.IsZero() && w.Now.Sub(at) >= time.Second {
			return at.Add(time.Second / 2)
		}
	}
	return w.Now
}

// RunDuration is how long the runner of a run that has ended with this status was up. False when it
// never was.
func (w *World) RunDuration(status *v1alpha1.AgenticSessionStatus) (time.Duration, bool) {
	if status.StartTime == nil || status.CompletionTime == nil || w.Foreign() {
		return 0, false
	}
	ended := status.CompletionTime.Time
	if pod := w.pod(); pod != nil {
		if state := runnerState(pod); state != nil && state.Terminated != nil && !state.Terminated.FinishedAt.IsZero() {
			ended = state.Terminated.FinishedAt.Time
		}
	}
	return max(0, ended.Sub(status.StartTime.Time)), true
}

// PodCreation is how long the Job controller took to make the run's pod, in whole seconds.
func (w *World) PodCreation() (time.Duration, bool) {
	pod := w.pod()
	if pod == nil || w.Job == nil {
		return 0, false
	}
	return max(0, pod.CreationTimestamp.Sub(w.Job.CreationTimestamp.Time)), true
}

// InPhaseSince is since when a session has been in its phase, by its stored times. A stop has none of
// its own; the conditions that it turned have.
func InPhaseSince(s *v1alpha1.AgenticSession) time.Time {
	since := s.CreationTimestamp.Time
	switch status := &s.Status; status.Phase {
	case v1alpha1.PhaseCreating:
		if status.ProvisionedTime != nil {
			since = status.ProvisionedTime.Time
		}
	case v1alpha1.PhaseRunning:
		if status.StartTime != nil {
			since = status.StartTime.Time
		}
	case v1alpha1.PhaseStopping:
		for i := range status.Conditions {
			if at := status.Conditions[i].LastTransitionTime.Time; at.After(since) {
				since = at
			}
		}
	case v1alpha1.PhaseStopped, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed:
		if status.CompletionTime != nil {
			since = status.CompletionTime.Time
		}
	default:
		if status.QueuedTime != nil {
			since = status.QueuedTime.Time
		}
	}
	return since
}
