package session_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

func registryBroken(w *session.World) { w.Registry = "the registry is broken: mend it" }

func volumeless(w *session.World) { w.Volumeless = "the workspace is kept elsewhere" }

// initEnded adds an init container of the pod that ended.
func initEnded(name string, code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: "State hydration\nERROR: no route to host\n"}}})
	}
}

// A broken registry is the administrator's to mend: the session waits, and says for what.
func TestARegistryThatMustBeMended(t *testing.T) {
	for _, c := range []struct {
		name   string
		world  *session.World
		to     v1alpha1.Phase
		reason string
	}{
		{"broken", inPhase(v1alpha1.PhasePending, registryBroken), v1alpha1.PhasePending, v1alpha1.ReasonRegistryInvalid},
		{"broken, and a Secret is missing", inPhase(v1alpha1.PhasePending, registryBroken, missing), v1alpha1.PhasePending, v1alpha1.ReasonRegistryInvalid},
		{"a Secret is missing", inPhase(v1alpha1.PhasePending, missing), v1alpha1.PhasePending, v1alpha1.ReasonPrerequisiteMissing},
		{"the session's mistake goes first", inPhase(v1alpha1.PhasePending, registryBroken, problem), v1alpha1.PhaseFailed, v1alpha1.ReasonInvalidSpec},
		{"stopped meanwhile", inPhase(v1alpha1.PhasePending, registryBroken, asksStop), v1alpha1.PhaseStopped, v1alpha1.ReasonStoppedByUser},
		{"mended", inPhase(v1alpha1.PhasePending), v1alpha1.PhaseCreating, v1alpha1.ReasonProvisioning},
		{"broken while it runs", inPhase(v1alpha1.PhaseRunning, registryBroken, pod(runnerUp(true)), recordedJob), v1alpha1.PhaseRunning, v1alpha1.ReasonRunnerStarted},
	} {
		d := session.Decide(c.world)
		if d.To != c.to || d.Reason != c.reason || c.reason == v1alpha1.ReasonRegistryInvalid && d.Message != c.world.Registry {
			t.Errorf("%s: to %s for %s: %s; want %s for %s", c.name, d.To, d.Reason, d.Message, c.to, c.reason)
		}
	}
}

func TestTheWorkspaceOfATypeThatNeedsNoVolume(t *testing.T) {
	remembers := func(w *session.World) {
		d := session.Decide(with(w, volumeless))
		w.Session.Status.Conditions = session.Status(w, d).Conditions
		w.Volumeless = ""
	}
	for _, c := range []struct {
		name  string
		world *session.World
		want  string
	}{
		{"while it begins", inPhase(v1alpha1.PhaseCreating, volumeless), v1alpha1.ReasonNotNeeded},
		{"beside a claim of an earlier type", inPhase(v1alpha1.PhaseRunning, volumeless, workspace(), job), v1alpha1.ReasonNotNeeded},
		{"when it has ended", inPhase(v1alpha1.PhaseCompleted, remembers), v1alpha1.ReasonNotNeeded},
		{"when it is ending", inPhase(v1alpha1.PhaseStopping, remembers, leftovers), v1alpha1.ReasonNotNeeded},
		{"started again with a type that needs one", inPhase(v1alpha1.PhasePending, remembers, missing), v1alpha1.ReasonWaiting},
		{"another type, when it has ended", inPhase(v1alpha1.PhaseCompleted), v1alpha1.ReasonWaiting},
	} {
		status := session.Status(c.world, session.Decide(c.world))
		got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPVCReady)
		if got.Reason != c.want || (got.Status == "True") != (c.want == v1alpha1.ReasonNotNeeded) {
			t.Errorf("%s: PVCReady is %s for %s: %s", c.name, got.Status, got.Reason, got.Message)
		}
	}
}

func TestAWorkspaceThatCannotBePrepared(t *testing.T) {
	failed := podPhase(corev1.PodFailed, "", "")
	for _, c := range []struct {
		name, reason, says string
		world              change
	}{
		{"it failed", v1alpha1.ReasonWorkspaceNotPrepared, "init-hydrate ended with exit code 1 before the runner started: ERROR: no route to host", pod(failed, initEnded("init-hydrate", 1, "Error"))},
		{"it failed, and the Job knows", v1alpha1.ReasonWorkspaceNotPrepared, "init-hydrate ended with exit code 1", all(jobIs(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded), pod(failed, initEnded("init-hydrate", 1, "Error"), runnerWaits("PodInitializing", "")))},
		{"it used too much memory", v1alpha1.ReasonOOMKilled, "init-hydrate", pod(failed, initEnded("init-hydrate", 137, "OOMKilled"))},
		{"it had ended well before the pod failed", v1alpha1.ReasonRunnerFailed, "the runner pod failed", pod(failed, initEnded("init-hydrate", 0, "Completed"))},
	} {
		d := session.Decide(inPhase(v1alpha1.PhaseCreating, c.world))
		if d.To != v1alpha1.PhaseFailed || d.Reason != c.reason || !strings.Contains(d.Message, c.says) {
			t.Errorf("%s: to %s for %s: %s", c.name, d.To, d.Reason, d.Message)
		}
	}
}

