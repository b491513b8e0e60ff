package session_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

func deadline(w *session.World, name string) time.Duration {
	for _, d := range w.Deadlines() {
		if d.Name == name {
			return d.At.Sub(now)
		}
	}
	return 0
}

func TestDeadlines(t *testing.T) {
	creating := func(changes ...change) *session.World { return inPhase(v1alpha1.PhaseCreating, changes...) }
	running := func(changes ...change) *session.World { return inPhase(v1alpha1.PhaseRunning, changes...) }
	byJob := all(job, func(w *session.World) { w.Session.Status.ProvisionedTime = nil })
	for _, c := range []struct {
		deadline string
		name     string
		world    *session.World
		in       time.Duration
	}{
		{"start", "counts from the provisioning", creating(provisioned(time.Minute)), 9 * time.Minute},
		{"start", "counts from the Job where that is not known", creating(byJob), 9 * time.Minute},
		{"start", "passed", creating(startDeadlinePassed), 0},
		{"start", "switched off", creating(noLimits), 0},
		{"start", "no longer once Running", running(), 0},
		{"settled", "ten seconds after the provisioning", creating(), 9 * time.Second},
		{"settled", "passed", creating(provisioned(10 * time.Second)), 0},
		{"settled", "half of the time to start", creating(func(w *session.World) { w.Policy.StartDeadline = 8 * time.Second }), 3 * time.Second},
		{"settled", "not once Running", running(provisioned(time.Second)), 0},
		{"end of pod a-run-1-xyz", "two minutes after its grace period", inPhase(v1alpha1.PhaseStopping, pod(endsIn(30*time.Second))), 150 * time.Second},
		{"end of pod a-run-1-xyz", "in a terminal phase too", inPhase(v1alpha1.PhaseFailed, pod(endsIn(0))), 120 * time.Second},
		{"end of pod a-run-1-xyz", "passed", inPhase(v1alpha1.PhaseStopping, pod(endsIn(-2*time.Minute))), 0},
		{"end of pod a-run-1-xyz", "none that is not being deleted", inPhase(v1alpha1.PhaseStopping, pod(runnerUp(true))), 0},
		{"inactivity", "counts from the start", running(started(time.Minute)), 59 * time.Minute},
		{"inactivity", "counts from the last activity", running(started(time.Hour), active(time.Minute)), 59 * time.Minute},
		{"inactivity", "activity of an earlier run does not count", running(started(time.Minute), active(time.Hour)), 59 * time.Minute},
		{"inactivity", "case 18: activity in the future counts as now", running(started(time.Hour), active(-time.Hour)), time.Hour},
		{"inactivity", "case 18: switched off", running(noLimits), 0},
		{"inactivity", "not before Running", creating(started(time.Minute)), 0},
		{"steady sidecar", "a minute after its last start", running(pod(syncUp(20*time.Second, crashed), runnerUp(true))), 40 * time.Second},
		{"steady sidecar", "while Creating too", creating(pod(syncUp(20*time.Second, crashed))), 40 * time.Second},
		{"steady sidecar", "passed", running(pod(syncUp(time.Minute, crashed), runnerUp(true))), 0},
		{"steady sidecar", "none that never ended", running(pod(syncUp(time.Second, nil), runnerUp(true))), 0},
		{"steady sidecar", "none when the runner has exited", running(pod(syncUp(time.Second, crashed), runnerExited(0, ""))), 0},
		{"token renewal", "after two thirds of its life", running(tokenOf(20*time.Minute, 40*time.Minute)), 20 * time.Minute},
		{"token renewal", "while Creating too", creating(tokenOf(20*time.Minute, 40*time.Minute)), 20 * time.Minute},
		{"token renewal", "due", running(tokenOf(50*time.Minute, 10*time.Minute)), 0},
		{"token renewal", "no token", running(), 0},
		{"token renewal", "case 34: none once over", inPhase(v1alpha1.PhaseStopped, token), 0},
		{"removal of the Job", "a minute after the end, where the runner has exited", inPhase(v1alpha1.PhaseCompleted, pod(runnerExited(0, ""), sidecarUp)), 59 * time.Second},
		{"removal of the Job", "none for a finished Job", inPhase(v1alpha1.PhaseCompleted, jobIs(batchv1.JobComplete, ""), pod(runnerExited(0, ""))), 0},
	} {
		t.Run(c.deadline+"/"+c.name, func(t *testing.T) {
			if got := deadline(c.world, c.deadline); got != c.in {
				t.Errorf("is due in %s, want %s", got, c.in)
			}
		})
	}
}

// endsIn is a pod that is being deleted, with that much left of its grace period.
func endsIn(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = ago(-d) }
}

// leavingFor is for how long it is known that the pods are being deleted.
func leavingFor(d time.Duration) change {
	return func(w *session.World) {
		w.Leaving = map[types.UID]time.Time{}
		for i := range w.Pods {
			w.Leaving[w.Pods[i].UID] = now.Add(-d)
		}
	}
}

