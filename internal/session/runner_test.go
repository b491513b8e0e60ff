package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

func exited(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
}

func jobSeen(w *session.World) {
	w.Session.Status.Conditions = append(w.Session.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionJobCreated, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPresent, Message: "there"})
}

// What became of a run, by what its Job and pod say. The outcome must be the same whichever live
// phase the session is in when it is seen.
func TestCase1OutcomesInEveryLivePhase(t *testing.T) {
	const stays = v1alpha1.Phase("")
	failed := jobIs(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	for _, c := range []struct {
		name    string
		world   change
		to      v1alpha1.Phase
		reason  string
		message string
	}{
		{"Job complete", all(jobIs(batchv1.JobComplete, ""), pod(runnerExited(0, "Completed"))), v1alpha1.PhaseCompleted, v1alpha1.ReasonRunnerCompleted, "success"},
		{"Job complete, pod gone", jobIs(batchv1.JobComplete, ""), v1alpha1.PhaseCompleted, v1alpha1.ReasonRunnerCompleted, "success"},
		{"Job failed, exit 1", all(failed, pod(runnerExited(1, "Error"))), v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerFailed, "exit code 1 (the agent framework reported an error"},
		{"Job failed, exit 2", all(failed, pod(runnerExited(2, "Error"))), v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerFailed, "exit code 2 (a prerequisite is missing"},
		{"Job failed, exit 3", all(failed, pod(runnerExited(3, "Error"))), v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerFailed, "exit code 3 (see the log"},
		{"Job failed, killed", all(failed, pod(runnerExited(137, "Error"))), v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerFailed, "killed by signal 9"},
		{"Job failed, told to end", all(failed, pod(runnerExited(143, "Error"))), v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerFailed, "it was told to end"},
		{"Job failed, pod gone", failed, v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerFailed, "without a result"},
		{"Job failed, runner had ended with success", all(failed, pod(runnerExited(0, "Completed"))), v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerFailed, "without a result"},
		{"case 10: OOMKilled, Job still active", all(pod(runnerExited(137, "OOMKilled"), sidecarUp)), v1alpha1.PhaseFailed, v1alpha1.ReasonOOMKilled, "memory"},
		{"case 10: OOMKilled, Job failed", all(failed, pod(runnerExited(137, "OOMKilled"))), v1alpha1.PhaseFailed, v1alpha1.ReasonOOMKilled, "memory"},
		{"case 10: exit 0 beside a living sidecar", pod(runnerExited(0, "Completed"), sidecarUp), v1alpha1.PhaseCompleted, v1alpha1.ReasonRunnerCompleted, "success"},
		{"case 10: a sidecar ends, the runner lives", pod(runnerUp(false), container("proxy", false, exited(1))), stays, "", ""},
		{"evicted", pod(podPhase(corev1.PodFailed, "Evicted", "The node was low on resource: memory.")), v1alpha1.PhaseFailed, v1alpha1.ReasonEvicted, "low on resource"},
		{"evicted, Job failed", all(failed, pod(podPhase(corev1.PodFailed, "Evicted", "low on disk"))), v1alpha1.PhaseFailed, v1alpha1.ReasonEvicted, "low on disk"},
		{"preempted by the kubelet", pod(podPhase(corev1.PodFailed, "Preempting", "for a critical pod")), v1alpha1.PhaseFailed, v1alpha1.ReasonEvicted, "critical"},
		{"pod failed without the container's end", pod(podPhase(corev1.PodFailed, "NodeLost", "the node is gone")), v1alpha1.PhaseFailed, v1alpha1.ReasonRunnerFailed, "NodeLost the node is gone"},
		{"case 14: deadline", all(jobIs(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)), v1alpha1.PhaseFailed, v1alpha1.ReasonTimeout, "spec.timeout"},
		{"case 14: deadline, runner exited 143", all(jobIs(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded), pod(runnerExited(143, "Error"))), v1alpha1.PhaseFailed, v1alpha1.ReasonTimeout, "spec.timeout"},
		{"case 14: deadline passed, pod still ending", all(jobIs(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded), pod(runnerUp(false), podDeleted)), stays, "", ""},
		{"case 14: deadline passed, runner exited, Job not closed", all(jobIs(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded), pod(runnerExited(143, "Error"))), stays, "", ""},
		{"case 2: runner ends on a pod that is being deleted", pod(runnerExited(143, "Error"), podDeleted), stays, "", ""},
		{"case 4: failed Job that is being deleted", all(jobBeingDeleted, failed), stays, "", ""},
		{"case 4: the pod of another Job", all(pod(runnerExited(1, "Error")), func(w *session.World) { w.Job.UID = otherUID }), stays, "", ""},
		{"case 13: a condition that is not True", all(job, func(w *session.World) {
			w.Job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}}
		}), stays, "", ""},
	} {
		for _, phase := range []v1alpha1.Phase{v1alpha1.PhaseCreating, v1alpha1.PhaseRunning} {
			t.Run(c.name+"/"+string(phase), func(t *testing.T) {
				want := c.to
				if want == stays {
					want = phase
				}
				w := inPhase(phase, job, c.world)
				w.Session.Status.JobUID = string(w.Job.UID)
				d := session.Decide(w)
				if d.To != want {
					t.Fatalf("goes to %s by rule %q (%s), want %s", d.To, d.Rule, d.Message, want)
				}
				if c.to != stays && (d.Reason != c.reason || !strings.Contains(d.Message, c.message)) {
					t.Errorf("reason %s, message %q; want %s and a message with %q", d.Reason, d.Message, c.reason, c.message)
				}
			})
		}
	}
}

