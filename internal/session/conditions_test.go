package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// checkConditions says what is wrong with a set of conditions whatever the world.
func checkConditions(conditions []metav1.Condition, generation int64) []string {
	var wrong []string
	for _, word := range v1alpha1.ConditionTypes {
		c := meta.FindStatusCondition(conditions, word.Word)
		switch {
		case c == nil:
			wrong = append(wrong, word.Word+" is not set")
		case c.Reason == "" || c.Message == "" || c.LastTransitionTime.IsZero():
			wrong = append(wrong, fmt.Sprintf("%s has reason %q, message %q, time %s", c.Type, c.Reason, c.Message, c.LastTransitionTime))
		case !known(v1alpha1.Reasons, c.Reason):
			wrong = append(wrong, fmt.Sprintf("%s has reason %s, which is not among v1alpha1.Reasons", c.Type, c.Reason))
		case c.ObservedGeneration != generation:
			wrong = append(wrong, fmt.Sprintf("%s speaks of generation %d, not %d", c.Type, c.ObservedGeneration, generation))
		}
	}
	if len(conditions) != len(v1alpha1.ConditionTypes) {
		wrong = append(wrong, fmt.Sprintf("there are %d conditions, not %d", len(conditions), len(v1alpha1.ConditionTypes)))
	}
	return wrong
}

func TestCase67AllConditionsEachTimeInEveryWorld(t *testing.T) {
	visited := 0
	everyWorld(func(name func() string, w *session.World) {
		if visited++; visited%sample != 0 {
			return
		}
		d := session.Decide(w)
		status := session.Status(w, d)
		for _, wrong := range checkConditions(status.Conditions, w.Session.Generation) {
			t.Fatalf("%s: %s", name(), wrong)
		}
		is := func(kind string) bool { return meta.IsStatusConditionTrue(status.Conditions, kind) }
		if is(v1alpha1.ConditionCompleted) != (d.To == v1alpha1.PhaseCompleted) || is(v1alpha1.ConditionFailed) != (d.To == v1alpha1.PhaseFailed) {
			t.Fatalf("%s: to %s, but Completed is %t and Failed is %t", name(), d.To, is(v1alpha1.ConditionCompleted), is(v1alpha1.ConditionFailed))
		}
		if is(v1alpha1.ConditionReady) && d.To != v1alpha1.PhaseRunning {
			t.Fatalf("%s: Ready in %s", name(), d.To)
		}
	})
}

type expectation struct {
	kind   string
	status metav1.ConditionStatus
	reason string
}

func yes(kind string) expectation {
	return expectation{kind, metav1.ConditionTrue, v1alpha1.ReasonPresent}
}

func no(kind, reason string) expectation { return expectation{kind, metav1.ConditionFalse, reason} }

