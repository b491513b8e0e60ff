package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/record"
)

const holdFinalizer = "test.example/hold"

// TestCase2StopIsNeverAFailure: once a stop is accepted, the runner's end is its consequence. What
// the runner, its Job and the user do arrives in 100 random orders.
func TestCase2StopIsNeverAFailure(t *testing.T) {
	p := share(t)
	const sessions, atATime = 100, 10
	all := make([]*session, sessions)
	var wait sync.WaitGroup
	slots := make(chan struct{}, atATime)
	for i := range all {
		slots <- struct{}{}
		all[i] = p.session(fmt.Sprintf("s-%d", i), "hang")
		wait.Go(func() {
			defer func() { <-slots }()
			if err := endInRandomOrder(all[i], i%2 == 0); err != nil {
				t.Errorf("session %s: %v", all[i].name, err)
			}
		})
	}
	wait.Wait()
	ends := map[v1alpha1.Phase]int{}
	for _, s := range all {
		object := s.until("is over", func(object *v1alpha1.AgenticSession) error {
			if !object.Status.Phase.Terminal() {
				return is(stopped)(object)
			}
			return nil
		})
		s.requestsConsumed()
		ends[object.Status.Phase]++
		history := s.history()
		if i := slices.Index(history, stopping); i >= 0 && !slices.Equal(history[i:], []v1alpha1.Phase{stopping, stopped}) {
			t.Errorf("session %s went through %v after the stop was accepted", s.name, history[i:])
		}
		s.ranOnce()
	}
	t.Logf("ends of %d sessions: %v", sessions, ends)
	if ends[stopped] == 0 {
		t.Error("not one session was stopped: the orders were not mixed")
	}
}

// endInRandomOrder waits until the session runs, then stops it, has its runner end and, if asked
// to, deletes its Job, in any order and at about the same time.
func endInRandomOrder(s *session, withJob bool) error {
	for start := time.Now(); s.latest() == nil || s.latest().Status.Phase != running; time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > patience {
			return errors.New("it does not run")
		}
	}
	merge := func(patch string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(patch)) }
	steps := []func() error{
		func() error {
			return suite.admin.Patch(s.ctx, s.object(), merge(`{"metadata":{"annotations":{"ambient-code.io/desired-phase":"Stopped"}}}`))
		},
		func() error {
			for _, pod := range remaining(s.pods()) {
				return suite.admin.Patch(s.ctx, pod.DeepCopy(), merge(`{"metadata":{"annotations":{"simnode.ambient-code.io/script":"exit 143"}}}`))
			}
			return nil
		},
	}
	if withJob {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.project.name, Name: s.latest().Status.JobName}}
		steps = append(steps, func() error {
			return suite.admin.Delete(s.ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		})
	}
	rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		if err := step(); client.IgnoreNotFound(err) != nil {
			return err
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
	}
	return nil
}

// TestCase3RequestsAreNotErased: a stop that arrives just before any of the operator's writes is
// carried out, and what others put into the annotations is left alone.
func TestCase3RequestsAreNotErased(t *testing.T) {
	reference := share(t)
	reference.settles(0)
	before := len(reference.operator.gate.written(reference.name))
	s := reference.session("reference", "hang")
	s.reaches(running)
	s.stop()
	s.reaches(stopped)
	reference.settles(0)
	writes := len(reference.operator.gate.written(reference.name)) - before
	if writes < 10 {
		t.Fatalf("the operator wrote only %d times for a whole life", writes)
	}
	for n := range writes {
		t.Run(fmt.Sprintf("before-write-%d", n+1), func(t *testing.T) {
			p := share(t)
			p.settles(0) // what the project needs is there, so that the writes to come are the session's
			asked := stopBeforeWrite(p, n)
			s := p.session("raced", "hang")
			s.until("is Running or Stopped", func(object *v1alpha1.AgenticSession) error {
				if is(running)(object) == nil {
					return nil
				}
				return is(stopped)(object)
			})
			if !asked() {
				s.stop() // the write in question belongs to the stop
			}
			s.tells(stopped, v1alpha1.ReasonStoppedByUser)
			s.requestsConsumed()
			p.settles(0)
			if !asked() {
				t.Skip("this life had fewer writes")
			}
			if object := s.latest(); object.Status.Phase != stopped || object.Annotations["team/x"] != "1" || object.Labels["team/y"] != "1" {
				t.Errorf("the session is %s with annotations %v and labels %v", object.Status.Phase, object.Annotations, object.Labels)
			}
			s.never(failure)
			noneLeft(t, s)
		})
	}
}

