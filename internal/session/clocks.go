package session

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// lingering is how long after the end of a run its Job may take to be closed by the Job
// controller before it is removed, beside the pod's grace period, in which sidecars may finish their
// work; only a foreign container that outlives the runner takes longer.
const lingering = time.Minute

// overtime is how long a pod may stay after the end of its grace period. A kubelet ends it then; a
// pod that is still there has lost its node.
const overtime = 2 * time.Minute

// Deadline is a moment at which something is due.
type Deadline struct {
	Name string
	At   time.Time
}

// Deadlines lists the moments still ahead that matter in the stored phase. Facts use the same
// functions, so a session that is woken at a deadline finds it passed.
func (w *World) Deadlines() []Deadline {
	var deadlines []Deadline
	add := func(name string, at time.Time) {
		if !at.IsZero() && at.After(w.Now) {
			deadlines = append(deadlines, Deadline{name, at})
		}
	}
	for i := range w.Pods {
		add("end of pod "+w.Pods[i].Name, w.endOf(&w.Pods[i]))
	}
	add("look", w.Again)
	switch w.Phase() {
	case v1alpha1.PhasePending, v1alpha1.PhaseStopping:
		// What such a session waits for is watched. This is for what a watch did not tell.
		add("look", w.NextLook())
	case v1alpha1.PhaseCreating:
		add("start", w.startDeadline())
		add("settled", w.settled())
		add("steady sidecar", w.steady())
		add("token renewal", w.RenewToken())
	case v1alpha1.PhaseRunning:
		add("inactivity", w.idleDeadline())
		add("steady sidecar", w.steady())
		add("token renewal", w.RenewToken())
	case v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed:
		if w.Job != nil && !Finished(w.Job) {
			add("removal of the Job", w.removal())
		}
	}
	return deadlines
}

// The times after which a session looks again at what it waits for, or what stands in the way of one of
// its objects: as long as it has waited, within these limits.
const (
	soonestLook = 10 * time.Second
	latestLook  = 10 * time.Minute
)

// Obstructed says that the status tells of somebody else's object that has the name of one of a
// running session's.
func (w *World) Obstructed() bool {
	ready := find(w.Session.Status.Conditions, v1alpha1.ConditionReady)
	return w.Phase() == v1alpha1.PhaseRunning && ready != nil && ready.Reason == v1alpha1.ReasonNameCollision
}

// NextLook is when a session looks again at what it waits for and nobody may tell of.
func (w *World) NextLook() time.Time {
	stood := soonestLook
	if ready := find(w.Session.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == metav1.ConditionFalse {
		stood = min(latestLook, max(soonestLook, w.Now.Sub(ready.LastTransitionTime.Time)))
	}
	return w.Now.Add(stood)
}

// Wake is how long until the first deadline; 0 when there is none.
func (w *World) Wake() time.Duration {
	var first time.Duration
	for _, d := range w.Deadlines() {
		if wait := d.At.Sub(w.Now); first == 0 || wait < first {
			first = wait
		}
	}
	return first
}

func due(now, at time.Time) bool {
	return !at.IsZero() && !now.Before(at)
}

func (w *World) startDeadline() time.Time {
	if w.Policy.StartDeadline <= 0 {
		return time.Time{}
	}
	switch {
	case w.Session.Status.ProvisionedTime != nil:
		return w.Session.Status.ProvisionedTime.Add(w.Policy.StartDeadline)
	case w.Job != nil:
		return w.Job.CreationTimestamp.Add(w.Policy.StartDeadline)
	default:
		return time.Time{}
	}
}

// idleDeadline is when the session has been idle for too long. An activity that is said to be in
// the future (a clock ahead of ours) counts as now.
func (w *World) idleDeadline() time.Time {
	if w.Policy.Inactivity <= 0 || w.Session.Status.StartTime == nil {
		return time.Time{}
	}
	last := w.Session.Status.StartTime.Time
	if activity := w.Session.Status.LastActivityTime; activity != nil && activity.After(last) {
		last = activity.Time
	}
	if last.After(w.Now) {
		last = w.Now
	}
	return last.Add(w.Policy.Inactivity)
}

// RenewToken is when the runner's token is to be replaced: after two thirds of its life. Zero when
// there is no token.
func (w *World) RenewToken() time.Time {
	if w.Token == nil || w.Token.Expires.IsZero() {
		return time.Time{}
	}
	return w.Token.Expires.Add(-w.Token.Expires.Sub(w.Token.Refreshed) / 3)
}

// removal is when an unfinished Job of an ended run is to be removed: at once, unless its runner
// has exited, for then the Job controller is about to close it.
func (w *World) removal() time.Time {
	ended := w.Session.Status.CompletionTime
	if ended == nil || !w.exited() {
		return w.Now
	}
	return ended.Add(lingering + w.grace())
}

// grace is how long sidecars may go on when the runner has exited.
func (w *World) grace() time.Duration {
	pod := w.pod()
	if pod == nil || pod.Spec.TerminationGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
}

// RemoveJob says whether the Job must go in the stored phase.
func (w *World) RemoveJob(job *batchv1.Job) bool {
	if w.Session.DeletionTimestamp != nil {
		return true
	}
	switch w.Phase() {
	case v1alpha1.PhasePending, v1alpha1.PhaseStopping, v1alpha1.PhaseStopped:
		return true
	case v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed:
		return !Finished(job) && due(w.Now, w.removal())
	default:
		return false
	}
}

// Overdue lists the pods that should have ended long ago.
func (w *World) Overdue() []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range w.Pods {
		if pod := &w.Pods[i]; due(w.Now, w.endOf(pod)) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// endOf is when a pod that is being deleted should be gone at the latest; zero for one that is not.
// A pod's deletion timestamp is the end of its grace period, by the clock of the API server. Ours may be
// ahead of it, so the time since the deletion was seen counts as well: a runner that is removed by force
// may still be at work, and another begin beside it.
func (w *World) endOf(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	end := pod.DeletionTimestamp.Add(overtime)
	seen := w.Leaving[pod.UID]
	if pod.DeletionGracePeriodSeconds != nil {
		seen = seen.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	if seen = seen.Add(overtime); seen.After(end) {
		return seen
	}
	return end
}

// longestActive is the longest deadline of a Job in seconds, ten years: more is never meant, and the Job
// controller, which counts in nanoseconds, would take it for one that has passed.
const longestActive = 10 * 365 * 24 * 60 * 60

// JobDeadline is how many seconds the Job may be active, counted by the Job controller from the
// Job's start; 0 means no limit. spec.timeout counts from the start of the runner, so the time
// that the Job waited before is added: as much as it may take at the most while the runner has
// not started, then what it took.
func (w *World) JobDeadline(timeout int64) int64 {
	if timeout <= 0 {
		return 0
	}
	timeout = min(timeout, longestActive)
	started := w.Session.Status.StartTime
	if w.Job == nil || w.Job.Status.StartTime == nil || started == nil {
		if w.Policy.StartDeadline <= 0 {
			return 0
		}
		return timeout + int64(w.Policy.StartDeadline/time.Second)
	}
	return min(longestActive, timeout+max(0, int64(started.Sub(w.Job.Status.StartTime.Time)/time.Second)))
}
