package session

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Fact is a named statement about a World. Rules are made of facts.
type Fact string

// The facts.
const (
	JobSucceeded        Fact = "JobSucceeded"
	JobFailed           Fact = "JobFailed"
	RunnerReady         Fact = "RunnerReady"
	RunnerUnstartable   Fact = "RunnerUnstartable"
	RunnerLost          Fact = "RunnerLost"
	RunnerGone          Fact = "RunnerGone"
	RunnerExists        Fact = "RunnerExists"
	StopRequested       Fact = "StopRequested"
	StartRequested      Fact = "StartRequested"
	SpecInvalid         Fact = "SpecInvalid"
	Restored            Fact = "Restored"
	NamespaceClosed     Fact = "NamespaceClosed"
	PrerequisiteMissing Fact = "PrerequisiteMissing"
	StartDeadlinePassed Fact = "StartDeadlinePassed"
	Idle                Fact = "Idle"
)

// FactInfo defines a fact.
type FactInfo struct {
	Fact    Fact
	Meaning string
	holds   func(*World) bool
}

// Facts defines every fact.
var Facts = []FactInfo{
	{JobSucceeded, "the run's Job is complete, or its runner exited with 0", func(w *World) bool { o := w.outcome(); return o != nil && o.Succeeded }},
	{JobFailed, "the run's Job failed, or its runner exited with another code or was evicted", func(w *World) bool { o := w.outcome(); return o != nil && !o.Succeeded }},
	{RunnerReady, "the runner answers its readiness probe", (*World).ready},
	{RunnerUnstartable, "the runner can never start as it is, or an object that is not the session's has the name of one of its objects", func(w *World) bool { o := w.obstacle(); return o != nil && o.Final }},
	{RunnerLost, "the run's Job was recorded and is gone, another has its name, or somebody took its pod from it", (*World).lost},
	{RunnerGone, "no Job and no pod of the session is left", (*World).gone},
	{RunnerExists, "a Job or pod of an earlier run is left", func(w *World) bool { return !w.gone() }},
	{StopRequested, "a stop is asked for and not yet carried out", func(w *World) bool { return w.requested(v1alpha1.DesiredStopped) }},
	{StartRequested, "a start is asked for and not yet carried out", func(w *World) bool { return w.requested(v1alpha1.DesiredRunning) }},
	{SpecInvalid, "the session cannot be run as it is specified", func(w *World) bool { return len(w.Problems) > 0 }},
	{Restored, "a run of the session began before it was restored from a backup", (*World).restored},
	{NamespaceClosed, "the namespace is not managed, or is being deleted", func(w *World) bool { return !w.Namespace.Managed || w.Namespace.Terminating }},
	{PrerequisiteMissing, "something the project must hold is missing, the registry of runner types must be mended, or the workspace that is to be used is not free", func(w *World) bool {
		return len(w.Missing) > 0 || w.Registry != "" || w.Awaited != "" || w.Unheld
	}},
	{StartDeadlinePassed, "the runner was not ready within the start deadline", func(w *World) bool { return due(w.Now, w.startDeadline()) }},
	{Idle, "nothing happened for the inactivity timeout", func(w *World) bool { return due(w.Now, w.idleDeadline()) }},
}

// Holds says whether a fact is true of the world.
func (w *World) Holds(fact Fact) bool {
	for i := range Facts {
		if Facts[i].Fact == fact {
			return Facts[i].holds(w)
		}
	}
	return false
}

func (w *World) lost() bool {
	return w.recorded() && (w.Job == nil || w.replaced() || w.interrupted())
}

// interrupted says that somebody took the pod of a running session away from it, by suspending its
// Job or by letting it have no pod. Undone, that would make another pod do the work once more.
func (w *World) interrupted() bool {
	job := w.currentJob()
	if job == nil || w.Phase() != v1alpha1.PhaseRunning || Finished(job) {
		return false
	}
	pod, known := w.pod(), w.Session.Status.PodName
	return job.Spec.Suspend != nil && *job.Spec.Suspend ||
		job.Spec.Parallelism != nil && *job.Spec.Parallelism != 1 ||
		known != "" && pod != nil && pod.Name != known
}

func (w *World) gone() bool {
	return w.Job == nil && w.Leftovers == 0 && len(w.Pods) == 0
}

// Request names the request in the annotations, so that the status can say which one was carried
// out; empty when there is none. A value that is neither Running nor Stopped is no request.
func Request(s *v1alpha1.AgenticSession) string {
	switch desired := s.Annotations[v1alpha1.AnnotationDesiredPhase]; desired {
	case v1alpha1.DesiredRunning:
		return desired + "@" + brief(s.Annotations[v1alpha1.AnnotationStartRequestedAt])
	case v1alpha1.DesiredStopped:
		return desired + "@" + brief(s.Annotations[v1alpha1.AnnotationStopRequestedAt])
	default:
		return ""
	}
}

// brief is a time as somebody wrote it, or a digest of what is longer than any time.
func brief(at string) string {
	const longest = 64
	if len(at) <= longest {
		return at
	}
	sum := sha256.Sum256([]byte(at))
	return hex.EncodeToString(sum[:])
}

func (w *World) requested(desired string) bool {
	request := Request(w.Session)
	if w.Foreign() && w.Phase().Terminal() {
		return false // until the session is marked as this one; what the backup held asks for nothing
	}
	return request != "" && request != w.Session.Status.HandledRequest &&
		w.Session.Annotations[v1alpha1.AnnotationDesiredPhase] == desired
}

// Honoured says whether the stored phase, or an earlier pass, already answers the request in the
// annotations, so that it can be removed from them.
func (w *World) Honoured() bool {
	request := Request(w.Session)
	if request == "" {
		return false
	}
	if request == w.Session.Status.HandledRequest {
		return true
	}
	switch w.Phase() {
	case v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning:
		return w.Session.Annotations[v1alpha1.AnnotationDesiredPhase] == v1alpha1.DesiredRunning
	default:
		return w.Session.Annotations[v1alpha1.AnnotationDesiredPhase] == v1alpha1.DesiredStopped
	}
}