// stopBeforeWrite asks for a stop of session "raced" just before the operator's n-th write, and
// says whether that has happened.
func stopBeforeWrite(p *project, n int) (asked func() bool) {
	var mu sync.Mutex
	seen, done := 0, false
	p.operator.gate.hookInto(p.t, p.name, func(request *http.Request) *http.Response {
		if request.Method == http.MethodGet || strings.HasSuffix(request.URL.Path, "/events") {
			return nil
		}
		mu.Lock()
		mine := seen == n
		seen++
		mu.Unlock()
		if !mine {
			return nil
		}
		object := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "raced"}}
		patch := `{"metadata":{"annotations":{"ambient-code.io/desired-phase":"Stopped","team/x":"1"},"labels":{"team/y":"1"}}}`
		if err := suite.admin.Patch(p.ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			p.t.Errorf("asking for a stop: %v", err)
		}
		mu.Lock()
		done = true
		mu.Unlock()
		return nil
	})
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return done
	}
}

// TestCase4RestartWhileTheOldRunIsLeaving: a new run begins only when nothing of the old one is
// left, and never takes over its result.
func TestCase4RestartWhileTheOldRunIsLeaving(t *testing.T) {
	t.Parallel()
	t.Run("stopped", func(t *testing.T) {
		p := share(t)
		s := p.session("leaving", "hang")
		s.reaches(running)
		first := s.pod()
		p.hold(first)
		s.stop()
		s.reaches(stopping)
		s.start()
		s.always(3*time.Second, "the old pod is waited for", func() error {
			if object := s.latest(); object.Status.Phase != stopping && object.Status.Phase != pending {
				return fmt.Errorf("the session is %s", object.Status.Phase)
			}
			return nil
		})
		s.until("says what is waited for", func(object *v1alpha1.AgenticSession) error {
			if message := condition(object, v1alpha1.ConditionReady).Message; !strings.Contains(message, "gone") {
				return errors.New(message)
			}
			return nil
		})
		s.ranOnce()
		p.release(first)
		s.reachesInRun(2, running)
		s.requestsConsumed()
		s.never(failure)
		differentRuns(t, s)
	})
	t.Run("failed", func(t *testing.T) {
		p := share(t)
		s := p.session("leaving", "hang")
		s.reaches(running)
		first := s.pod()
		p.hold(first)
		s.does("exit 1")
		s.reaches(failure)
		s.patch(s.object(), `{"spec":{"initialPrompt":"hang"}}`)
		s.start()
		object := s.tells(pending, v1alpha1.ReasonWaitingForPreviousRun)
		if message := condition(object, v1alpha1.ConditionReady).Message; !strings.Contains(message, "previous run") {
			t.Errorf("the message is %q", message)
		}
		before := len(p.operator.gate.written(p.name))
		s.always(3*time.Second, "the old pod is waited for", func() error { return is(pending)(s.latest()) })
		if more := len(p.operator.gate.written(p.name)) - before; more > 3 {
			t.Errorf("the operator wrote %d times while it waited", more)
		}
		p.release(first)
		s.reachesInRun(2, running)
		s.expectHistory(pending, creating, running, failure, pending, creating, running)
		differentRuns(t, s)
	})
}

func differentRuns(t *testing.T, s *session) {
	t.Helper()
	if jobs := uids(s.jobs()); len(jobs) != 2 {
		t.Errorf("session %s had %d Jobs, want 2", s.name, len(jobs))
	}
	if most := mostAtOnce(s.pods()); most > 1 {
		t.Errorf("%d pods were alive at once", most)
	}
}