// A sidecar has the grace period for its last work after the runner has exited.
func TestASidecarMayFinishItsWork(t *testing.T) {
	for grace, wait := range map[int64]time.Duration{0: time.Minute, 90: 150 * time.Second} {
		w := inPhase(v1alpha1.PhaseCompleted, pod(runnerExited(0, "Completed"), sidecarUp, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &grace }))
		for _, at := range []time.Duration{wait - time.Second, wait} {
			w.Session.Status.CompletionTime = ago(at)
			if got := w.RemoveJob(w.Job); got != (at == wait) {
				t.Errorf("grace %ds: %s after the end, the Job is to be removed: %t", grace, at, got)
			}
		}
	}
}

// syncUp is the sidecar that copies to S3: up since some time, and how it ended before.
func syncUp(up time.Duration, before *corev1.ContainerStateTerminated) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name:                 session.SyncContainer,
			State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *ago(up)}},
			LastTerminationState: corev1.ContainerState{Terminated: before},
		})
	}
}

// syncDown is the same sidecar between two starts.
func syncDown(state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		syncUp(0, crashed)(p)
		p.Status.InitContainerStatuses[len(p.Status.InitContainerStatuses)-1].State = state
	}
}

var crashed = &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "syncing\nno space left\n"}

func backingOff(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// A sidecar that does not stay up is told for as long as it does not, in the same words whatever
// the moment at which it is looked at.
func TestASidecarThatDoesNotStayUp(t *testing.T) {
	ready := runnerUp(true)
	for _, c := range []struct {
		name  string
		pod   change
		fails bool
		says  string
	}{
		{"never ended", pod(syncUp(time.Second, nil), ready), false, ""},
		{"has just ended", pod(syncDown(corev1.ContainerState{Terminated: crashed}), ready), true, "exit code 3"},
		{"waits for its next start", pod(syncDown(backingOff("CrashLoopBackOff", "back-off 10s")), ready), true, "exit code 3"},
		{"lacks what its next start needs", pod(syncDown(backingOff("CreateContainerConfigError", "secret not found")), ready), true, "secret not found"},
		{"was started again", pod(syncUp(59*time.Second, crashed), ready), true, "no space left"},
		{"stays up", pod(syncUp(time.Minute, crashed), ready), false, ""},
		{"ends because the pod is deleted", pod(syncDown(corev1.ContainerState{Terminated: crashed}), ready, podDeleted), false, ""},
		{"another init container ended", pod(initEnded("init-hydrate", 0, "Completed"), syncUp(time.Second, nil), ready), false, ""},
	} {
		w := inPhase(v1alpha1.PhaseRunning, c.pod, recordedJob, furnished)
		d := session.Decide(w)
		got := meta.FindStatusCondition(session.Status(w, d).Conditions, v1alpha1.ConditionReady)
		if d.To != v1alpha1.PhaseRunning {
			t.Errorf("%s: to %s", c.name, d.To)
		}
		if fails := got.Reason == v1alpha1.ReasonStateSyncFailing; fails != c.fails || fails != (got.Status == "False") || !strings.Contains(got.Message, c.says) {
			t.Errorf("%s: Ready is %s for %s: %s", c.name, got.Status, got.Reason, got.Message)
		}
	}
}

func TestTheWordsForASidecarDoNotChangeWithItsState(t *testing.T) {
	said := map[string]bool{}
	for _, state := range []func(*corev1.Pod){
		syncDown(corev1.ContainerState{Terminated: crashed}), syncDown(backingOff("CrashLoopBackOff", "back-off 20s")), syncUp(time.Second, crashed),
	} {
		said[session.Decide(inPhase(v1alpha1.PhaseRunning, pod(state, runnerUp(true)), recordedJob)).Message] = true
	}
	if len(said) != 1 {
		t.Errorf("one trouble is told in %d ways: %v", len(said), said)
	}
}

// Where the sidecar cannot start at all, the runner does not either: it is the cause to name.
func TestASidecarThatKeepsTheRunnerFromStarting(t *testing.T) {
	down := pod(scheduled, syncDown(backingOff("CrashLoopBackOff", "")), runnerWaits("PodInitializing", ""))
	if d := session.Decide(inPhase(v1alpha1.PhaseCreating, down)); d.To != v1alpha1.PhaseCreating || d.Reason != v1alpha1.ReasonStateSyncFailing {
		t.Errorf("while it waits: %s for %s: %s", d.To, d.Reason, d.Message)
	}
	d := session.Decide(inPhase(v1alpha1.PhaseCreating, down, startDeadlinePassed))
	if d.To != v1alpha1.PhaseFailed || d.Reason != v1alpha1.ReasonStateSyncFailing || !strings.Contains(d.Message, "no space left") {
		t.Errorf("at the deadline: %s for %s: %s", d.To, d.Reason, d.Message)
	}
}
