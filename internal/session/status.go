package session

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Status says what to report of a session: the stored status, with what the decision changes and
// all conditions made anew. Fields that others write are kept as they are.
func Status(w *World, d Decision) v1alpha1.AgenticSessionStatus {
	status := w.Session.Status.DeepCopy()
	status.ObservedGeneration = w.Session.Generation
	status.Phase = d.To
	status.HandledRequest = handled(w, d)
	if d.Moves() {
		move(status, w, d)
	} else {
		observe(status, w)
		settle(status, w)
	}
	status.Conditions = conditions(w, d, status)
	return *status
}

// handled is the request that this status write records as carried out. It is forgotten once it
// is no longer among the annotations, so that an equal request counts as a new one.
func handled(w *World, d Decision) string {
	request := Request(w.Session)
	switch d.Rule {
	case "stop", "stop-before-start", "restart", "restored", "restored-run":
		return request
	}
	if request == "" {
		return ""
	}
	return w.Session.Status.HandledRequest
}

func move(status *v1alpha1.AgenticSessionStatus, w *World, d Decision) {
	now := metav1.NewTime(w.Now)
	switch d.To {
	case v1alpha1.PhasePending:
		restarted(status, w)
	case v1alpha1.PhaseCreating:
		status.Run++
		status.ProvisionedTime = &now
		if status.QueuedTime == nil {
			status.QueuedTime = queued(w)
		}
		forget(status)
	case v1alpha1.PhaseRunning:
		started := metav1.NewTime(w.startedAt())
		status.StartTime = &started
		observe(status, w)
		begin(status, w)
	case v1alpha1.PhaseStopping:
		status.StoppedReason = stoppedBy(d)
		observe(status, w)
		noteStart(status, w)
	case v1alpha1.PhaseStopped:
		status.StoppedReason = cmp.Or(status.StoppedReason, stoppedBy(d))
		status.CompletionTime = &now
		status.RanBefore = status.RanBefore || d.Reason == v1alpha1.ReasonRestored
	default:
		status.CompletionTime = &now
		observe(status, w)
		noteStart(status, w)
	}
}

// stoppedBy says who or what a stop is owed to; a restore is neither.
func stoppedBy(d Decision) v1alpha1.StoppedReason {
	switch d.Reason {
	case v1alpha1.ReasonRestored:
		return ""
	case v1alpha1.ReasonInactivityTimeout:
		return v1alpha1.StoppedByInactivity
	default:
		return v1alpha1.StoppedByUser
	}
}

// noteStart keeps when the runner started of a run that ends before it was seen in Running. Where the
// Job is complete and its pod is not to be seen, as in a cache that lags, the runner started all the
// same; about when, the Job tells.
func noteStart(status *v1alpha1.AgenticSessionStatus, w *World) {
	switch {
	case status.StartTime != nil:
	case w.began() != nil:
		started := metav1.NewTime(*w.began())
		status.StartTime = &started
	case status.Phase == v1alpha1.PhaseCompleted && w.Job != nil && w.Job.Status.StartTime != nil:
		status.StartTime = w.Job.Status.StartTime.DeepCopy()
	}
}

// restarted clears what belongs to the run that ended.
func restarted(status *v1alpha1.AgenticSessionStatus, w *World) {
	now := metav1.NewMicroTime(w.Now)
	status.QueuedTime = &now
	status.StoppedReason = ""
	status.CompletionTime = nil
	status.ReconciledRepos = nil
	status.ReconciledWorkflow = nil
	status.ProvisionedTime = nil
	forget(status)
}

// forget clears the objects of a run, and keeps whether its runner ever started: only then was the
// prompt carried out. A run that ended with success did that, whatever else is known of it.
func forget(status *v1alpha1.AgenticSessionStatus) {
	status.RanBefore = status.RanBefore || status.StartTime != nil || isTrue(status.Conditions, v1alpha1.ConditionCompleted)
	status.StartTime = nil
	status.JobName = ""
	status.JobUID = ""
	status.PodName = ""
}

