package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// unlabel takes the label by which caches select it off a pod.
func (p *project) unlabel(pod *corev1.Pod) {
	p.t.Helper()
	p.patch(pod, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, v1alpha1.LabelSession))
}

// TestUnlabelledPod: a runner that does not end and lost its label is still the session's: it is not
// Stopped, and no other run begins, while that pod is there. (Cases 4, 21.)
func TestUnlabelledPod(t *testing.T) {
	p := share(t)
	t.Run("of a session that is stopped", func(t *testing.T) {
		q := p.in(t)
		s := q.session("deaf", "ignore-sigterm\nhang")
		s.reaches(running)
		pod := s.pod()
		q.unlabel(pod)
		s.stop()
		s.reaches(stopping)
		q.always(4*time.Second, "it is Stopping while its pod lives", func() error {
			if err := suite.admin.Get(q.ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			return s.phaseIs(stopping)
		})
		q.patch(pod, fmt.Sprintf(`{"metadata":{"annotations":{%q:"exit 137"}}}`, scriptAnnotation))
		s.reaches(stopped)
		if err := q.absent(pod.Name, &corev1.Pod{}); err != nil {
			t.Error(err)
		}
		s.start()
		s.reachesInRun(2, running)
	})
	t.Run("whose Job somebody removed", func(t *testing.T) {
		q := p.in(t)
		s := q.session("left-behind", "ignore-sigterm\nhang")
		s.reaches(running)
		pod := s.pod()
		q.unlabel(pod)
		q.delete(q.jobOf(s), client.PropagationPolicy(metav1.DeletePropagationBackground))
		s.tells(failure, v1alpha1.ReasonRunnerLost)
		s.start()
		s.until("waits for the pod of the first run", func(object *v1alpha1.AgenticSession) error {
			if ready := condition(object, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonWaitingForPreviousRun {
				return fmt.Errorf("%s: %s", ready.Reason, ready.Message)
			}
			return nil
		})
		q.always(2*time.Second, "it waits", func() error { return s.phaseIs(pending) })
		q.patch(pod, fmt.Sprintf(`{"metadata":{"annotations":{%q:"exit 137"}}}`, scriptAnnotation))
		s.reachesInRun(2, running)
	})
}

// TestCase21UnlabelledJob: a Job that lost its label while no operator looked is still the session's: it is
// stopped, and started again.
func TestCase21UnlabelledJob(t *testing.T) {
	first := alone(t, nil)
	p := newProject(t, first)
	asked, over := p.session("stopped", "hang"), p.session("over", "exit 0")
	asked.reaches(running)
	over.reaches(completed)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session{asked, over} {
		p.patch(p.jobOf(s), fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, v1alpha1.LabelSession))
	}
	asked.stop()
	over.start()
	p.operator = alone(t, nil)
	asked.reaches(stopped)
	over.reachesInRun(2, completed)
	asked.start()
	asked.reachesInRun(2, running)
}

// TestCase24InTheWayOfARunningSession: somebody else's object in the place of one of a running
// session's is told once and looked at from time to time. Nothing is written until it is gone.
func TestCase24InTheWayOfARunningSession(t *testing.T) {
	p := share(t)
	for name, f := range map[string]struct {
		ours    client.Object
		foreign client.Object
	}{
		"service": {&corev1.Service{}, &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}},
		"secret":  {&corev1.Secret{}, &corev1.Secret{StringData: map[string]string{"mine": "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			q := newProject(t, p.operator)
			s := q.session("in-use", "hang")
			s.reaches(running)
			called := workload.ServiceName(s.name)
			if name == "secret" {
				called = workload.TokenSecretName(s.name)
			}
			q.settles(0)
			// Held back, the operator does not make its own again before the other is there.
			release := make(chan struct{})
			q.operator.gate.hookInto(t, q.name, func(request *http.Request) *http.Response {
				if request.Method == http.MethodPost && strings.Contains(request.URL.Path, "/"+name) {
					<-release
				}
				return nil
			})
			q.get(called, f.ours)
			q.delete(f.ours)
			f.foreign.SetNamespace(q.name)
			f.foreign.SetName(called)
			q.create(f.foreign)
			close(release)
			object := s.tells(running, v1alpha1.ReasonNameCollision)
			if message := condition(object, v1alpha1.ConditionReady).Message; !strings.Contains(message, called) || !strings.Contains(message, "rename or remove it") {
				t.Errorf("the message does not name the object or what to do: %s", message)
			}
			time.Sleep(time.Second)
			before := len(q.operator.gate.written(q.name))
			time.Sleep(15 * time.Second)
			if written := q.operator.gate.written(q.name); len(written) > before {
				t.Errorf("it is written to: %v", written[before:])
			}
			if lines := suite.logs.about(q.name, "in the way"); lines != 1 {
				t.Errorf("it is logged %d times, want once", lines)
			}
			q.hasEvents(s.name, v1alpha1.ReasonNameCollision, 1)
			q.delete(f.foreign)
			afterwards := v1alpha1.ReasonRunnerStarted
			if name == "secret" {
				afterwards = v1alpha1.ReasonTokenNotRenewed // with the Secret went a key that the runner has read
			}
			s.tells(running, afterwards)
			q.eventually("its own is there again", func() error { return suite.admin.Get(q.ctx, q.key(called), f.ours) })
			s.ranOnce()
		})
	}
}

// about counts the lines that contain two texts.
func (l *logTail) about(one, other string) int {
	count := 0
	for _, line := range l.containing(one) {
		if strings.Contains(line, other) {
			count++
		}
	}
	return count
}

// TestUnlabelledNamespaceDeleted: what the end of a namespace does to its sessions is not their
// outcome, also where the namespace is managed no more. Nothing is written into it.
func TestUnlabelledNamespaceDeleted(t *testing.T) {
	p := share(t)
	s := p.session("going", "hang", timeout(0)) // so that its Job's deadline is not set late, on a busy machine
	s.reaches(running)
	p.settles(0)
	p.label(v1alpha1.LabelManaged, "")
	p.patch(s.object(), `{"metadata":{"finalizers":["example.com/hold"]}}`) // so that it is seen to the end
	p.settles(0)                                                            // the project's settings tell that they are not kept
	before := len(p.operator.gate.written(p.name))
	p.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}})
	p.eventually("the pod is gone", func() error { return noPods(s) })
	p.always(2*time.Second, "its outcome is not told", func() error { return s.phaseIs(running) })
	for _, c := range p.operator.gate.written(p.name)[before:] {
		if c.method != http.MethodDelete {
			t.Errorf("it wrote %s %s", c.method, c.path)
		}
	}
	p.patch(s.object(), `{"metadata":{"finalizers":null}}`)
}

