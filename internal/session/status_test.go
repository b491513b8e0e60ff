package session_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// after makes one pass: the status that is reported of a world.
func after(w *session.World) v1alpha1.AgenticSessionStatus {
	return session.Status(w, session.Decide(w))
}

func TestStatusOfEachMove(t *testing.T) {
	t.Run("Pending to Creating", func(t *testing.T) {
		w := inPhase(v1alpha1.PhasePending)
		w.Session.Status.Run = 4
		s := after(w)
		if s.Phase != v1alpha1.PhaseCreating || s.Run != 5 {
			t.Errorf("phase %s, run %d; want Creating, 5", s.Phase, s.Run)
		}
		if s.ProvisionedTime == nil || !s.ProvisionedTime.Equal(ago(0)) {
			t.Errorf("provisionedTime is %v, want now", s.ProvisionedTime)
		}
		if s.QueuedTime == nil || !s.QueuedTime.Equal(&metav1.MicroTime{Time: w.Session.CreationTimestamp.Time}) {
			t.Errorf("queuedTime is %v, want the creation of the session", s.QueuedTime)
		}
	})
	t.Run("Pending to Creating within the second of the creation", func(t *testing.T) {
		w := inPhase(v1alpha1.PhasePending)
		w.Session.CreationTimestamp = *ago(0)
		w.Now = now.Add(700 * time.Millisecond)
		if s := after(w); !s.QueuedTime.Time.Equal(w.Now) {
			t.Errorf("queuedTime is %v, want now: the creation has whole seconds", s.QueuedTime)
		}
	})
	t.Run("Creating to Running", func(t *testing.T) {
		s := after(inPhase(v1alpha1.PhaseCreating, pod(runnerUp(true))))
		if !s.StartTime.Equal(ago(40 * time.Second)) {
			t.Errorf("startTime is %v, want when the container started", s.StartTime)
		}
		if s.JobName != "a-run-1" || s.JobUID != string(jobUID) || s.PodName != "a-run-1-xyz" {
			t.Errorf("Job %q with UID %q, pod %q: want the run's", s.JobName, s.JobUID, s.PodName)
		}
	})
	t.Run("Creating to Failed before a start", func(t *testing.T) {
		s := after(inPhase(v1alpha1.PhaseCreating, job, startDeadlinePassed))
		if s.StartTime != nil || !s.CompletionTime.Equal(ago(0)) {
			t.Errorf("startTime %v, completionTime %v; want none, now", s.StartTime, s.CompletionTime)
		}
	})
	t.Run("Running to Stopping by the user", func(t *testing.T) {
		s := after(inPhase(v1alpha1.PhaseRunning, job, recordedJob, asksStop))
		if s.StoppedReason != v1alpha1.StoppedByUser || s.CompletionTime != nil {
			t.Errorf("stoppedReason %q, completionTime %v; want user, none yet", s.StoppedReason, s.CompletionTime)
		}
	})
	t.Run("case 18: Running to Stopped for inactivity", func(t *testing.T) {
		w := inPhase(v1alpha1.PhaseRunning, job, recordedJob, idle)
		w = storing(w, after(w))
		w.Job = nil
		s := after(w)
		ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		if s.Phase != v1alpha1.PhaseStopped || s.StoppedReason != v1alpha1.StoppedByInactivity || ready.Reason != v1alpha1.ReasonInactivityTimeout {
			t.Errorf("phase %s, stoppedReason %q, reason %s; want Stopped, inactivity, %s", s.Phase, s.StoppedReason, ready.Reason, v1alpha1.ReasonInactivityTimeout)
		}
		if !s.CompletionTime.Equal(ago(0)) {
			t.Errorf("completionTime is %v, want now", s.CompletionTime)
		}
	})
	t.Run("Pending to Stopped", func(t *testing.T) {
		s := after(inPhase(v1alpha1.PhasePending, asksStop))
		if s.Phase != v1alpha1.PhaseStopped || s.StoppedReason != v1alpha1.StoppedByUser || s.Run != 0 {
			t.Errorf("phase %s, stoppedReason %q, run %d; want Stopped, user, 0", s.Phase, s.StoppedReason, s.Run)
		}
	})
	t.Run("restart", func(t *testing.T) {
		w := inPhase(v1alpha1.PhaseStopped, asksStart, jobIs(batchv1.JobComplete, ""), pod(), recordedJob, started(time.Hour), active(time.Minute))
		old := &w.Session.Status
		old.Run, old.PodName, old.StoppedReason = 2, "a-run-1-xyz", v1alpha1.StoppedByInactivity
		old.SDKSessionID, old.SDKRestartCount = "conversation", 7
		old.ReconciledRepos = []v1alpha1.ReconciledRepo{{URL: "https://example.com/a.git"}}
		old.ReconciledWorkflow = &v1alpha1.ReconciledWorkflow{GitURL: "https://example.com/w.git"}
		s := after(w)
		if s.Phase != v1alpha1.PhasePending || s.Run != 2 {
			t.Errorf("phase %s, run %d; want Pending, 2 until the next begins", s.Phase, s.Run)
		}
		if s.JobName != "" || s.JobUID != "" || s.PodName != "" || s.StartTime != nil || s.CompletionTime != nil || s.StoppedReason != "" || s.ReconciledRepos != nil || s.ReconciledWorkflow != nil {
			t.Errorf("of the run that ended is left: %+v", s)
		}
		if s.SDKSessionID != "conversation" || s.SDKRestartCount != 7 || s.LastActivityTime == nil {
			t.Errorf("what the session keeps over runs is lost: %+v", s)
		}
		if !s.QueuedTime.Time.Equal(now) {
			t.Errorf("queuedTime is %v, want now", s.QueuedTime)
		}
	})
}

