package session_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// A walk is the life of one session in a small model of a cluster: users ask, the Job controller
// and the kubelet act, the operator makes passes, in an order that a seed determines. What must
// hold is checked after every step.
type walk struct {
	t       *testing.T
	random  *rand.Rand
	world   *session.World
	uids    int
	request int
	history []string
	// asked is what the user asked for last, and is forgotten when the session was over anyway.
	asked string
	// started counts the pods made in each run.
	started map[int64]int
}

func TestRandomWalks(t *testing.T) {
	for seed := range uint64(400) {
		w := &walk{t: t, random: rand.New(rand.NewPCG(seed, 7)), world: inPhase("", shortPatience), started: map[int64]int{}}
		for range 60 {
			w.happens()
			if w.random.IntN(3) > 0 {
				w.pass()
			}
		}
		w.rest()
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, w.history)
		}
	}
}

// shortPatience lets both clocks pass now and then within a walk.
func shortPatience(w *session.World) {
	w.Policy = session.Policy{StartDeadline: 4 * time.Minute, Inactivity: 5 * time.Minute}
}

func (k *walk) note(format string, args ...any) {
	k.history = append(k.history, fmt.Sprintf(format, args...))
}

func (k *walk) fail(format string, args ...any) {
	k.t.Helper()
	k.t.Errorf(format, args...)
}

// happens is one thing that somebody else does.
func (k *walk) happens() {
	w := k.world
	w.Now = w.Now.Add(time.Duration(k.random.IntN(30)) * time.Second)
	switch k.random.IntN(12) {
	case 0:
		k.ask(v1alpha1.DesiredStopped)
	case 1:
		k.ask(v1alpha1.DesiredRunning)
	case 2, 3:
		k.makePod()
	case 4:
		k.changeRunner("up", runnerUp(true))
	case 5:
		code := int32(k.random.IntN(2))
		k.changeRunner(fmt.Sprintf("exits %d", code), runnerExited(code, ""))
	case 6:
		k.closeJob()
	case 7, 8:
		k.collect()
	case 9:
		if w.Job != nil && k.random.IntN(4) == 0 {
			k.note("job deleted by a stranger")
			w.Job.DeletionTimestamp = &metav1.Time{Time: w.Now}
		}
	case 10:
		w.Missing = nil
		if k.random.IntN(2) == 0 {
			missing(w)
		}
	case 11:
		w.Session.Status.LastActivityTime = &metav1.Time{Time: w.Now.Add(time.Duration(k.random.IntN(60)-30) * time.Second)}
	}
}

func (k *walk) ask(desired string) {
	k.request++
	k.asked = desired
	k.note("asks %s", desired)
	a := k.world.Session.Annotations
	a[v1alpha1.AnnotationDesiredPhase] = desired
	delete(a, v1alpha1.AnnotationStartRequestedAt)
	delete(a, v1alpha1.AnnotationStopRequestedAt)
	if at := fmt.Sprint(k.request); k.random.IntN(2) == 0 {
		a[v1alpha1.AnnotationStartRequestedAt], a[v1alpha1.AnnotationStopRequestedAt] = at, at
	}
}

func (k *walk) makePod() {
	w := k.world
	if w.Job == nil || w.Job.DeletionTimestamp != nil || len(w.Pods) > 0 || session.Finished(w.Job) {
		return
	}
	k.note("pod made")
	k.started[w.Session.Status.Run]++
	with(w, pod())
}

func (k *walk) changeRunner(name string, state func(*corev1.Pod)) {
	for i := range k.world.Pods {
		p := &k.world.Pods[i]
		if len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Terminated != nil {
			continue
		}
		k.note("runner %s", name)
		p.Status.ContainerStatuses = nil
		state(p)
	}
}

// closeJob is the Job controller's verdict, when the runner has ended.
func (k *walk) closeJob() {
	w := k.world
	if w.Job == nil || session.Finished(w.Job) || len(w.Pods) == 0 || len(w.Pods[0].Status.ContainerStatuses) == 0 {
		return
	}
	if ended := w.Pods[0].Status.ContainerStatuses[0].State.Terminated; ended != nil {
		kind := batchv1.JobFailed
		if ended.ExitCode == 0 {
			kind = batchv1.JobComplete
		}
		k.note("job %s", kind)
		jobIs(kind, "")(w)
	}
}

