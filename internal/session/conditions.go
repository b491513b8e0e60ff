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
		if len(message) > longestMessage {
			message = strings.ToValidUTF8(message[:longestMessage], "") + "..."
		}
		meta.SetStatusCondition(&all, metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: message,
			ObservedGeneration: w.Session.Generation, LastTransitionTime: metav1.NewTime(w.Now),
		})
	}
	set(v1alpha1.ConditionReady, is(d.To == v1alpha1.PhaseRunning && sound(w)), d.Reason, d.Message)
	setEnd(set, d)
	set(workspaceReady(w, d))
	setEdits(set, w, d, status)
	switch d.To {
	case v1alpha1.PhaseCreating, v1alpha1.PhaseRunning:
		set(secretsReady(w))
		setRun(set, w, d, all)
	case v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed:
		// What the run got to stays told after its objects are gone.
		set(v1alpha1.ConditionSecretsReady, metav1.ConditionFalse, v1alpha1.ReasonReleased, released)
		if d.Moves() && w.Job != nil {
			setRun(set, w, d, all)
		} else {
			keepRun(set, all)
		}
		if d.Moves() && d.Reason == v1alpha1.ReasonRunnerLost && w.Job == nil {
			set(v1alpha1.ConditionJobCreated, metav1.ConditionFalse, v1alpha1.ReasonMissing, "the Job of the run is gone")
		}
	default:
		setNoRun(set, w, d)
	}
	set(recorded(status))
	return all
}

// recorded keeps what the operator must remember where every definition of sessions has a place for it.
func recorded(status *v1alpha1.AgenticSessionStatus) (string, metav1.ConditionStatus, string, string) {
	kind := v1alpha1.ConditionRecorded
	if status.Dropped {
		return kind, metav1.ConditionFalse, v1alpha1.ReasonFieldsDropped, status.Record("the CustomResourceDefinition of sessions in this cluster is not this operator's and drops fields of the status, which are kept here alone; to see them again, apply the operator's own")
	}
	return kind, metav1.ConditionTrue, v1alpha1.ReasonPresent, status.Record("what the operator remembers of the session")
}

// longestMessage keeps a condition far below what the API server takes, which refuses the whole
// status otherwise.
const longestMessage = 4096

type setter = func(kind string, is metav1.ConditionStatus, reason, message string)

const released = "given back because the run ended or is being ended"

// runConditions are those that tell how far a run got.
var runConditions = []string{v1alpha1.ConditionJobCreated, v1alpha1.ConditionPodScheduled, v1alpha1.ConditionRunnerStarted}

// setRun tells how far a run has got. Where its pod is gone already, as after a deadline, it stays
// true that the pod had a node and that the runner started.
func setRun(set setter, w *World, d Decision, all []metav1.Condition) {
	set(jobCreated(w))
	for _, tell := range []func() (string, metav1.ConditionStatus, string, string){
		func() (string, metav1.ConditionStatus, string, string) { return podScheduled(w) },
		func() (string, metav1.ConditionStatus, string, string) { return runnerStarted(w, d) },
	} {
		kind, is, reason, message := tell()
		if known := find(all, kind); w.pod() == nil && known != nil && known.Status == metav1.ConditionTrue {
			is, reason, message = known.Status, known.Reason, known.Message
		}
		set(kind, is, reason, message)
	}
}

func keepRun(set setter, all []metav1.Condition) {
	for _, kind := range runConditions {
		if known := find(all, kind); known != nil {
			set(kind, known.Status, known.Reason, known.Message)
			continue
		}
		set(kind, metav1.ConditionFalse, v1alpha1.ReasonReleased, released)
	}
}

// setNoRun is for the phases in which no run's objects are there.
func setNoRun(set setter, w *World, d Decision) {
	reason, message := v1alpha1.ReasonReleased, released
	if d.To == v1alpha1.PhasePending {
		reason, message = v1alpha1.ReasonWaiting, "no run has begun"
	}
	for _, kind := range runConditions {
		set(kind, metav1.ConditionFalse, reason, message)
	}
	if len(w.Missing) > 0 && d.To == v1alpha1.PhasePending {
		reason, message = v1alpha1.ReasonPrerequisiteMissing, strings.Join(w.Missing, "; ")
	}
	set(v1alpha1.ConditionSecretsReady, metav1.ConditionFalse, reason, message)
}

// sound says that nothing is missing or in the way while the runner is up.
func sound(w *World) bool {
	return len(w.Obstacles) == 0 && len(w.Absent) == 0 && w.TokenTrouble == "" && w.unsynced() == nil
}

func setEnd(set setter, d Decision) {
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

func workspaceReady(w *World, d Decision) (string, metav1.ConditionStatus, string, string) {
	kind := v1alpha1.ConditionPVCReady
	pvc := w.Workspace
	if why := volumeless(w, d); why != "" {
		return kind, metav1.ConditionTrue, v1alpha1.ReasonNotNeeded, why
	}
	if o := obstacleOf(w, "PersistentVolumeClaim"); o != nil {
		return kind, metav1.ConditionFalse, o.Reason, o.Message
	}
	switch {
	case d.To == v1alpha1.PhasePending && awaited(w) != "":
		return kind, metav1.ConditionFalse, v1alpha1.ReasonWorkspaceInUse, awaited(w)
	case pvc == nil && continued(w, d) != "":
		return kind, metav1.ConditionTrue, v1alpha1.ReasonContinued, continued(w, d)
	case pvc == nil:
		return kind, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "the workspace volume claim has not been made yet"
	case pvc.DeletionTimestamp != nil:
		return kind, metav1.ConditionFalse, v1alpha1.ReasonBeingDeleted, "the workspace volume claim " + pvc.Name + " is being deleted" + lastRun(w)
	case pvc.Status.Phase == corev1.ClaimLost:
		return kind, metav1.ConditionFalse, v1alpha1.ReasonVolumeLost, "the workspace volume claim " + pvc.Name + " lost its volume"
	case w.Continued != "":
		return kind, metav1.ConditionTrue, v1alpha1.ReasonContinued, "the run goes on in the workspace of session " + w.Continued + " (volume claim " + pvc.Name + ")"
	case w.Uncontinued != "":
		return kind, metav1.ConditionTrue, v1alpha1.ReasonPresent, "the workspace volume claim " + pvc.Name + " is in place; " + w.Uncontinued
	default:
		return kind, metav1.ConditionTrue, v1alpha1.ReasonPresent, "the workspace volume claim " + pvc.Name + " is in place"
	}
}

// volumeless says why there is no volume claim. What was said of a run stays told once it has ended,
// when its type is looked up no more.
func volumeless(w *World, d Decision) string {
	if w.Volumeless != "" {
		return w.Volumeless
	}
	known := find(w.Session.Status.Conditions, v1alpha1.ConditionPVCReady)
	beginning := d.To == v1alpha1.PhasePending || d.To == v1alpha1.PhaseCreating
	if w.Workspace != nil || beginning || known == nil || known.Reason != v1alpha1.ReasonNotNeeded {
		return ""
	}
	return known.Message
}

func secretsReady(w *World) (string, metav1.ConditionStatus, string, string) {
	kind := v1alpha1.ConditionSecretsReady
	if o := w.obstacle(); o != nil && (strings.HasPrefix(o.Object, "Secret ") || o.Reason == v1alpha1.ReasonContainerConfigError) {
		return kind, metav1.ConditionFalse, o.Reason, o.Message
	}
	switch {
	case w.TokenTrouble != "":
		return kind, metav1.ConditionFalse, v1alpha1.ReasonTokenNotRenewed, w.TokenTrouble
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