func TestCase4APendingSessionDoesNotTakeOverTheOldJob(t *testing.T) {
	s := after(inPhase(v1alpha1.PhasePending, jobIs(batchv1.JobFailed, ""), pod(runnerExited(1, "Error"))))
	if s.JobUID != "" || s.JobName != "" || s.PodName != "" {
		t.Errorf("Job %q with UID %q, pod %q were taken over from the previous run", s.JobName, s.JobUID, s.PodName)
	}
	s = after(inPhase(v1alpha1.PhasePending, jobIs(batchv1.JobFailed, ""), problem))
	if s.Phase != v1alpha1.PhaseFailed || s.JobUID != "" {
		t.Errorf("in phase %s it has taken over the Job with UID %q of the previous run", s.Phase, s.JobUID)
	}
}

func TestCase3HandledRequests(t *testing.T) {
	stop, start := v1alpha1.DesiredStopped+"@2026-03-01T11:59:59Z", v1alpha1.DesiredRunning+"@2026-03-01T11:59:58Z"
	for _, c := range []struct {
		name  string
		world *session.World
		want  string
	}{
		{"a stop that is carried out", inPhase(v1alpha1.PhaseRunning, job, recordedJob, asksStop), stop},
		{"a stop before a run", inPhase(v1alpha1.PhasePending, asksStop), stop},
		{"a restart", inPhase(v1alpha1.PhaseFailed, asksStart), start},
		{"a start that waits for the stop to end", inPhase(v1alpha1.PhaseStopping, job, asksStart), ""},
		{"a stop of what is over", inPhase(v1alpha1.PhaseCompleted, asksStop), ""},
		{"carried out, still in the annotations", inPhase(v1alpha1.PhaseStopping, job, asksStop, requestHandled), stop},
		{"carried out, removed from the annotations", inPhase(v1alpha1.PhaseStopping, job, func(w *session.World) { w.Session.Status.HandledRequest = stop }), ""},
		{"a newer request does not erase the older one's record", inPhase(v1alpha1.PhaseStopping, job, asksStart, func(w *session.World) { w.Session.Status.HandledRequest = stop }), stop},
	} {
		if got := after(c.world).HandledRequest; got != c.want {
			t.Errorf("%s: handledRequest is %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCase6EqualRequestsWithoutATimeCountEachTime(t *testing.T) {
	stop := func(w *session.World) {
		w.Session.Annotations[v1alpha1.AnnotationDesiredPhase] = v1alpha1.DesiredStopped
	}
	w := inPhase(v1alpha1.PhaseRunning, job, recordedJob, stop)
	w = storing(w, after(w))
	if !w.Honoured() || w.Holds(session.StopRequested) {
		t.Fatal("the first stop is not honoured by Stopping")
	}
	delete(w.Session.Annotations, v1alpha1.AnnotationDesiredPhase)
	w = storing(w, after(w))
	w.Session.Status.Phase = v1alpha1.PhaseRunning
	if stop(w); !w.Holds(session.StopRequested) {
		t.Error("a second stop with the same words is not seen")
	}
}

func TestOthersFieldsAreKept(t *testing.T) {
	everyPhase(t, func(t *testing.T, w *session.World) {
		theirs := metav1.Condition{Type: "example.com/Audited", Status: metav1.ConditionTrue, Reason: "Audited", Message: "by an auditor",
			ObservedGeneration: 1, LastTransitionTime: *ago(time.Hour)}
		w.Session.Status.Conditions = append(w.Session.Status.Conditions, theirs)
		w.Session.Status.LastActivityTime = ago(3 * time.Second)
		w.Session.Status.SDKSessionID = "conversation"
		before := w.Session.DeepCopy()
		s := after(w)
		if !equality.Semantic.DeepEqual(before, w.Session) {
			t.Error("the session itself was changed")
		}
		if kept := meta.FindStatusCondition(s.Conditions, theirs.Type); kept == nil || *kept != theirs {
			t.Errorf("a condition of others became %v", kept)
		}
		if !s.LastActivityTime.Equal(ago(3*time.Second)) || s.SDKSessionID != "conversation" {
			t.Errorf("lastActivityTime %v, sdkSessionId %q: want what others wrote", s.LastActivityTime, s.SDKSessionID)
		}
		if s.ObservedGeneration != w.Session.Generation {
			t.Errorf("observedGeneration is %d, want %d", s.ObservedGeneration, w.Session.Generation)
		}
	})
}

// everyPhase is a table of ordinary worlds, at least one a phase.
func everyPhase(t *testing.T, test func(*testing.T, *session.World)) {
	t.Helper()
	for _, c := range []struct {
		name  string
		world *session.World
	}{
		{"new", inPhase("")},
		{"Pending, waits", inPhase(v1alpha1.PhasePending, missing)},
		{"Pending, unmanaged", inPhase(v1alpha1.PhasePending, unmanaged)},
		{"Creating, first pass", inPhase(v1alpha1.PhaseCreating)},
		{"Creating, all made", inPhase(v1alpha1.PhaseCreating, furnished, job)},
		{"Creating, unschedulable", inPhase(v1alpha1.PhaseCreating, furnished, pod(unschedulable("0/1 nodes")))},
		{"Creating, to Running", inPhase(v1alpha1.PhaseCreating, furnished, pod(runnerUp(true)))},
		{"Running", inPhase(v1alpha1.PhaseRunning, furnished, recordedJob, pod(runnerUp(true)))},
		{"Running, Service refused", inPhase(v1alpha1.PhaseRunning, furnished, recordedJob, pod(runnerUp(true)), quota)},
		{"Running, to Completed", inPhase(v1alpha1.PhaseRunning, furnished, recordedJob, jobIs(batchv1.JobComplete, ""))},
		{"Stopping", inPhase(v1alpha1.PhaseStopping, furnished, recordedJob, pod(runnerUp(true)))},
		{"Stopped", inPhase(v1alpha1.PhaseStopped, workspace())},
		{"Completed", inPhase(v1alpha1.PhaseCompleted, workspace(), recordedJob, jobIs(batchv1.JobComplete, ""))},
		{"Failed", inPhase(v1alpha1.PhaseFailed, workspace(), recordedJob, jobIs(batchv1.JobFailed, ""))},
		{"Failed, to Pending", inPhase(v1alpha1.PhaseFailed, workspace(), asksStart)},
	} {
		t.Run(c.name, func(t *testing.T) { test(t, c.world) })
	}
}

// jobTold has the Job be in the status for a while.
func jobTold(since time.Duration) change {
	return func(w *session.World) {
		meta.FindStatusCondition(w.Session.Status.Conditions, v1alpha1.ConditionJobCreated).LastTransitionTime = metav1.NewTime(now.Add(-since))
	}
}

func TestPostponed(t *testing.T) {
	begin := func() *session.World {
		w := inPhase(v1alpha1.PhaseCreating, furnished, job)
		return storing(w, after(w))
	}
	for _, c := range []struct {
		name   string
		change change
		want   bool
	}{
		{"the pod appears", pod(), true},
		{"the pod gets a node", pod(scheduled), true},
		{"the runner starts", pod(runnerUp(false)), true},
		{"the runner starts, later", all(pod(runnerUp(false)), provisioned(time.Minute), jobTold(10*time.Second)), false},
		{"the runner starts, of a Job that had to wait", all(pod(runnerUp(false)), provisioned(time.Minute), jobTold(9*time.Second)), true},
		{"no node takes the pod yet", pod(unschedulable("0/1 nodes")), true},
		{"no node takes the pod", all(pod(unschedulable("0/1 nodes")), provisioned(time.Minute), jobTold(10*time.Second)), false},
		{"an image cannot be pulled", pod(runnerWaits("ErrImagePull", "not found")), false},
		{"an object is refused", quota, false},
		{"a phase change", pod(runnerUp(true)), false},
		{"a request is there to be forgotten", all(pod(), func(w *session.World) { w.Session.Status.HandledRequest = "Running@" }), false},
	} {
		w := with(begin(), c.change)
		d := session.Decide(w)
		status := session.Status(w, d)
		if equality.Semantic.DeepEqual(status, w.Session.Status) {
			t.Errorf("%s: the status does not change, so the case shows nothing", c.name)
		}
		if got := session.Postponed(w, d, &status); got != c.want {
			t.Errorf("%s: postponed is %t, want %t", c.name, got, c.want)
		}
	}
}

func TestWhatIsPostponedIsWrittenInTheEnd(t *testing.T) {
	w := inPhase(v1alpha1.PhaseCreating, furnished, job, provisioned(0))
	w = with(storing(w, after(w)), pod(scheduled))
	d := session.Decide(w)
	status := session.Status(w, d)
	if !session.Postponed(w, d, &status) {
		t.Fatal("ordinary progress is not postponed")
	}
	w.Now = now.Add(w.Wake())
	if d = session.Decide(w); d.Moves() || w.Now.Sub(now) > 11*time.Second {
		t.Fatalf("the first wake is at %s and leads to %s", w.Now, d.To)
	}
	if status = session.Status(w, d); session.Postponed(w, d, &status) {
		t.Errorf("woken at %s, it is still postponed", w.Now)
	}
}