// collect is the garbage collector: a deleted Job goes, its pods end and go after it.
func (k *walk) collect() {
	w := k.world
	switch {
	case w.Job != nil && w.Job.DeletionTimestamp != nil:
		k.note("job gone")
		w.Job = nil
	case w.Job == nil && len(w.Pods) > 0 && w.Pods[0].DeletionTimestamp == nil:
		k.note("pod being deleted")
		w.Pods[0].DeletionTimestamp = &metav1.Time{Time: w.Now}
	case w.Job == nil && len(w.Pods) > 0:
		k.note("pod gone")
		w.Pods = nil
	}
}

// pass is what the operator does: move and store it, or enforce and report.
func (k *walk) pass() {
	w := k.world
	d := session.Decide(w)
	if !d.Moves() {
		k.enforce()
		d = session.Decide(w)
	}
	k.check(d)
	status := session.Status(w, d)
	if wrong := checkConditions(status.Conditions, w.Session.Generation); wrong != nil {
		k.fail("%v", wrong)
	}
	if d.Moves() {
		k.note("%s > %s (%s)", d.From, d.To, d.Rule)
		if d.To.Terminal() && k.asked == v1alpha1.DesiredStopped {
			k.asked = ""
		}
	}
	k.world = storing(w, status)
	if again := session.Decide(k.world); !d.Moves() && !again.Moves() {
		if next := session.Status(k.world, again); !equality.Semantic.DeepEqual(next, k.world.Session.Status) {
			k.fail("in %s the same status is written again", d.To)
		}
	}
}

func (k *walk) check(d session.Decision) {
	k.t.Helper()
	switch {
	case !d.Moves():
	case !slices.Contains(legal, edge{d.From, d.To}):
		k.fail("%s to %s is no edge", d.From, d.To)
	case d.From.Terminal() && d.Rule != "restart":
		k.fail("%s is left by rule %q", d.From, d.Rule)
	case d.To == v1alpha1.PhaseCreating && (k.world.Job != nil || len(k.world.Pods) > 0):
		k.fail("a run begins while another is left")
	}
	for run, pods := range k.started {
		if pods > 1 {
			k.fail("run %d had %d pods", run, pods)
		}
	}
}

func (k *walk) enforce() {
	w := k.world
	a := w.Session.Annotations
	if w.Honoured() && k.random.IntN(2) == 0 {
		k.note("request removed")
		delete(a, v1alpha1.AnnotationDesiredPhase)
		delete(a, v1alpha1.AnnotationStartRequestedAt)
		delete(a, v1alpha1.AnnotationStopRequestedAt)
	}
	if w.Job != nil && w.Job.DeletionTimestamp == nil && w.RemoveJob(w.Job) {
		k.note("job removed")
		w.Job.DeletionTimestamp = &metav1.Time{Time: w.Now}
	}
	if w.Phase() == v1alpha1.PhaseCreating && w.Job == nil && !w.Holds(session.RunnerLost) {
		k.note("job made")
		k.uids++
		w.Job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("a-run-%d", w.Session.Status.Run), UID: types.UID(fmt.Sprint("job-", k.uids)),
			CreationTimestamp: metav1.NewTime(w.Now)}}
	}
}

// rest lets the operator and the garbage collector alone go on: they come to rest where the user
// wanted, with nothing left of a run that is over.
func (k *walk) rest() {
	k.note("from here nothing new")
	k.world.Missing = nil
	for range 30 {
		k.collect()
		k.pass()
	}
	phase := k.world.Phase()
	switch {
	case phase == v1alpha1.PhasePending || phase == v1alpha1.PhaseStopping:
		k.fail("rests in %s", phase)
	case k.asked == v1alpha1.DesiredStopped && !phase.Terminal():
		k.fail("the last request was to stop, but it rests in %s", phase)
	case phase == v1alpha1.PhaseStopped && k.asked == v1alpha1.DesiredRunning && k.world.Session.Status.StoppedReason == v1alpha1.StoppedByUser:
		k.fail("the last request was to start, but it rests stopped by the user")
	}
}
