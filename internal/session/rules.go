package session

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Rule moves a session from one phase to another, or says why it stays.
type Rule struct {
	Name string
	From []v1alpha1.Phase
	// When lists the facts that must all hold; none means always.
	When []Fact
	To   v1alpha1.Phase
	// Reason is the reason of the move. Where a rule has an explanation, that may say a more
	// exact one.
	Reason  string
	explain func(*World) (reason, message string)
}

var (
	starting = []v1alpha1.Phase{v1alpha1.PhaseCreating, v1alpha1.PhaseRunning}
	pending  = []v1alpha1.Phase{v1alpha1.PhasePending}
	creating = []v1alpha1.Phase{v1alpha1.PhaseCreating}
	running  = []v1alpha1.Phase{v1alpha1.PhaseRunning}
	stopping = []v1alpha1.Phase{v1alpha1.PhaseStopping}
	ended    = []v1alpha1.Phase{v1alpha1.PhaseStopped, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed}
)

// Rules are the phase machine: the first rule whose phase and facts match wins; when none does the
// session stays. The order is: what happened to the runner, what the user wants, what is missing,
// what the clocks say.
var Rules = []Rule{
	{"restored", pending, []Fact{Restored}, v1alpha1.PhaseStopped, v1alpha1.ReasonRestored, says(restoredMessage)},
	{"restored-run", starting, []Fact{Restored}, v1alpha1.PhaseStopping, v1alpha1.ReasonRestored, says("the session was restored from a backup; what was restored of its run is being removed")},
	{"completed", starting, []Fact{JobSucceeded}, v1alpha1.PhaseCompleted, v1alpha1.ReasonRunnerCompleted, explainOutcome},
	{"runner-failed", starting, []Fact{JobFailed}, v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerFailed, explainOutcome},
	{"stop-before-start", pending, []Fact{StopRequested}, v1alpha1.PhaseStopped, v1alpha1.ReasonStoppedByUser, says("stopped on request before a run began; to start it, set the annotation " + v1alpha1.AnnotationDesiredPhase + "=Running")},
	{"stop", starting, []Fact{StopRequested}, v1alpha1.PhaseStopping, v1alpha1.ReasonStoppedByUser, says("a stop was asked for; the runner is being ended")},
	{"invalid-spec", pending, []Fact{SpecInvalid}, v1alpha1.PhaseFailed, v1alpha1.ReasonInvalidSpec, explainProblems},
	{"previous-run", pending, []Fact{RunnerExists}, v1alpha1.PhasePending, v1alpha1.ReasonWaitingForPreviousRun, explainPreviousRun},
	{"namespace", pending, []Fact{NamespaceClosed}, v1alpha1.PhasePending, v1alpha1.ReasonNamespaceNotManaged, explainNamespace},
	{"prerequisites", pending, []Fact{PrerequisiteMissing}, v1alpha1.PhasePending, v1alpha1.ReasonPrerequisiteMissing, explainMissing},
	{"provision", pending, nil, v1alpha1.PhaseCreating, v1alpha1.ReasonProvisioning, says("the objects of the run are being made")},
	{"runner-unstartable", creating, []Fact{RunnerUnstartable}, v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerUnstartable, explainObstacle},
	{"started", creating, []Fact{RunnerReady}, v1alpha1.PhaseRunning, v1alpha1.ReasonRunnerStarted, says("the runner is up")},
	{"runner-lost", starting, []Fact{RunnerLost}, v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerLost, explainLoss},
	{"start-timeout", creating, []Fact{StartDeadlinePassed}, v1alpha1.PhaseFailed, v1alpha1.ReasonStartTimeout, explainStartTimeout},
	{"idle", running, []Fact{Idle}, v1alpha1.PhaseStopping, v1alpha1.ReasonInactivityTimeout, explainIdle},
	{"stopped", stopping, []Fact{RunnerGone}, v1alpha1.PhaseStopped, v1alpha1.ReasonStoppedByUser, explainStopped},
	{"restart", ended, []Fact{StartRequested}, v1alpha1.PhasePending, v1alpha1.ReasonRestarting, says("a new run was asked for")},
}

