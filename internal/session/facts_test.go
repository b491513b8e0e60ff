package session_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

func TestFacts(t *testing.T) {
	creating := func(changes ...change) *session.World { return inPhase(v1alpha1.PhaseCreating, changes...) }
	running := func(changes ...change) *session.World { return inPhase(v1alpha1.PhaseRunning, changes...) }
	foreignPod := all(pod(runnerUp(true)), func(w *session.World) { w.Job.UID = otherUID })
	for _, c := range []struct {
		fact  session.Fact
		name  string
		world *session.World
		holds bool
	}{
		{session.JobSucceeded, "no Job", creating(), false},
		{session.JobSucceeded, "Job goes on", creating(job), false},
		{session.JobSucceeded, "Job complete", creating(jobIs(batchv1.JobComplete, "")), true},
		{session.JobSucceeded, "Job about to be complete", creating(jobIs(batchv1.JobSuccessCriteriaMet, "")), false},
		{session.JobSucceeded, "runner exited with 0", creating(pod(runnerExited(0, "Completed"))), true},
		{session.JobSucceeded, "a sidecar exited with 0", creating(pod(container("proxy", false, exited(0)))), false},
		{session.JobSucceeded, "Job complete, being deleted", creating(jobBeingDeleted, jobIs(batchv1.JobComplete, "")), false},

		{session.JobFailed, "Job goes on", creating(job), false},
		{session.JobFailed, "Job failed", creating(jobIs(batchv1.JobFailed, "")), true},
		{session.JobFailed, "Job complete", creating(jobIs(batchv1.JobComplete, "")), false},
		{session.JobFailed, "Job about to fail", creating(jobIs(batchv1.JobFailureTarget, ""), pod(runnerExited(1, ""))), false},
		{session.JobFailed, "runner exited with 1", creating(pod(runnerExited(1, "Error"))), true},
		{session.JobFailed, "a sidecar exited with 1", creating(pod(runnerUp(true), container("proxy", false, exited(1)))), false},
		{session.JobFailed, "another Job failed", creating(replacedJob, jobIs(batchv1.JobFailed, "")), false},

		{session.RunnerReady, "no pod", creating(job), false},
		{session.RunnerReady, "up, not ready", creating(pod(runnerUp(false))), false},
		{session.RunnerReady, "ready", creating(pod(runnerUp(true))), true},
		{session.RunnerReady, "ready, being deleted", creating(pod(runnerUp(true), podDeleted)), false},
		{session.RunnerReady, "only a sidecar is ready", creating(pod(sidecarUp)), false},
		{session.RunnerReady, "pod of another Job", creating(foreignPod), false},

		{session.RunnerUnstartable, "waits for its image", creating(pod(runnerWaits("ImagePullBackOff", sentence))), false},
		{session.RunnerUnstartable, "invalid image name", creating(pod(runnerWaits("InvalidImageName", sentence))), true},
		{session.RunnerUnstartable, "an object is refused for good", creating(refused), true},
		{session.RunnerUnstartable, "an object is refused for now", creating(quota), false},

		{session.RunnerLost, "Creating, Job never recorded", creating(), false},
		{session.RunnerLost, "Creating, Job recorded by its UID", creating(recordedJob), true},
		{session.RunnerLost, "Creating, Job recorded by its condition", creating(jobSeen), true},
		{session.RunnerLost, "Running", running(), true},
		{session.RunnerLost, "Job there", running(job, recordedJob), false},
		{session.RunnerLost, "another Job has its name", running(replacedJob), true},
		{session.RunnerLost, "Job being deleted", running(jobBeingDeleted, recordedJob), false},

		{session.RunnerGone, "nothing left", running(), true},
		{session.RunnerGone, "Job left", running(job), false},
		{session.RunnerGone, "pod left", running(pod(), func(w *session.World) { w.Job = nil }), false},
		{session.RunnerGone, "another Job left", running(leftovers), false},
		{session.RunnerExists, "nothing left", running(), false},
		{session.RunnerExists, "Job left", running(job), true},
		{session.RunnerExists, "pod left", running(pod(), func(w *session.World) { w.Job = nil }), true},
		{session.RunnerExists, "another Job left", running(leftovers), true},

		{session.StopRequested, "nothing asked", running(), false},
		{session.StopRequested, "stop", running(asksStop), true},
		{session.StopRequested, "start", running(asksStart), false},
		{session.StopRequested, "stop carried out", running(asksStop, requestHandled), false},
		{session.StopRequested, "a newer stop than the one carried out", running(asksStop, requestHandled, askedAt("2026-03-01T12:00:01Z")), true},
		{session.StopRequested, "a word that is no request", running(asks("stopped")), false},
		{session.StartRequested, "nothing asked", running(), false},
		{session.StartRequested, "start", running(asksStart), true},
		{session.StartRequested, "stop", running(asksStop), false},
		{session.StartRequested, "start carried out", running(asksStart, requestHandled), false},
		{session.StartRequested, "a word that is no request", running(asks("Completed")), false},

		{session.SpecInvalid, "no problem", creating(), false},
		{session.SpecInvalid, "a problem", creating(problem), true},
		{session.Restored, "never begun", inPhase(v1alpha1.PhasePending), false},
		{session.Restored, "begun, and to be run again", inPhase(v1alpha1.PhasePending, begun), false},
		{session.Restored, "begun, and without a status", inPhase(v1alpha1.PhasePending, begun, statusLost), true},
		{session.Restored, "another of its name began", inPhase(v1alpha1.PhasePending, restored), true},
		{session.Restored, "another of its name was running", running(restored), true},
		{session.Restored, "another of its name was running, Job there", running(restored, job, recordedJob), true},
		{session.Restored, "another of its name has ended", inPhase(v1alpha1.PhaseCompleted, restored), false},
		{session.Restored, "a copy of another", inPhase(v1alpha1.PhasePending, marked("b/other-uid")), false},
		{session.Restored, "running", running(begun), false},
		{session.RunnerUnstartable, "a name is taken", creating(nameTaken), true},
		{session.NamespaceClosed, "managed", creating(), false},
		{session.NamespaceClosed, "unmanaged", creating(unmanaged), true},
		{session.NamespaceClosed, "terminating", creating(terminating), true},
		{session.PrerequisiteMissing, "nothing missing", creating(), false},
		{session.PrerequisiteMissing, "a Secret is missing", creating(missing), true},

		{session.StartDeadlinePassed, "a nanosecond before", creating(provisioned(10*time.Minute - 1)), false},
		{session.StartDeadlinePassed, "at the moment", creating(provisioned(10 * time.Minute)), true},
		{session.StartDeadlinePassed, "switched off", creating(provisioned(100*time.Hour), noLimits), false},
		{session.StartDeadlinePassed, "not begun", inPhase(v1alpha1.PhasePending), false},
		{session.Idle, "a nanosecond before", running(started(time.Hour-1), active(2*time.Hour)), false},
		{session.Idle, "at the moment", running(started(time.Hour), active(2*time.Hour)), true},
		{session.Idle, "switched off", running(started(100*time.Hour), noLimits), false},
		{session.Idle, "active since", running(started(3*time.Hour), active(time.Hour-1)), false},
		{session.Idle, "activity said to be in the future", running(started(3*time.Hour), active(-time.Minute)), false},
		{session.Idle, "not started", creating(), false},
	} {
		t.Run(string(c.fact)+"/"+c.name, func(t *testing.T) {
			if got := c.world.Holds(c.fact); got != c.holds {
				t.Errorf("%s is %t, want %t", c.fact, got, c.holds)
			}
		})
	}
}

