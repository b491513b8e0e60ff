package session_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

func queuedAgo(d time.Duration) change {
	return func(w *session.World) {
		at := metav1.NewMicroTime(now.Add(-d))
		w.Session.Status.QueuedTime = &at
	}
}

func readyAgo(d time.Duration, is corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: is, LastTransitionTime: *ago(d)})
	}
}

// TestCase63Startup: the duration of a start is the same whenever the operator notices its end.
func TestCase63Startup(t *testing.T) {
	for _, c := range []struct {
		name  string
		world *session.World
		want  time.Duration
		known bool
	}{
		{"noticed at once", inPhase(v1alpha1.PhaseCreating, queuedAgo(9*time.Second), pod(readyAgo(300*time.Millisecond, corev1.ConditionTrue))), 9 * time.Second, true},
		{"noticed ten minutes later", inPhase(v1alpha1.PhaseCreating, queuedAgo(10*time.Minute), pod(readyAgo(590*time.Second, corev1.ConditionTrue))), 10*time.Second + 500*time.Millisecond, true},
		{"the node's clock is ahead", inPhase(v1alpha1.PhaseCreating, queuedAgo(9*time.Second), pod(readyAgo(-time.Minute, corev1.ConditionTrue))), 9 * time.Second, true},
		{"the node's clock is behind", inPhase(v1alpha1.PhaseCreating, queuedAgo(time.Second), pod(readyAgo(time.Minute, corev1.ConditionTrue))), 0, true},
		{"the pod is not ready, the runner is", inPhase(v1alpha1.PhaseCreating, queuedAgo(9*time.Second), pod(readyAgo(time.Minute, corev1.ConditionFalse))), 9 * time.Second, true},
		{"the pod does not say", inPhase(v1alpha1.PhaseCreating, queuedAgo(9*time.Second), pod()), 9 * time.Second, true},
		{"no pod", inPhase(v1alpha1.PhaseCreating, queuedAgo(9*time.Second)), 9 * time.Second, true},
		{"not known when queued", inPhase(v1alpha1.PhaseCreating, pod(readyAgo(time.Second, corev1.ConditionTrue))), 0, false},
	} {
		if got, known := c.world.Startup(); got != c.want || known != c.known {
			t.Errorf("%s: %s (%t), want %s (%t)", c.name, got, known, c.want, c.known)
		}
	}
}

func TestCase63RunDuration(t *testing.T) {
	ended := func(d time.Duration) func(*corev1.Pod) {
		return container(session.RunnerContainer, false, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: *ago(d)}})
	}
	status := func(start, end *metav1.Time) *v1alpha1.AgenticSessionStatus {
		return &v1alpha1.AgenticSessionStatus{StartTime: start, CompletionTime: end}
	}
	for _, c := range []struct {
		name   string
		world  *session.World
		status *v1alpha1.AgenticSessionStatus
		want   time.Duration
		known  bool
	}{
		{"by its end", inPhase(v1alpha1.PhaseRunning, pod(ended(time.Minute))), status(ago(time.Hour), ago(0)), 59 * time.Minute, true},
		{"by when it was noticed, where the pod is gone", inPhase(v1alpha1.PhaseStopping), status(ago(time.Hour), ago(0)), time.Hour, true},
		{"the runner is still up", inPhase(v1alpha1.PhaseRunning, pod(runnerUp(true))), status(ago(time.Hour), ago(0)), time.Hour, true},
		{"an end before the start", inPhase(v1alpha1.PhaseRunning, pod(ended(2*time.Hour))), status(ago(time.Hour), ago(0)), 0, true},
		{"never started", inPhase(v1alpha1.PhaseCreating), status(nil, ago(0)), 0, false},
		{"not over", inPhase(v1alpha1.PhaseRunning), status(ago(time.Hour), nil), 0, false},
	} {
		if got, known := c.world.RunDuration(c.status); got != c.want || known != c.known {
			t.Errorf("%s: %s (%t), want %s (%t)", c.name, got, known, c.want, c.known)
		}
	}
}

func TestInPhaseSince(t *testing.T) {
	turned := func(d time.Duration) change {
		return func(w *session.World) {
			w.Session.Status.Conditions = append(w.Session.Status.Conditions, metav1.Condition{LastTransitionTime: *ago(d)})
		}
	}
	for _, c := range []struct {
		name  string
		world *session.World
		want  time.Duration
	}{
		{"nobody looked yet", inPhase(""), time.Hour},
		{"Pending since it was made", inPhase(v1alpha1.PhasePending), time.Hour},
		{"Pending since it was asked for again", inPhase(v1alpha1.PhasePending, queuedAgo(time.Minute)), time.Minute},
		{"Creating", inPhase(v1alpha1.PhaseCreating, queuedAgo(time.Minute)), time.Second},
		{"Running", inPhase(v1alpha1.PhaseRunning), 30 * time.Second},
		{"Stopping since the last condition turned", inPhase(v1alpha1.PhaseStopping, turned(20*time.Second), turned(5*time.Second), turned(30*time.Second)), 5 * time.Second},
		{"Completed", inPhase(v1alpha1.PhaseCompleted), time.Second},
	} {
		if got := now.Sub(session.InPhaseSince(c.world.Session)); got != c.want {
			t.Errorf("%s: since %s, want %s", c.name, got, c.want)
		}
	}
}

func TestEdges(t *testing.T) {
	got := session.Edges()
	for _, e := range legal {
		if !slices.Contains(got, session.Edge{From: e.from, To: e.to}) {
			t.Errorf("%s to %s is missing", e.from, e.to)
		}
	}
	if len(got) != len(legal) {
		t.Errorf("%d edges, want %d: %v", len(got), len(legal), got)
	}
}