func TestCase1AnOutcomeIsSeenHoweverLate(t *testing.T) {
	// The operator was down while the runner started and ended: the run is Completed from
	// Creating, with the time at which the runner really started.
	w := inPhase(v1alpha1.PhaseCreating, all(jobIs(batchv1.JobComplete, ""), pod(runnerExited(0, "Completed"))), startDeadlinePassed)
	d := session.Decide(w)
	status := session.Status(w, d)
	if d.To != v1alpha1.PhaseCompleted {
		t.Fatalf("goes to %s, want Completed", d.To)
	}
	if status.StartTime == nil || !status.StartTime.Equal(ago(40*time.Second)) {
		t.Errorf("startTime is %v, want when the container started", status.StartTime)
	}
	if status.CompletionTime == nil || status.JobUID != string(jobUID) || status.PodName == "" {
		t.Errorf("completionTime %v, jobUID %q, podName %q: want all three", status.CompletionTime, status.JobUID, status.PodName)
	}
}

func TestCase4AnotherJobsResultIsNotTheRuns(t *testing.T) {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		w := inPhase(v1alpha1.PhaseRunning, replacedJob, jobIs(kind, ""))
		if d := session.Decide(w); d.To != v1alpha1.PhaseFailed || d.Reason != v1alpha1.ReasonRunnerLost {
			t.Errorf("a Job of another UID that is %s leads to %s with reason %s; want Failed with %s", kind, d.To, d.Reason, v1alpha1.ReasonRunnerLost)
		}
		if status := session.Status(w, session.Decide(w)); status.JobUID != string(otherUID) {
			t.Errorf("the UID of the run's Job became %q", status.JobUID)
		}
	}
}