// observe takes over what is known of the run's objects.
func observe(status *v1alpha1.AgenticSessionStatus, w *World) {
	if w.Job == nil || w.replaced() || w.Phase() == v1alpha1.PhasePending || status.Phase == v1alpha1.PhasePending {
		return
	}
	status.JobName = w.Job.Name
	status.JobUID = string(w.Job.UID)
	if pod := w.pod(); pod != nil {
		status.PodName = pod.Name
	}
}

// queued is when a new session was asked for. The creation timestamp has whole seconds; a session
// that is looked at within that second counts from now.
func queued(w *World) *metav1.MicroTime {
	at := w.Session.CreationTimestamp.Time
	if w.Now.Sub(at) < time.Second {
		at = w.Now
	}
	micro := metav1.NewMicroTime(at)
	return &micro
}

// startedAt is when the runner's container started; now when the pod does not say.
func (w *World) startedAt() time.Time {
	if at := w.began(); at != nil {
		return *at
	}
	return w.Now
}

func (w *World) began() *time.Time {
	pod := w.pod()
	if pod == nil {
		return nil
	}
	state := runnerState(pod)
	switch {
	case state == nil:
		return nil
	case state.Running != nil && !state.Running.StartedAt.IsZero():
		return &state.Running.StartedAt.Time
	case state.Terminated != nil && !state.Terminated.StartedAt.IsZero():
		return &state.Terminated.StartedAt.Time
	default:
		return nil
	}
}

// Troubled says that a session that stays where it is does so for another trouble than before.
// What every run goes through is none.
func Troubled(was *v1alpha1.AgenticSessionStatus, d Decision) bool {
	if d.Moves() || d.To.Terminal() {
		return false
	}
	switch d.Reason {
	case v1alpha1.ReasonProvisioning, v1alpha1.ReasonRunnerStarted, v1alpha1.ReasonStoppedByUser,
		v1alpha1.ReasonInactivityTimeout, v1alpha1.ReasonRestarting, v1alpha1.ReasonWaitingForPreviousRun:
		return false
	}
	known := find(was.Conditions, v1alpha1.ConditionReady)
	return known == nil || known.Reason != d.Reason
}

// settling is how long after its Job is made a run that goes as it should writes no intermediate
// status: the runner is usually up before, and says all at once.
const settling = 10 * time.Second

// Postponed says that a status differs from the stored one only by ordinary progress, soon after
// the run began, so that it can be written together with what comes next. Deadlines has the end of
// that time.
func Postponed(w *World, d Decision, status *v1alpha1.AgenticSessionStatus) bool {
	if d.Moves() || d.To != v1alpha1.PhaseCreating || !w.unsettled() {
		return false
	}
	was := w.Session.Status.DeepCopy()
	is := status.DeepCopy()
	for _, s := range []*v1alpha1.AgenticSessionStatus{was, is} {
		s.PodName = ""
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ConditionRecorded ||
				(c.Type == v1alpha1.ConditionPodScheduled || c.Type == v1alpha1.ConditionRunnerStarted) &&
					(c.Reason == v1alpha1.ReasonWaiting || c.Reason == v1alpha1.ReasonPresent)
		})
	}
	return equality.Semantic.DeepEqual(was, is)
}

// unsettled says that a run began a moment ago, so that what is not there yet is no trouble.
func (w *World) unsettled() bool {
	return w.Now.Before(w.settled()) && !due(w.Now, w.startDeadline())
}

// settled is counted from when the Job was told: where many sessions begin at once, that may be long after
// the run began. It leaves half of the time that the run still has to start, so that what it lacks is told before.
func (w *World) settled() time.Time {
	if w.Session.Status.ProvisionedTime == nil {
		return time.Time{}
	}
	began := w.Session.Status.ProvisionedTime.Time
	if made := find(w.Session.Status.Conditions, v1alpha1.ConditionJobCreated); made != nil && made.Status == metav1.ConditionTrue && made.LastTransitionTime.After(began) {
		began = made.LastTransitionTime.Time
	}
	if deadline := w.startDeadline(); !deadline.IsZero() {
		return began.Add(min(settling, deadline.Sub(began)/2))
	}
	return began.Add(settling)
}