// TestPhaseByHand: a phase that somebody else wrote is told as such.
func TestPhaseByHand(t *testing.T) {
	p := share(t)
	for _, phase := range []v1alpha1.Phase{completed, failure, stopped} {
		t.Run(strings.ToLower(string(phase)), func(t *testing.T) {
			q := p.in(t)
			s := q.session("by-hand-"+strings.ToLower(string(phase)), "hang")
			s.tamper()
			s.reaches(running)
			if err := suite.admin.Status().Patch(q.ctx, s.object(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))); err != nil {
				t.Fatal(err)
			}
			s.tells(phase, v1alpha1.ReasonOutcomeUnknown)
			q.eventually("its runner is ended", func() error { return noPods(s) })
			s.start()
			s.reachesInRun(2, running)
		})
	}
}

// TestWaitingIsTold: why a session waits is in one Event, as is what of its spec is not used.
func TestWaitingIsTold(t *testing.T) {
	p := share(t)
	t.Run("a missing Secret", func(t *testing.T) {
		q := emptyProject(t, p.operator, map[string]string{v1alpha1.LabelManaged: "true"})
		s := q.session("waiting", "hang")
		s.tells(pending, v1alpha1.ReasonPrerequisiteMissing)
		q.hasEvents(s.name, v1alpha1.ReasonPrerequisiteMissing, 1)
		q.label("example.com/touch", "1")
		s.annotate("example.com/touch", "1")
		q.settles(time.Second)
		q.hasEvents(s.name, v1alpha1.ReasonPrerequisiteMissing, 1)
		q.createRunnerSecret()
		s.reaches(running)
	})
	t.Run("a variable that is not used", func(t *testing.T) {
		q := p.in(t)
		s := q.session("overriding", "hang", environment("ANTHROPIC_API_KEY", "mine"))
		s.reaches(running)
		q.hasEvents(s.name, v1alpha1.ReasonVariableIgnored, 1)
		fine := q.session("not-overriding", "hang", environment("GREETING", "hello"))
		fine.reaches(running)
		q.hasEvents(fine.name, v1alpha1.ReasonVariableIgnored, 0)
	})
}

// hasEvents waits until so many Events about an object have a reason.
func (p *project) hasEvents(object, reason string, want int32) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("there is %d Event %s about %s", want, reason, object), func() error {
		events := &corev1.EventList{}
		if err := suite.admin.List(p.ctx, events, client.InNamespace(p.name)); err != nil {
			return err
		}
		count := int32(0)
		for _, e := range events.Items {
			if e.InvolvedObject.Name == object && e.Reason == reason {
				count += max(1, e.Count)
			}
		}
		if count != want {
			return fmt.Errorf("there are %d", count)
		}
		return nil
	})
}