func TestCase11ObstaclesNameTheirCause(t *testing.T) {
	const quotaSays = `Error creating: pods "a-run-1-x7k2p" is forbidden: exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0`
	for _, c := range []struct {
		name    string
		world   change
		reason  string
		message string
	}{
		{"nothing wrong", all(job), v1alpha1.ReasonProvisioning, "waits for the runner to be ready"},
		{"container is being made", pod(runnerWaits("ContainerCreating", "")), v1alpha1.ReasonProvisioning, "waits for the runner to be ready"},
		{"pod is being initialized", pod(runnerWaits("PodInitializing", "")), v1alpha1.ReasonProvisioning, "waits for the runner to be ready"},
		{"quota", all(job, refusal(quotaSays)), v1alpha1.ReasonQuotaExceeded, "the runner pod is refused: the pod is forbidden: exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0"},
		{"quota that cannot be computed", all(job, refusal(`Error creating: pods "a-1" is forbidden: failed quota: few: must specify limits.cpu`)), v1alpha1.ReasonQuotaExceeded, "must specify limits.cpu"},
		{"pod security", all(job, refusal(`Error creating: pods "a-1" is forbidden: violates PodSecurity "restricted:latest"`)), v1alpha1.ReasonPodCreateForbidden, "violates PodSecurity"},
		{"limit range", all(job, refusal(`Error creating: pods "a-1" is forbidden: maximum cpu usage per Container is 1`)), v1alpha1.ReasonPodCreateForbidden, "maximum cpu"},
		{"a refusal of before the pod was made", all(pod(), refusal(quotaSays)), v1alpha1.ReasonProvisioning, "waits for the runner to be ready"},
		{"no node", all(pod(unschedulable("0/3 nodes are available: 3 Insufficient cpu.")), provisioned(10*time.Second)), v1alpha1.ReasonUnschedulable, "no node takes the runner pod: 0/3 nodes are available: 3 Insufficient cpu."},
		{"missing key", pod(runnerWaits("CreateContainerConfigError", `secret "keys" not found`)), v1alpha1.ReasonContainerConfigError, `secret "keys" not found`},
		{"image with root", pod(runnerWaits("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "x", container: y)`)), v1alpha1.ReasonContainerConfigError, "have the image built with a number other than 0 as USER"},
		{"container cannot be made", pod(runnerWaits("CreateContainerError", "mount failed")), v1alpha1.ReasonContainerStartError, "mount failed"},
		{"container cannot be run", pod(runnerWaits("RunContainerError", "exec format error")), v1alpha1.ReasonContainerStartError, "exec format error"},
		{"image", pod(runnerWaits("ErrImagePull", "not found")), v1alpha1.ReasonImagePullBackOff, `the image "example.com/runner:1" cannot be pulled: not found`},
		{"image of an init container", pod(initWaits("ImagePullBackOff", "not found")), v1alpha1.ReasonImagePullBackOff, `the image "example.com/init:1" cannot be pulled`},
		{"an object is refused", all(job, quota), v1alpha1.ReasonQuotaExceeded, "Service session-a is refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := session.Decide(inPhase(v1alpha1.PhaseCreating, c.world))
			if d.Moves() {
				t.Fatalf("goes to %s (%s); a cause that may go away must be waited for", d.To, d.Message)
			}
			if d.Reason != c.reason || !strings.Contains(d.Message, c.message) {
				t.Errorf("reason %s, message %q; want %s and a message with %q", d.Reason, d.Message, c.reason, c.message)
			}
			overdue := session.Decide(inPhase(v1alpha1.PhaseCreating, c.world, startDeadlinePassed))
			want := c.reason
			if want == v1alpha1.ReasonProvisioning {
				want = v1alpha1.ReasonStartTimeout
			}
			if overdue.To != v1alpha1.PhaseFailed || overdue.Reason != want {
				t.Errorf("past the deadline: goes to %s with reason %s; want Failed with %s", overdue.To, overdue.Reason, want)
			}
			if want == c.reason && !strings.Contains(overdue.Message, c.message) {
				t.Errorf("past the deadline the message %q does not have the cause", overdue.Message)
			}
		})
	}
}

func refusal(message string) change {
	return func(w *session.World) { w.PodRefusal = message }
}

func initWaits(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: "init", Image: "example.com/init:1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
	}
}

// What keeps an object from being made is met only by trying, which a pass that moves does not do.
func TestCase11ALateStartNamesWhatTheLastPassMet(t *testing.T) {
	w := inPhase(v1alpha1.PhaseCreating, quota)
	w = storing(w, after(w))
	w.Obstacles = nil
	startDeadlinePassed(w)
	d := session.Decide(w)
	if d.To != v1alpha1.PhaseFailed || d.Reason != v1alpha1.ReasonQuotaExceeded || !strings.Contains(d.Message, "Service session-a is refused") {
		t.Errorf("goes to %s with %s: %s", d.To, d.Reason, d.Message)
	}
}

func TestAnObstacleThatWaitingDoesNotRemoveComesFirst(t *testing.T) {
	if d := session.Decide(inPhase(v1alpha1.PhaseCreating, quota, nameTaken)); d.To != v1alpha1.PhaseFailed || d.Reason != v1alpha1.ReasonNameCollision {
		t.Errorf("goes to %s with %s, want Failed with %s", d.To, d.Reason, v1alpha1.ReasonNameCollision)
	}
}

func TestCase11WhatCanNeverStartFailsAtOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		world  change
		reason string
	}{
		{"invalid image name", pod(runnerWaits("InvalidImageName", `couldn't parse image name "x:"`)), v1alpha1.ReasonRunnerUnstartable},
		{"name taken", nameTaken, v1alpha1.ReasonNameCollision},
		{"refused for good", refused, v1alpha1.ReasonCreateRefused},
	} {
		if d := session.Decide(inPhase(v1alpha1.PhaseCreating, c.world)); d.To != v1alpha1.PhaseFailed || d.Reason != c.reason {
			t.Errorf("%s: goes to %s with reason %s; want Failed with %s", c.name, d.To, d.Reason, c.reason)
		}
	}
}