func TestConditions(t *testing.T) {
	const (
		ready, pvc, secrets, jobCreated = v1alpha1.ConditionReady, v1alpha1.ConditionPVCReady, v1alpha1.ConditionSecretsReady, v1alpha1.ConditionJobCreated
		podNode, runner                 = v1alpha1.ConditionPodScheduled, v1alpha1.ConditionRunnerStarted
		completed, failed               = v1alpha1.ConditionCompleted, v1alpha1.ConditionFailed
	)
	creating := func(changes ...change) *session.World {
		return inPhase(v1alpha1.PhaseCreating, append([]change{furnished}, changes...)...)
	}
	running := func(changes ...change) *session.World {
		return inPhase(v1alpha1.PhaseRunning, append([]change{furnished, recordedJob, pod(runnerUp(true))}, changes...)...)
	}
	claim := func(change func(*corev1.PersistentVolumeClaim)) change { return workspace(change) }
	lost := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }
	unbound := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }
	going := func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ago(time.Second) }
	for _, c := range []struct {
		name  string
		world *session.World
		want  []expectation
	}{
		{"Pending, a Secret is missing", inPhase(v1alpha1.PhasePending, missing), []expectation{
			no(ready, v1alpha1.ReasonPrerequisiteMissing), no(pvc, v1alpha1.ReasonWaiting), no(secrets, v1alpha1.ReasonPrerequisiteMissing),
			no(jobCreated, v1alpha1.ReasonWaiting), no(completed, v1alpha1.ReasonNotEnded), no(failed, v1alpha1.ReasonNotEnded)}},
		{"Pending, spec wrong", inPhase(v1alpha1.PhasePending, problem), []expectation{
			no(ready, v1alpha1.ReasonInvalidSpec), {failed, metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec}}},
		{"case 4: Pending, previous run", inPhase(v1alpha1.PhasePending, leftovers), []expectation{no(ready, v1alpha1.ReasonWaitingForPreviousRun)}},
		{"Creating, nothing yet", inPhase(v1alpha1.PhaseCreating), []expectation{
			no(ready, v1alpha1.ReasonProvisioning), no(pvc, v1alpha1.ReasonWaiting), no(secrets, v1alpha1.ReasonWaiting),
			no(jobCreated, v1alpha1.ReasonWaiting), no(podNode, v1alpha1.ReasonWaiting), no(runner, v1alpha1.ReasonWaiting)}},
		{"Creating, all made", creating(job), []expectation{yes(pvc), yes(secrets), yes(jobCreated), no(podNode, v1alpha1.ReasonWaiting)}},
		{"Creating, a claim that waits for its first pod counts", creating(claim(unbound)), []expectation{yes(pvc)}},
		{"Creating, Secret gone again", creating(missing), []expectation{no(secrets, v1alpha1.ReasonPrerequisiteMissing)}},
		{"case 22: claim being deleted", creating(claim(going)), []expectation{no(pvc, v1alpha1.ReasonBeingDeleted)}},
		{"case 22: claim lost its volume", creating(claim(lost)), []expectation{no(pvc, v1alpha1.ReasonVolumeLost)}},
		{"case 11: claim refused", creating(obstacle("PersistentVolumeClaim ambient-workspace-a", v1alpha1.ReasonQuotaExceeded, false)), []expectation{
			no(pvc, v1alpha1.ReasonQuotaExceeded), no(ready, v1alpha1.ReasonQuotaExceeded)}},
		{"case 11: Job refused", creating(obstacle("Job a-run-1", v1alpha1.ReasonQuotaExceeded, false)), []expectation{no(jobCreated, v1alpha1.ReasonQuotaExceeded)}},
		{"case 11: pod refused", creating(job, refusal("forbidden: exceeded quota: few")), []expectation{
			yes(jobCreated), no(podNode, v1alpha1.ReasonQuotaExceeded), no(runner, v1alpha1.ReasonQuotaExceeded)}},
		{"case 11: no node yet, as while its volume is made", creating(pod(unschedulable("0/1 nodes")), provisioned(9*time.Second)), []expectation{
			no(podNode, v1alpha1.ReasonWaiting), no(runner, v1alpha1.ReasonWaiting), no(ready, v1alpha1.ReasonProvisioning)}},
		{"case 11: no node", creating(pod(unschedulable("0/1 nodes")), provisioned(10*time.Second)), []expectation{
			yes(jobCreated), no(podNode, v1alpha1.ReasonUnschedulable), no(runner, v1alpha1.ReasonUnschedulable), no(ready, v1alpha1.ReasonUnschedulable)}},
		{"case 11: image", creating(pod(runnerWaits("ErrImagePull", "not found"))), []expectation{
			yes(podNode), no(runner, v1alpha1.ReasonImagePullBackOff), no(ready, v1alpha1.ReasonImagePullBackOff)}},
		{"case 11: missing key", creating(pod(runnerWaits("CreateContainerConfigError", "no key"))), []expectation{
			yes(podNode), no(secrets, v1alpha1.ReasonContainerConfigError), no(runner, v1alpha1.ReasonContainerConfigError)}},
		{"case 24: token Secret's name taken", creating(obstacle("Secret ambient-runner-token-a", v1alpha1.ReasonNameCollision, true)), []expectation{
			{failed, metav1.ConditionTrue, v1alpha1.ReasonNameCollision}}},
		{"Creating, Job being deleted", creating(jobBeingDeleted), []expectation{no(jobCreated, v1alpha1.ReasonBeingDeleted)}},
		{"Creating, runner up but not ready", creating(pod(runnerUp(false))), []expectation{yes(podNode), yes(runner), no(ready, v1alpha1.ReasonProvisioning)}},
		{"Running", running(), []expectation{{ready, metav1.ConditionTrue, v1alpha1.ReasonRunnerStarted},
			yes(pvc), yes(secrets), yes(jobCreated), yes(podNode), yes(runner), no(completed, v1alpha1.ReasonNotEnded), no(failed, v1alpha1.ReasonNotEnded)}},
		{"case 15: Running, the Service is refused", running(quota), []expectation{no(ready, v1alpha1.ReasonQuotaExceeded), yes(runner)}},
		{"case 15: Running, the Service is not there", running(func(w *session.World) { w.Absent = []string{"Service session-a"} }), []expectation{
			no(ready, v1alpha1.ReasonMissing), yes(runner)}},
		{"Stopping", inPhase(v1alpha1.PhaseStopping, furnished, recordedJob, pod(runnerUp(true))), []expectation{
			no(ready, v1alpha1.ReasonStoppedByUser), yes(pvc), no(secrets, v1alpha1.ReasonReleased), no(runner, v1alpha1.ReasonReleased), no(completed, v1alpha1.ReasonNotEnded)}},
		{"to Stopped", inPhase(v1alpha1.PhaseStopping, workspace()), []expectation{
			no(ready, v1alpha1.ReasonStoppedByUser), no(completed, v1alpha1.ReasonStoppedByUser), no(failed, v1alpha1.ReasonStoppedByUser)}},
		{"to Completed", running(jobIs(batchv1.JobComplete, "")), []expectation{
			no(ready, v1alpha1.ReasonRunnerCompleted), {completed, metav1.ConditionTrue, v1alpha1.ReasonRunnerCompleted}, no(failed, v1alpha1.ReasonRunnerCompleted)}},
		{"case 34: the token could not be renewed", running(func(w *session.World) { w.TokenTrouble = "no answer" }), []expectation{
			no(secrets, v1alpha1.ReasonTokenNotRenewed)}},
		{"case 34: the token could not be minted", inPhase(v1alpha1.PhaseCreating, func(w *session.World) { w.TokenTrouble = "no answer" }), []expectation{
			no(secrets, v1alpha1.ReasonTokenNotRenewed)}},
		{"case 9: to Failed, the Job is gone", inPhase(v1alpha1.PhaseRunning, furnished, recordedJob, jobSeen), []expectation{
			no(jobCreated, v1alpha1.ReasonMissing), {failed, metav1.ConditionTrue, v1alpha1.ReasonRunnerLost}}},
		{"to Completed, how far it got is kept", running(jobIs(batchv1.JobComplete, "")), []expectation{
			yes(jobCreated), yes(podNode), yes(runner), no(secrets, v1alpha1.ReasonReleased)}},
		{"case 11: to Failed, how far it got is kept", creating(pod(unschedulable("0/1 nodes")), startDeadlinePassed), []expectation{
			yes(jobCreated), no(podNode, v1alpha1.ReasonUnschedulable), no(runner, v1alpha1.ReasonUnschedulable)}},
		{"case 14: to Failed by the timeout", running(jobIs(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)), []expectation{
			no(ready, v1alpha1.ReasonTimeout), no(completed, v1alpha1.ReasonTimeout), {failed, metav1.ConditionTrue, v1alpha1.ReasonTimeout}}},
		{"case 14: to Failed by the timeout, its pod is gone", withStatus(running(), all(recordedJob, jobIs(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded))), []expectation{
			yes(jobCreated), yes(podNode), yes(runner)}},
		{"case 14: about to fail by the timeout, its pod is gone", withStatus(running(), all(recordedJob, jobIs(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded))), []expectation{
			yes(jobCreated), yes(podNode), yes(runner)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := after(c.world)
			for _, want := range c.want {
				got := meta.FindStatusCondition(status.Conditions, want.kind)
				if got.Status != want.status || got.Reason != want.reason {
					t.Errorf("%s is %s with reason %s (%s); want %s with %s", want.kind, got.Status, got.Reason, got.Message, want.status, want.reason)
				}
			}
		})
	}
}