// hold keeps a pod from going away.
func (p *project) hold(pod *corev1.Pod) {
	p.t.Helper()
	p.editFinalizers(pod, func(all []string) []string { return append(all, holdFinalizer) })
	p.t.Cleanup(func() {
		if !p.t.Failed() {
			return
		}
		p.editFinalizers(pod, func(all []string) []string {
			return slices.DeleteFunc(all, func(f string) bool { return f == holdFinalizer })
		})
	})
}

func (p *project) release(pod *corev1.Pod) {
	p.t.Helper()
	p.editFinalizers(pod, func(all []string) []string {
		return slices.DeleteFunc(all, func(f string) bool { return f == holdFinalizer })
	})
}

// editFinalizers changes the finalizers of a pod, among which the Job controller has its own.
func (p *project) editFinalizers(pod *corev1.Pod, change func([]string) []string) {
	p.t.Helper()
	var last error
	for range 10 {
		fresh := &corev1.Pod{}
		if last = suite.admin.Get(context.Background(), client.ObjectKeyFromObject(pod), fresh); last != nil {
			break
		}
		fresh.Finalizers = change(fresh.Finalizers)
		if last = suite.admin.Update(context.Background(), fresh); last == nil {
			return
		}
	}
	if client.IgnoreNotFound(last) != nil {
		p.t.Errorf("changing the finalizers of pod %s: %v", pod.Name, last)
	}
}

// TestCase6FiftyToggles: stop and start are asked for faster than they can be carried out. The
// last word counts, and there is never more than one live pod.
func TestCase6FiftyToggles(t *testing.T) {
	t.Parallel()
	for _, last := range []string{v1alpha1.DesiredStopped, v1alpha1.DesiredRunning} {
		t.Run("last-"+strings.ToLower(last), func(t *testing.T) {
			p := share(t)
			s := p.session("toggled", "hang")
			// More than fifty on a machine that is too busy to begin a run in between.
			for i := 0; i < 50 || i < 200 && s.latest().Status.Run < 3; i++ {
				want := v1alpha1.DesiredStopped
				if i%2 == 1 {
					want = v1alpha1.DesiredRunning
				}
				s.ask(want)
				time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
			}
			s.ask(last)
			end := stopped
			if last == v1alpha1.DesiredRunning {
				end = running
			}
			s.requestsConsumed()
			s.reaches(end)
			p.settles(2 * time.Second)
			if err := is(end)(s.latest()); err != nil {
				t.Errorf("the last request was %s: %v", last, err)
			}
			s.never(failure)
			if most := mostAtOnce(s.pods()); most > 1 {
				t.Errorf("%d pods were alive at once", most)
			}
			if jobs := remaining(s.jobs()); len(jobs) > 1 || end == stopped && len(jobs) > 0 {
				t.Errorf("%d Jobs are left", len(jobs))
			}
			checkEdges(t, s)
			t.Logf("went through %d runs", s.latest().Status.Run)
		})
	}
}

func checkEdges(t *testing.T, s *session) {
	t.Helper()
	history := s.history()
	for i := 1; i < len(history); i++ {
		if !slices.Contains(record.Edges[history[i-1]], history[i]) {
			t.Errorf("session %s went from %s to %s", s.name, history[i-1], history[i])
		}
	}
}

// TestCase9FinishedWorkIsNotRunAgain: what is over stays over, whatever becomes of its objects.
func TestCase9FinishedWorkIsNotRunAgain(t *testing.T) {
	p := share(t)
	s := p.session("over", "exit 0")
	s.reaches(completed)
	p.delete(s.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))
	s.eventually("the Job is gone", func() error {
		if jobs := remaining(s.jobs()); len(jobs) > 0 {
			return errors.New("it is there")
		}
		return nil
	})
	p.settles(2 * time.Second)
	s.ranOnce()
	if err := is(completed)(s.latest()); err != nil {
		t.Error(err)
	}
	if reason := condition(s.latest(), v1alpha1.ConditionReady).Reason; reason != v1alpha1.ReasonRunnerCompleted {
		t.Errorf("the reason became %s", reason)
	}
}