// Messages are written to the status when they differ, so one trouble must always read the same.
func TestCase40OneTroubleReadsTheSameEachTime(t *testing.T) {
	const pulled = `failed to pull and unpack image "example.com/runner:1": not found`
	for _, c := range []struct {
		name   string
		worlds []change
	}{
		{"image pull", []change{
			pod(runnerWaits("ErrImagePull", pulled)),
			pod(runnerWaits("ImagePullBackOff", `Back-off pulling image "example.com/runner:1": ErrImagePull: `+pulled)),
		}},
		{"pod names that the Job controller makes up", []change{
			all(job, refusal(`Error creating: pods "a-run-1-x7k2p" is forbidden: exceeded quota: few`)),
			all(job, refusal(`Error creating: pods "a-run-1-9m4wz" is forbidden: exceeded quota: few`)),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := inPhase(v1alpha1.PhaseCreating, c.worlds[0])
			first := session.Status(w, session.Decide(w))
			for _, other := range c.worlds[1:] {
				next := storing(inPhase(v1alpha1.PhaseCreating, other), first)
				next.Now = now.Add(time.Minute)
				second := session.Status(next, session.Decide(next))
				if a, b := fmt.Sprint(stored(first)), fmt.Sprint(stored(second)); a != b {
					t.Errorf("the status changes with it:\n%s\n%s", a, b)
				}
			}
		})
	}
}

func TestTheNewestPodOfTheJobCounts(t *testing.T) {
	older := pod(runnerExited(1, "Error"), func(p *corev1.Pod) { p.CreationTimestamp = *ago(time.Hour) })
	for name, w := range map[string]*session.World{
		"older first":  inPhase(v1alpha1.PhaseCreating, older, pod(runnerUp(true))),
		"newest first": inPhase(v1alpha1.PhaseCreating, pod(runnerUp(true)), older),
	} {
		if d := session.Decide(w); d.To != v1alpha1.PhaseRunning {
			t.Errorf("%s: goes to %s, want Running", name, d.To)
		}
	}
}

func TestPodCreation(t *testing.T) {
	if took, ok := inPhase(v1alpha1.PhaseCreating, pod()).PodCreation(); !ok || took != 10*time.Second {
		t.Errorf("took %s, %t; want 10s", took, ok)
	}
	if _, ok := inPhase(v1alpha1.PhaseCreating, job).PodCreation(); ok {
		t.Error("a Job without a pod has a time of creation")
	}
	if _, ok := inPhase(v1alpha1.PhaseCreating).PodCreation(); ok {
		t.Error("no Job has a time of creation")
	}
}

func TestFinished(t *testing.T) {
	for kind, want := range map[batchv1.JobConditionType]bool{
		batchv1.JobComplete: true, batchv1.JobFailed: true,
		batchv1.JobFailureTarget: false, batchv1.JobSuccessCriteriaMet: false, batchv1.JobSuspended: false,
	} {
		if got := session.Finished(inPhase(v1alpha1.PhaseRunning, jobIs(kind, "")).Job); got != want {
			t.Errorf("a Job that is %s: finished is %t, want %t", kind, got, want)
		}
	}
}