func TestCase40TimesMoveOnlyWithTheStatusOfACondition(t *testing.T) {
	everyPhase(t, func(t *testing.T, w *session.World) {
		w = storing(w, after(w))
		w.Now = now.Add(time.Hour)
		w.Policy = session.Policy{}
		w.Session.Generation++
		next := after(w)
		for _, c := range next.Conditions {
			was := meta.FindStatusCondition(w.Session.Status.Conditions, c.Type)
			if moved := !c.LastTransitionTime.Equal(&was.LastTransitionTime); moved != (c.Status != was.Status) {
				t.Errorf("%s went from %s to %s and its time moved: %t", c.Type, was.Status, c.Status, moved)
			}
		}
	})
}

func TestCase67TheEditOfAnEndedSessionIsTakenNoteOf(t *testing.T) {
	w := inPhase(v1alpha1.PhaseRunning, furnished, recordedJob, pod(runnerExited(1, "Error")))
	w = storing(w, after(w))
	w.Session.Generation = 9
	status := after(w)
	if status.ObservedGeneration != 9 {
		t.Errorf("observedGeneration is %d, want 9", status.ObservedGeneration)
	}
	if wrong := checkConditions(status.Conditions, 9); wrong != nil {
		t.Error(wrong)
	}
}

// An ended session tells its outcome from its own status alone: its Job goes, its words stay.
func TestCase9TheOutcomeStaysAfterTheJobIsGone(t *testing.T) {
	for _, c := range []struct {
		name   string
		ending change
		phase  v1alpha1.Phase
	}{
		{"Completed", jobIs(batchv1.JobComplete, ""), v1alpha1.PhaseCompleted},
		{"Failed for memory", pod(runnerExited(137, "OOMKilled")), v1alpha1.PhaseFailed},
		{"Failed for the deadline", jobIs(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded), v1alpha1.PhaseFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := inPhase(v1alpha1.PhaseRunning, furnished, recordedJob, c.ending)
			w = storing(w, after(w))
			if w.Phase() != c.phase {
				t.Fatalf("the phase is %s, want %s", w.Phase(), c.phase)
			}
			ended := w.Session.Status
			w.Token = nil
			for range 3 {
				w.Job, w.Pods = nil, nil
				w.Now = w.Now.Add(time.Hour)
				if next := after(w); !equality.Semantic.DeepEqual(next, ended) {
					t.Fatalf("the status changes when the Job is gone:\nwas %+v\nis  %+v", ended, next)
				}
			}
		})
	}
}