// Decision is what is to become of a session.
type Decision struct {
	// Rule is the name of the rule that matched, empty when none did.
	Rule    string
	From    v1alpha1.Phase
	To      v1alpha1.Phase
	Reason  string
	Message string
}

// Moves says whether the phase changes.
func (d Decision) Moves() bool { return d.From != d.To }

// Decide picks the next phase of a session.
func Decide(w *World) Decision {
	phase := w.Phase()
	for i := range Rules {
		rule := &Rules[i]
		if !slices.Contains(rule.From, phase) || !holdsAll(w, rule.When) {
			continue
		}
		reason, message := rule.explain(w)
		if reason == "" {
			reason = rule.Reason
		}
		return Decision{Rule: rule.Name, From: phase, To: rule.To, Reason: reason, Message: message}
	}
	reason, message := explainStay(w)
	return Decision{From: phase, To: phase, Reason: reason, Message: message}
}

func holdsAll(w *World, facts []Fact) bool {
	for _, fact := range facts {
		if !w.Holds(fact) {
			return false
		}
	}
	return true
}

func says(message string) func(*World) (string, string) {
	return func(*World) (string, string) { return "", message }
}

// explainLoss says what became of the Job of a run.
func explainLoss(w *World) (string, string) {
	what := "the Job of the run was removed"
	switch {
	case w.replaced():
		what = "another Job took the place of the Job of the run"
	case w.Job != nil:
		what = "the Job of the run was interrupted, so that its pod was taken from it,"
	}
	return "", what + " before its outcome was known; its work is not run again by itself: start the session again if it should be"
}

func explainOutcome(w *World) (string, string) {
	o := w.outcome()
	return o.Reason, o.Message
}

func explainObstacle(w *World) (string, string) {
	o := w.obstacle()
	return o.Reason, o.Message
}

func explainProblems(w *World) (string, string) {
	return "", strings.Join(w.Problems, "; ")
}

func explainMissing(w *World) (string, string) {
	if w.Registry != "" {
		return v1alpha1.ReasonRegistryInvalid, w.Registry
	}
	if len(w.Missing) == 0 {
		return v1alpha1.ReasonWorkspaceInUse, awaited(w)
	}
	return "", strings.Join(w.Missing, "; ")
}

func explainNamespace(w *World) (string, string) {
	if w.Namespace.Terminating {
		return v1alpha1.ReasonNamespaceTerminating, fmt.Sprintf("namespace %s is being deleted; no run is started in it", w.Session.Namespace)
	}
	return v1alpha1.ReasonNamespaceNotManaged, fmt.Sprintf("namespace %s is not managed; to have its sessions run, label it: kubectl label namespace %s %s=true", w.Session.Namespace, w.Session.Namespace, v1alpha1.LabelManaged)
}

