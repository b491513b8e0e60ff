package session_test

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// The worlds of the tests: an ordinary session in a phase, and changes to it.

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const (
	jobUID   = types.UID("job-uid")
	otherUID = types.UID("other-uid")
	sentence = "a sentence of the server"
)

type change func(*session.World)

// inPhase is a session that came to a phase the ordinary way, without what its run left behind;
// the start deadline and the inactivity timeout are ten minutes and one hour ahead.
func inPhase(phase v1alpha1.Phase, changes ...change) *session.World {
	w := &session.World{
		Now: now,
		Session: &v1alpha1.AgenticSession{
			ObjectMeta: metav1.ObjectMeta{
				Name: "a", Namespace: "project", UID: "session-uid", Generation: 3,
				CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
				Annotations:       map[string]string{},
			},
			Status: v1alpha1.AgenticSessionStatus{Phase: phase},
		},
		Namespace: session.Namespace{Managed: true},
		Policy:    session.Policy{StartDeadline: 10 * time.Minute, Inactivity: time.Hour},
	}
	status := &w.Session.Status
	switch phase {
	case v1alpha1.PhaseCreating:
		status.Run = 1
		status.ProvisionedTime = ago(time.Second)
	case v1alpha1.PhaseRunning, v1alpha1.PhaseStopping:
		status.Run = 1
		status.ProvisionedTime = ago(time.Minute)
		status.StartTime = ago(30 * time.Second)
	case v1alpha1.PhaseStopped, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed:
		status.Run = 1
		status.CompletionTime = ago(time.Second)
	}
	return with(w, changes...)
}

func with(w *session.World, changes ...change) *session.World {
	for _, c := range changes {
		c(w)
	}
	return w
}

func all(changes ...change) change {
	return func(w *session.World) { with(w, changes...) }
}

func nothing(*session.World) {}

func ago(d time.Duration) *metav1.Time {
	t := metav1.NewTime(now.Add(-d))
	return &t
}

func job(w *session.World) {
	w.Job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: "a-run-1", UID: jobUID, CreationTimestamp: *ago(time.Minute)}}
}

func recordedJob(w *session.World) {
	w.Session.Status.JobName, w.Session.Status.JobUID = "a-run-1", string(jobUID)
}

func replacedJob(w *session.World) {
	job(w)
	w.Session.Status.JobName, w.Session.Status.JobUID = "a-run-1", string(otherUID)
}

func jobBeingDeleted(w *session.World) {
	job(w)
	w.Job.DeletionTimestamp = ago(time.Second)
}

func jobIs(kind batchv1.JobConditionType, reason string) change {
	return func(w *session.World) {
		if w.Job == nil {
			job(w)
		}
		w.Job.Status.Conditions = append(w.Job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: sentence})
	}
}

// pod adds the pod of the Job, with its runner as far as a runner state says.
func pod(states ...func(*corev1.Pod)) change {
	return func(w *session.World) {
		if w.Job == nil {
			job(w)
		}
		controller := true
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "a-run-1-xyz", UID: "pod-uid", CreationTimestamp: *ago(50 * time.Second),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: w.Job.Name, UID: w.Job.UID, Controller: &controller}},
		}}
		for _, state := range states {
			state(&p)
		}
		w.Pods = append(w.Pods, p)
	}
}

func scheduled(p *corev1.Pod) { p.Spec.NodeName = "node-1" }

func podDeleted(p *corev1.Pod) { p.DeletionTimestamp = ago(time.Second) }

func podPhase(phase corev1.PodPhase, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = phase, reason, message
	}
}

func unschedulable(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message})
	}
}

func container(name string, ready bool, state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		scheduled(p)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Image: "example.com/runner:1", Ready: ready, State: state})
	}
}

func runnerUp(ready bool) func(*corev1.Pod) {
	return container(session.RunnerContainer, ready, corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: *ago(40 * time.Second)}})
}

func runnerExited(code int32, reason string) func(*corev1.Pod) {
	return container(session.RunnerContainer, false, corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: *ago(40 * time.Second)}})
}

func runnerWaits(reason, message string) func(*corev1.Pod) {
	return container(session.RunnerContainer, false, corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

func sidecarUp(p *corev1.Pod) {
	container("proxy", true, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})(p)
}

func leftovers(w *session.World) { w.Leftovers = 1 }

func asks(desired string) change {
	return func(w *session.World) {
		a := w.Session.Annotations
		a[v1alpha1.AnnotationDesiredPhase] = desired
		a[v1alpha1.AnnotationStartRequestedAt] = "2026-03-01T11:59:58Z"
		a[v1alpha1.AnnotationStopRequestedAt] = "2026-03-01T11:59:59Z"
	}
}

var (
	asksStop  = asks(v1alpha1.DesiredStopped)
	asksStart = asks(v1alpha1.DesiredRunning)
)

// requestHandled records the request in the annotations as carried out.
func requestHandled(w *session.World) {
	w.Session.Status.HandledRequest = session.Request(w.Session)
}

func problem(w *session.World) { w.Problems = append(w.Problems, "the spec is wrong: mend it") }

func missing(w *session.World) { w.Missing = append(w.Missing, "a Secret is missing: create it") }

func unmanaged(w *session.World) { w.Namespace.Managed = false }

func terminating(w *session.World) { w.Namespace.Terminating = true }

func obstacle(object, reason string, final bool) change {
	return func(w *session.World) {
		w.Obstacles = append(w.Obstacles, session.Obstacle{Object: object, Reason: reason, Message: object + " is refused", Final: final})
	}
}

var (
	nameTaken = obstacle("Service session-a", v1alpha1.ReasonNameCollision, true)
	refused   = obstacle("Role ambient-session-a-role", v1alpha1.ReasonCreateRefused, true)
	quota     = obstacle("Service session-a", v1alpha1.ReasonQuotaExceeded, false)
)

func startDeadlinePassed(w *session.World) {
	w.Session.Status.ProvisionedTime = ago(w.Policy.StartDeadline)
}

func idle(w *session.World) {
	w.Session.Status.StartTime = ago(w.Policy.Inactivity)
	w.Session.Status.LastActivityTime = nil
}

func workspace(changes ...func(*corev1.PersistentVolumeClaim)) change {
	return func(w *session.World) {
		w.Workspace = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "ambient-workspace-a"}}
		for _, c := range changes {
			c(w.Workspace)
		}
	}
}

func token(w *session.World) {
	w.Token = &session.Token{Name: "ambient-runner-token-a", Run: 1, Refreshed: now.Add(-time.Minute), Expires: now.Add(time.Hour)}
}

// furnished is all that a run has besides its Job.
var furnished = all(workspace(), token)

// storing carries a status over into the world, as the API server would store it.
func storing(w *session.World, status v1alpha1.AgenticSessionStatus) *session.World {
	next := *w
	next.Session = w.Session.DeepCopy()
	next.Session.Status = stored(status)
	return &next
}

// stored is a status as it comes back from the API server, with times in whole seconds.
func stored(status v1alpha1.AgenticSessionStatus) v1alpha1.AgenticSessionStatus {
	s := *status.DeepCopy()
	for _, at := range []*metav1.Time{s.StartTime, s.CompletionTime, s.LastActivityTime, s.ProvisionedTime} {
		if at != nil {
			*at = at.Rfc3339Copy()
		}
	}
	if s.QueuedTime != nil {
		*s.QueuedTime = metav1.NewMicroTime(s.QueuedTime.Truncate(time.Microsecond))
	}
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime = s.Conditions[i].LastTransitionTime.Rfc3339Copy()
	}
	return s
}