func TestAStatusWithoutConditionsIsMendedFromItsPhase(t *testing.T) {
	for phase, reason := range map[v1alpha1.Phase]string{
		v1alpha1.PhaseCompleted: v1alpha1.ReasonRunnerCompleted,
		v1alpha1.PhaseFailed:    v1alpha1.ReasonRunnerFailed,
		v1alpha1.PhaseStopped:   v1alpha1.ReasonStoppedByUser,
	} {
		status := after(inPhase(phase))
		if wrong := checkConditions(status.Conditions, 3); wrong != nil {
			t.Errorf("%s: %v", phase, wrong)
		}
		if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready.Reason != reason {
			t.Errorf("%s: the reason is %s, want %s", phase, ready.Reason, reason)
		}
	}
}

func TestMessagesSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name   string
		world  *session.World
		remedy string
	}{
		{"unmanaged namespace", inPhase(v1alpha1.PhasePending, unmanaged), "kubectl label namespace project ambient-code.io/managed=true"},
		{"stopped", inPhase(v1alpha1.PhaseStopping), "set the annotation ambient-code.io/desired-phase=Running"},
		{"stopped before a run", inPhase(v1alpha1.PhasePending, asksStop), "set the annotation ambient-code.io/desired-phase=Running"},
		{"lost", inPhase(v1alpha1.PhaseRunning), "start the session again"},
		{"timeout", inPhase(v1alpha1.PhaseRunning, jobIs(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)), "raise spec.timeout"},
		{"memory", inPhase(v1alpha1.PhaseRunning, pod(runnerExited(137, "OOMKilled"))), "raise the memory limit"},
	} {
		if d := session.Decide(c.world); !strings.Contains(d.Message, c.remedy) {
			t.Errorf("%s: the message %q does not have %q", c.name, d.Message, c.remedy)
		}
	}
}

// withStatus is a world in which the status of another is told, and only these changes have happened.
func withStatus(told *session.World, changes ...change) *session.World {
	w := inPhase(told.Phase(), furnished)
	w.Session.Status = after(told)
	return with(w, changes...)
}