func tokenOf(age, left time.Duration) change {
	return func(w *session.World) {
		w.Token = &session.Token{Refreshed: now.Add(-age), Expires: now.Add(left)}
	}
}

// waiting is for how long the session has said that it is not ready.
func waiting(d time.Duration) change {
	return func(w *session.World) {
		w.Session.Status.Conditions = append(w.Session.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: *ago(d),
		})
	}
}

func TestWakeIsTheFirstDeadline(t *testing.T) {
	for _, c := range []struct {
		name  string
		world *session.World
		wake  time.Duration
	}{
		{"token before inactivity", inPhase(v1alpha1.PhaseRunning, started(time.Minute), tokenOf(20*time.Minute, 40*time.Minute)), 20 * time.Minute},
		{"inactivity before token", inPhase(v1alpha1.PhaseRunning, started(50*time.Minute), tokenOf(20*time.Minute, 40*time.Minute)), 10 * time.Minute},
		{"start alone, after the first seconds", inPhase(v1alpha1.PhaseCreating, provisioned(time.Minute)), 9 * time.Minute},
		{"nothing", inPhase(v1alpha1.PhaseRunning, noLimits), 0},
		{"Pending waits for events, and looks", inPhase(v1alpha1.PhasePending, missing), 10 * time.Second},
		{"Pending looks less and less often", inPhase(v1alpha1.PhasePending, missing, waiting(3*time.Minute)), 3 * time.Minute},
		{"Pending looks in the end", inPhase(v1alpha1.PhasePending, missing, waiting(time.Hour)), 10 * time.Minute},
		{"Stopping waits for events, and looks", inPhase(v1alpha1.PhaseStopping, pod(runnerUp(true)), waiting(time.Minute)), time.Minute},
		{"case 6: Stopped is quiet", inPhase(v1alpha1.PhaseStopped, token), 0},
		{"case 6: Completed is quiet", inPhase(v1alpha1.PhaseCompleted, jobIs(batchv1.JobComplete, "")), 0},
		{"case 6: Failed is quiet", inPhase(v1alpha1.PhaseFailed), 0},
	} {
		if got := c.world.Wake(); got != c.wake {
			t.Errorf("%s: wakes in %s, want %s", c.name, got, c.wake)
		}
	}
}

// Whoever is woken at a deadline finds it passed, and nobody finds it passed before.
func TestCase18AWakeFindsItsDeadlinePassed(t *testing.T) {
	for _, c := range []struct {
		name  string
		world *session.World
		due   func(*session.World) bool
	}{
		{"start", inPhase(v1alpha1.PhaseCreating, provisioned(time.Minute)), func(w *session.World) bool { return session.Decide(w).Rule == "start-timeout" }},
		{"inactivity", inPhase(v1alpha1.PhaseRunning, job, recordedJob, active(time.Second)), func(w *session.World) bool { return session.Decide(w).Rule == "idle" }},
		{"token renewal", inPhase(v1alpha1.PhaseRunning, job, noLimits, tokenOf(time.Second, time.Minute)), func(w *session.World) bool { return !w.Now.Before(w.RenewToken()) }},
		{"end of a pod", inPhase(v1alpha1.PhaseStopping, pod(endsIn(time.Second)), waiting(time.Hour)), func(w *session.World) bool { return len(w.Overdue()) == 1 }},
		{"removal of the Job", inPhase(v1alpha1.PhaseFailed, pod(runnerExited(1, ""))), func(w *session.World) bool { return w.RemoveJob(w.Job) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			wake := c.world.Wake()
			if wake <= 0 || c.due(c.world) {
				t.Fatalf("wakes in %s and is due now: %t", wake, c.due(c.world))
			}
			c.world.Now = now.Add(wake - 1)
			if c.due(c.world) {
				t.Error("is due before the wake")
			}
			if c.world.Now = now.Add(wake); !c.due(c.world) {
				t.Error("is not due at the wake")
			}
			if again := c.world.Wake(); again < 0 || again > 0 && again < time.Second && c.name != "token renewal" {
				t.Errorf("at the wake the next is in %s: it polls", again)
			}
		})
	}
}

func TestCase18ActivityInTheFutureNeverStopsABusySession(t *testing.T) {
	w := inPhase(v1alpha1.PhaseRunning, job, recordedJob, active(-2*time.Hour))
	for passed := time.Duration(0); passed < 2*time.Hour; passed += w.Wake() {
		w.Now = now.Add(passed)
		if d := session.Decide(w); d.Moves() {
			t.Fatalf("after %s goes to %s: %s", passed, d.To, d.Message)
		}
	}
	w.Now = now.Add(3 * time.Hour)
	if d := session.Decide(w); d.Rule != "idle" {
		t.Errorf("an hour after the activity rule %q matches, want idle", d.Rule)
	}
}

