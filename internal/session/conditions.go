package session

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// conditions makes every condition of a session from the world and the decision. Conditions of
// types that are not ours are kept. The time of the last transition moves only with the status.
func conditions(w *World, d Decision, status *v1alpha1.AgenticSessionStatus) []metav1.Condition {
	all := status.Conditions
	set := func(kind string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&all, metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: message,
			ObservedGeneration: w.Session.Generation, LastTransitionTime: metav1.NewTime(w.Now),
		})
	}
	live := d.To == v1alpha1.PhaseCreating || d.To == v1alpha1.PhaseRunning
	set(v1alpha1.ConditionReady, is(d.To == v1alpha1.PhaseRunning && sound(w)), d.Reason, d.Message)
	setEnd(set, d)
	set(workspaceReady(w))
	if !live {
		reason, message := idleReason(d)
		for _, kind := range []string{v1alpha1.ConditionSecretsReady, v1alpha1.ConditionJobCreated, v1alpha1.ConditionPodScheduled, v1alpha1.ConditionRunnerStarted} {
			set(kind, metav1.ConditionFalse, reason, message)
		}
		if len(w.Missing) > 0 && d.To == v1alpha1.PhasePending {
			set(v1alpha1.ConditionSecretsReady, metav1.ConditionFalse, v1alpha1.ReasonPrerequisiteMissing, strings.Join(w.Missing, "; "))
		}
		return all
	}
	set(secretsReady(w))
	set(jobCreated(w))
	set(podScheduled(w))
	set(runnerStarted(w, d))
	return all
}

// sound says that nothing is missing or in the way while the runner is up.
func sound(w *World) bool {
	return len(w.Obstacles) == 0 && len(w.Absent) == 0
}

func setEnd(set func(string, metav1.ConditionStatus, string, string), d Decision) {
	switch d.To {
	case v1alpha1.PhaseCompleted:
		set(v1alpha1.ConditionCompleted, metav1.ConditionTrue, d.Reason, d.Message)
		set(v1alpha1.ConditionFailed, metav1.ConditionFalse, d.Reason, "the run ended with success")
	case v1alpha1.PhaseFailed:
		set(v1alpha1.ConditionCompleted, metav1.ConditionFalse, d.Reason, "the run ended without success")
		set(v1alpha1.ConditionFailed, metav1.ConditionTrue, d.Reason, d.Message)
	case v1alpha1.PhaseStopped:
		set(v1alpha1.ConditionCompleted, metav1.ConditionFalse, d.Reason, "the run was stopped")
		set(v1alpha1.ConditionFailed, metav1.ConditionFalse, d.Reason, "the run was stopped")
	default:
		set(v1alpha1.ConditionCompleted, metav1.ConditionFalse, v1alpha1.ReasonNotEnded, "the run has not ended")
		set(v1alpha1.ConditionFailed, metav1.ConditionFalse, v1alpha1.ReasonNotEnded, "the run has not ended")
	}
}

// idleReason is what is said of a run's objects while there is no run.
func idleReason(d Decision) (reason, message string) {
	if d.To == v1alpha1.PhasePending {
		return v1alpha1.ReasonWaiting, "no run has begun"
	}
	return v1alpha1.ReasonReleased, "given back because the run ended or is being ended"
}

func workspaceReady(w *World) (string, metav1.ConditionStatus, string, string) {
	kind := v1alpha1.ConditionPVCReady
	pvc := w.Workspace
	if o := obstacleOf(w, "PersistentVolumeClaim"); o != nil {
		return kind, metav1.ConditionFalse, o.Reason, o.Message
	}
	switch {
	case pvc == nil:
		return kind, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "the workspace volume claim has not been made yet"
	case pvc.DeletionTimestamp != nil:
		return kind, metav1.ConditionFalse, v1alpha1.ReasonBeingDeleted, "the workspace volume claim " + pvc.Name + " is being deleted"
	case pvc.Status.Phase == corev1.ClaimLost:
		return kind, metav1.ConditionFalse, v1alpha1.ReasonVolumeLost, "the workspace volume claim " + pvc.Name + " lost its volume"
	default:
		return kind, metav1.ConditionTrue, v1alpha1.ReasonPresent, "the workspace volume claim " + pvc.Name + " is in place"
	}
}

func secretsReady(w *World) (string, metav1.ConditionStatus, string, string) {
	kind := v1alpha1.ConditionSecretsReady
	if o := w.obstacle(); o != nil && (strings.HasPrefix(o.Object, "Secret ") || o.Reason == v1alpha1.ReasonContainerConfigError) {
		return kind, metav1.ConditionFalse, o.Reason, o.Message
	}
	switch {
	case len(w.Missing) > 0:
		return kind, metav1.ConditionFalse, v1alpha1.ReasonPrerequisiteMissing, strings.Join(w.Missing, "; ")
	case w.Token == nil:
		return kind, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "the runner's token has not been minted yet"
	default:
		return kind, metav1.ConditionTrue, v1alpha1.ReasonPresent, "the Secrets of the runner are in place"
	}
}

func jobCreated(w *World) (string, metav1.ConditionStatus, string, string) {
	kind := v1alpha1.ConditionJobCreated
	switch {
	case w.currentJob() != nil:
		return kind, metav1.ConditionTrue, v1alpha1.ReasonPresent, "the Job " + w.Job.Name + " is in place"
	case w.Job != nil:
		return kind, metav1.ConditionFalse, v1alpha1.ReasonBeingDeleted, "the Job " + w.Job.Name + " is being deleted"
	}
	if o := obstacleOf(w, "Job"); o != nil {
		return kind, metav1.ConditionFalse, o.Reason, o.Message
	}
	return kind, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "the Job has not been made yet"
}

func podScheduled(w *World) (string, metav1.ConditionStatus, string, string) {
	kind := v1alpha1.ConditionPodScheduled
	pod := w.pod()
	if pod != nil && pod.Spec.NodeName != "" {
		return kind, metav1.ConditionTrue, v1alpha1.ReasonPresent, "the pod " + pod.Name + " is on node " + pod.Spec.NodeName
	}
	if o := w.obstacle(); o != nil {
		return kind, metav1.ConditionFalse, o.Reason, o.Message
	}
	return kind, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "the runner pod has no node yet"
}

func runnerStarted(w *World, d Decision) (string, metav1.ConditionStatus, string, string) {
	kind := v1alpha1.ConditionRunnerStarted
	if d.To == v1alpha1.PhaseRunning || w.began() != nil {
		return kind, metav1.ConditionTrue, v1alpha1.ReasonPresent, "the runner container has started"
	}
	if o := w.obstacle(); o != nil {
		return kind, metav1.ConditionFalse, o.Reason, o.Message
	}
	return kind, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "the runner container has not started yet"
}

func obstacleOf(w *World, kind string) *Obstacle {
	for i := range w.Obstacles {
		if strings.HasPrefix(w.Obstacles[i].Object, kind+" ") {
			return &w.Obstacles[i]
		}
	}
	return nil
}

func is(b bool) metav1.ConditionStatus {
	if b {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func find(all []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(all, kind)
}

func isTrue(all []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(all, kind)
}