// explainStartTimeout names the trouble that was there when the deadline passed as the reason: it
// is what has to be mended. What kept an object from being made is known only from the last pass,
// which has told it in the status.
func explainStartTimeout(w *World) (string, string) {
	late := fmt.Sprintf("the runner was not ready within %s: ", w.Policy.StartDeadline)
	if o := w.obstacle(); o != nil {
		return o.Reason, late + o.Message
	}
	if ready := find(w.Session.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason != v1alpha1.ReasonProvisioning {
		return ready.Reason, late + ready.Message
	}
	return "", late + "see the events and the log of its pod"
}

func explainIdle(w *World) (string, string) {
	return "", fmt.Sprintf("no activity for %s; the runner is being ended", w.Policy.Inactivity)
}

func explainStopped(w *World) (string, string) {
	if w.Foreign() {
		return v1alpha1.ReasonRestored, restoredMessage
	}
	if w.Session.Status.StoppedReason == v1alpha1.StoppedByInactivity {
		return v1alpha1.ReasonInactivityTimeout, "stopped for inactivity; to go on, set the annotation " + v1alpha1.AnnotationDesiredPhase + "=Running"
	}
	return "", "stopped on request; to go on, set the annotation " + v1alpha1.AnnotationDesiredPhase + "=Running"
}

// explainStay says why a session is where it is while no rule moves it.
func explainStay(w *World) (string, string) {
	switch w.Phase() {
	case v1alpha1.PhaseCreating:
		if o := w.obstacle(); o != nil {
			return o.Reason, o.Message
		}
		return v1alpha1.ReasonProvisioning, "waits for the runner to be ready"
	case v1alpha1.PhaseRunning:
		if met := w.met(); met != nil {
			return met.Reason, met.Message
		}
		if w.TokenTrouble != "" {
			return v1alpha1.ReasonTokenNotRenewed, w.TokenTrouble
		}
		if len(w.Absent) > 0 {
			return v1alpha1.ReasonMissing, "not in place: " + strings.Join(w.Absent, ", ")
		}
		if found := w.unsynced(); found != nil {
			return found.Reason, found.Message
		}
		return v1alpha1.ReasonRunnerStarted, "the runner is up"
	case v1alpha1.PhaseStopping:
		if overdue := w.Overdue(); len(overdue) > 0 {
			return v1alpha1.ReasonForcedStop, explainOverdue(overdue[0])
		}
		return stopReason(w), "waits until the runner's Job and pods are gone" + w.held()
	default:
		return stored(w)
	}
}

func explainPreviousRun(w *World) (string, string) {
	return "", "waits until the Job and the pods of the previous run are gone" + w.held()
}

// held names what somebody's finalizers keep; empty for nothing.
func (w *World) held() string {
	var objects []metav1.Object
	if w.Job != nil {
		objects = append(objects, w.Job)
	}
	for i := range w.Pods {
		objects = append(objects, &w.Pods[i])
	}
	for _, object := range objects {
		foreign := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool {
			return f == batchv1.JobTrackingFinalizer || f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
		})
		if object.GetDeletionTimestamp() != nil && len(foreign) > 0 {
			return fmt.Sprintf("; %s is kept by the finalizers %s: whoever set them must take them off", object.GetName(), strings.Join(foreign, ", "))
		}
	}
	return ""
}

func explainOverdue(pod *corev1.Pod) string {
	if len(pod.Finalizers) > 0 {
		return fmt.Sprintf("pod %s was removed by force, but its finalizers (%s) keep it: whoever set them must take them off", pod.Name, strings.Join(pod.Finalizers, ", "))
	}
	return fmt.Sprintf("pod %s was still there %s after its grace period, as when its node is lost; it is removed by force", pod.Name, overtime)
}

func stopReason(w *World) string {
	if w.Foreign() {
		return v1alpha1.ReasonRestored
	}
	if w.Session.Status.StoppedReason == v1alpha1.StoppedByInactivity {
		return v1alpha1.ReasonInactivityTimeout
	}
	return v1alpha1.ReasonStoppedByUser
}

// ended says that the conditions in the status are those of the phase in it, so that both were
// written together.
func (w *World) ended() bool {
	all := w.Session.Status.Conditions
	completed, failed := find(all, v1alpha1.ConditionCompleted), find(all, v1alpha1.ConditionFailed)
	switch w.Phase() {
	case v1alpha1.PhaseCompleted:
		return completed != nil && completed.Status == metav1.ConditionTrue
	case v1alpha1.PhaseFailed:
		return failed != nil && failed.Status == metav1.ConditionTrue
	default:
		return completed == nil || completed.Reason != v1alpha1.ReasonNotEnded && completed.Status != metav1.ConditionTrue
	}
}

// stored is the reason and message that the status gives already: the outcome of an ended run is
// known from nowhere else once its Job is gone.
func stored(w *World) (string, string) {
	ready := find(w.Session.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready != nil && w.ended():
		return ready.Reason, ready.Message
	case ready != nil:
		return v1alpha1.ReasonOutcomeUnknown, fmt.Sprintf("somebody else than the operator wrote the phase %s into the status; how the run ended is not known, and what was left of it has been removed: to run the session again, set the annotation %s=Running", w.Phase(), v1alpha1.AnnotationDesiredPhase)
	}
	switch w.Phase() {
	case v1alpha1.PhaseCompleted:
		return v1alpha1.ReasonRunnerCompleted, "the runner ended with success"
	case v1alpha1.PhaseFailed:
		return v1alpha1.ReasonRunnerFailed, "the run failed; its cause is no longer known"
	default:
		return stopReason(w), "stopped"
	}
}