func TestCase14TheJobsDeadlineCountsFromTheRunnersStart(t *testing.T) {
	jobStarted := func(before time.Duration) change {
		return all(job, func(w *session.World) { w.Job.Status.StartTime = ago(before) })
	}
	for _, c := range []struct {
		name    string
		world   *session.World
		timeout int64
		seconds int64
	}{
		{"no timeout", inPhase(v1alpha1.PhaseCreating), 0, 0},
		{"a negative one is none", inPhase(v1alpha1.PhaseCreating), -5, 0},
		{"before the Job is made, with room for the start", inPhase(v1alpha1.PhaseCreating), 300, 300 + 600},
		{"before the Job is made, start without limit", inPhase(v1alpha1.PhaseCreating, noLimits), 300, 0},
		{"before the runner has started", inPhase(v1alpha1.PhaseCreating, jobStarted(time.Minute)), 300, 300 + 600},
		{"with the wait that it had", inPhase(v1alpha1.PhaseRunning, jobStarted(time.Minute), started(20*time.Second)), 300, 300 + 40},
		{"without a wait", inPhase(v1alpha1.PhaseRunning, jobStarted(time.Minute), started(time.Minute)), 300, 300},
		{"clocks that disagree take nothing away", inPhase(v1alpha1.PhaseRunning, jobStarted(time.Second), started(time.Minute)), 300, 300},
		{"a Job that does not say its start", inPhase(v1alpha1.PhaseRunning, job, started(time.Minute)), 300, 300 + 600},
	} {
		if got := c.world.JobDeadline(c.timeout); got != c.seconds {
			t.Errorf("%s: %d seconds, want %d", c.name, got, c.seconds)
		}
	}
}

func TestWhereTheJobMustGo(t *testing.T) {
	longAgo := func(w *session.World) { w.Session.Status.CompletionTime = ago(time.Hour) }
	finished := jobIs(batchv1.JobComplete, "")
	for _, c := range []struct {
		name   string
		phase  v1alpha1.Phase
		world  change
		remove bool
	}{
		{"Pending", v1alpha1.PhasePending, job, true},
		{"Pending, finished", v1alpha1.PhasePending, finished, true},
		{"Creating", v1alpha1.PhaseCreating, job, false},
		{"Running", v1alpha1.PhaseRunning, job, false},
		{"Running, finished", v1alpha1.PhaseRunning, finished, false},
		{"Stopping", v1alpha1.PhaseStopping, job, true},
		{"Stopped", v1alpha1.PhaseStopped, finished, true},
		{"Completed, finished: kept for its logs", v1alpha1.PhaseCompleted, all(finished, longAgo), false},
		{"Failed, finished: kept for its logs", v1alpha1.PhaseFailed, all(jobIs(batchv1.JobFailed, ""), longAgo), false},
		{"Failed, not finished, runner up", v1alpha1.PhaseFailed, pod(runnerUp(true)), true},
		{"Failed, not finished, no pod", v1alpha1.PhaseFailed, job, true},
		{"Completed, a sidecar still up", v1alpha1.PhaseCompleted, pod(runnerExited(0, ""), sidecarUp), false},
		{"Completed, a sidecar up for long", v1alpha1.PhaseCompleted, all(pod(runnerExited(0, ""), sidecarUp), longAgo), true},
	} {
		w := inPhase(c.phase, c.world)
		if got := w.RemoveJob(w.Job); got != c.remove {
			t.Errorf("%s: removal is %t, want %t", c.name, got, c.remove)
		}
	}
}

func TestAStopThatTakesTooLongIsForcedAndSaysSo(t *testing.T) {
	held := func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} }
	for _, c := range []struct {
		name    string
		pod     change
		overdue int
		reason  string
		message string
	}{
		{"within its grace period", pod(endsIn(time.Minute)), 0, v1alpha1.ReasonStoppedByUser, "waits until"},
		{"soon after it", pod(endsIn(-time.Minute)), 0, v1alpha1.ReasonStoppedByUser, "waits until"},
		{"long after it", pod(endsIn(-2 * time.Minute)), 1, v1alpha1.ReasonForcedStop, "pod a-run-1-xyz"},
		{"held by somebody", pod(endsIn(-time.Hour), held), 1, v1alpha1.ReasonForcedStop, "example.com/hold"},
		{"long after it, by a clock that is ahead", all(pod(endsIn(-4*time.Minute)), leavingFor(time.Minute)), 0, v1alpha1.ReasonStoppedByUser, "waits until"},
		{"and seen to be leaving for as long", all(pod(endsIn(-4*time.Minute)), leavingFor(2*time.Minute)), 1, v1alpha1.ReasonForcedStop, "pod a-run-1-xyz"},
		{"not being deleted", pod(runnerUp(true)), 0, v1alpha1.ReasonStoppedByUser, "waits until"},
	} {
		w := inPhase(v1alpha1.PhaseStopping, c.pod)
		if d := session.Decide(w); len(w.Overdue()) != c.overdue || d.Moves() || d.Reason != c.reason || !strings.Contains(d.Message, c.message) {
			t.Errorf("%s: %d overdue, to %s with %s (%s); want %d, to stay with %s and %q", c.name, len(w.Overdue()), d.To, d.Reason, d.Message, c.overdue, c.reason, c.message)
		}
	}
}