func askedAt(at string) change {
	return func(w *session.World) { w.Session.Annotations[v1alpha1.AnnotationStopRequestedAt] = at }
}

func provisioned(before time.Duration) change {
	return func(w *session.World) { w.Session.Status.ProvisionedTime = ago(before) }
}

func started(before time.Duration) change {
	return func(w *session.World) { w.Session.Status.StartTime = ago(before) }
}

func active(before time.Duration) change {
	return func(w *session.World) { w.Session.Status.LastActivityTime = ago(before) }
}

func noLimits(w *session.World) { w.Policy = session.Policy{} }

func TestRequests(t *testing.T) {
	stop, start := v1alpha1.DesiredStopped+"@2026-03-01T11:59:59Z", v1alpha1.DesiredRunning+"@2026-03-01T11:59:58Z"
	for _, c := range []struct {
		name    string
		change  change
		request string
	}{
		{"none", nothing, ""},
		{"stop with the time of stops", asksStop, stop},
		{"start with the time of starts", asksStart, start},
		{"no time", func(w *session.World) {
			w.Session.Annotations[v1alpha1.AnnotationDesiredPhase] = v1alpha1.DesiredStopped
		}, "Stopped@"},
		{"unknown word", asks("Paused"), ""},
		{"time without a word", askedAt("2026-03-01T12:00:01Z"), ""},
	} {
		if got := session.Request(inPhase(v1alpha1.PhaseRunning, c.change).Session); got != c.request {
			t.Errorf("%s: the request is %q, want %q", c.name, got, c.request)
		}
	}
}

func TestCase3ARequestIsHonouredByThePhaseThatAnswersIt(t *testing.T) {
	live := []v1alpha1.Phase{"", v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning}
	over := []v1alpha1.Phase{v1alpha1.PhaseStopping, v1alpha1.PhaseStopped, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed}
	check := func(phase v1alpha1.Phase, name string, change change, want bool) {
		t.Helper()
		if got := inPhase(phase, change).Honoured(); got != want {
			t.Errorf("%q, %s: honoured is %t, want %t", phase, name, got, want)
		}
	}
	for _, phase := range live {
		check(phase, "start", asksStart, true)
		check(phase, "stop", asksStop, false)
		check(phase, "stop carried out", all(asksStop, requestHandled), true)
		check(phase, "a newer stop", all(asksStop, requestHandled, askedAt("2026-03-01T12:00:01Z")), false)
		check(phase, "nothing", nothing, false)
	}
	for _, phase := range over {
		check(phase, "stop", asksStop, true)
		check(phase, "start", asksStart, false)
		check(phase, "start carried out", all(asksStart, requestHandled), true)
		check(phase, "nothing", nothing, false)
		check(phase, "unknown word", asks("Paused"), false)
	}
}
