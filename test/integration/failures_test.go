package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// neverReady is the prompt of a runner that works and never says that it is ready.
const neverReady = "never-ready\nhang"

// TestEndings: each way in which a runner ends is told with its cause, and no run is repeated.
// (Cases 1, 9, 13.)
func TestEndings(t *testing.T) {
	p := share(t)
	podGone := func(s *session) { s.delete(s.pod(), client.GracePeriodSeconds(0)) }
	jobGone := func(how metav1.DeletionPropagation) func(*session) {
		return func(s *session) { s.delete(s.job(), client.PropagationPolicy(how)) }
	}
	for _, c := range []struct {
		name   string
		prompt string
		then   func(*session) // done once the session is Running, or knows its Job where it never gets so far
		phase  v1alpha1.Phase
		reason string
		says   string
	}{
		{"success", "sleep 300ms\nexit 0", nil, completed, v1alpha1.ReasonRunnerCompleted, "success"},
		{"sdk-error", "sleep 300ms\nexit 1", nil, failure, v1alpha1.ReasonRunnerFailed, "exit code 1"},
		{"at-once", "exit 2", nil, failure, v1alpha1.ReasonRunnerFailed, "prerequisite"},
		{"crash", "sleep 300ms\ncrash", nil, failure, v1alpha1.ReasonRunnerFailed, "signal 11"},
		{"oom", "sleep 300ms\noom", nil, failure, v1alpha1.ReasonOOMKilled, "memory"},
		{"evicted", "sleep 300ms\nevict", nil, failure, v1alpha1.ReasonEvicted, "node"},
		{"never-ready", "never-ready\nsleep 1\nexit 1", nil, failure, v1alpha1.ReasonRunnerFailed, "exit code 1"},
		{"pod-deleted", "hang", func(s *session) { s.delete(s.pod()) }, failure, v1alpha1.ReasonRunnerFailed, ""},
		{"pod-killed", "hang", podGone, failure, v1alpha1.ReasonRunnerFailed, ""},
		{"job-lost", "hang", jobGone(metav1.DeletePropagationBackground), failure, v1alpha1.ReasonRunnerLost, "not run again"},
		{"job-orphaned", "hang", jobGone(metav1.DeletePropagationOrphan), failure, v1alpha1.ReasonRunnerLost, "not run again"},
		{"creating-succeeds", neverReady, func(s *session) { s.does("exit 0") }, completed, v1alpha1.ReasonRunnerCompleted, "success"},
		{"creating-pod-killed", neverReady, podGone, failure, v1alpha1.ReasonRunnerFailed, ""},
		{"creating-job-lost", neverReady, jobGone(metav1.DeletePropagationBackground), failure, v1alpha1.ReasonRunnerLost, "not run again"},
		{"creating-job-orphaned", neverReady, jobGone(metav1.DeletePropagationOrphan), failure, v1alpha1.ReasonRunnerLost, "not run again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := *p
			p.t, p.ctx = t, t.Context()
			s := p.session(c.name, c.prompt)
			var then time.Time
			if c.then != nil {
				if c.prompt == neverReady {
					s.knowsItsJob()
				} else {
					s.reaches(running)
				}
				c.then(s)
				then = time.Now()
			}
			object := s.tells(c.phase, c.reason)
			if c.then != nil {
				s.wasSoon(c.phase, then)
			}
			if c.prompt == neverReady {
				s.never(running)
			}
			ready := condition(object, v1alpha1.ConditionReady)
			if !strings.Contains(ready.Message, c.says) {
				t.Errorf("the message %q does not say %q", ready.Message, c.says)
			}
			end := condition(object, string(c.phase))
			if end.Status != metav1.ConditionTrue || end.Reason != c.reason || end.Message == "" {
				t.Errorf("condition %s is %+v", c.phase, end)
			}
			if object.Status.CompletionTime == nil {
				t.Error("completionTime is not set")
			}
			// A run that is over leaves nothing that works, and is never begun again.
			s.eventually("no pod is alive", func() error {
				for _, pod := range remaining(s.pods()) {
					if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending {
						return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
					}
				}
				return nil
			})
			time.Sleep(time.Second)
			s.ranOnce()
			if got := s.history(); got[len(got)-1] != c.phase {
				t.Errorf("went on to %v", got)
			}
		})
	}
}

// TestCase10RunnerDiesSidecarLives: the runner's container alone decides, whatever else is in the
// pod.
func TestCase10RunnerDiesSidecarLives(t *testing.T) {
	p := share(t)
	for name, end := range map[string]struct {
		script string
		phase  v1alpha1.Phase
		reason string
	}{
		"killed":    {`{"exitCode":137,"reason":"OOMKilled"}`, failure, v1alpha1.ReasonOOMKilled},
		"succeeded": {`{"exitCode":0,"reason":"Completed"}`, completed, v1alpha1.ReasonRunnerCompleted},
	} {
		s := p.session(name, "hang")
		s.reaches(running)
		pod := s.pod()
		// The test is the kubelet from here on: an injected sidecar goes on running.
		p.patch(pod, `{"metadata":{"annotations":{"simnode.ambient-code.io/manual":"true"}}}`)
		time.Sleep(200 * time.Millisecond)
		status := fmt.Sprintf(`{"status":{"phase":"Running","containerStatuses":[
			{"name":"ambient-code-runner","image":"i","imageID":"","ready":false,"restartCount":0,"state":{"terminated":%s}},
			{"name":"injected-sidecar","image":"i","imageID":"","ready":true,"restartCount":0,"state":{"running":{}}}]}}`, end.script)
		if err := suite.admin.Status().Patch(p.ctx, pod, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			t.Fatal(err)
		}
		died := time.Now()
		s.tells(end.phase, end.reason)
		s.wasSoon(end.phase, died)
		p.delete(pod, client.GracePeriodSeconds(0))
	}
}

// TestCase11StuckInCreating: what keeps a runner from starting is told within seconds, with the
// server's words, and the session goes on by itself when the cause is removed.
func TestCase11StuckInCreating(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(*project)
		edit    edit
		reason  string
		says    string
		lift    func(*session)
	}{
		{
			name:    "quota",
			prepare: func(p *project) { p.create(quota(p, "pods")) },
			reason:  v1alpha1.ReasonQuotaExceeded, says: "exceeded quota",
			lift: func(s *session) { s.delete(quota(s.project, "pods")) },
		},
		{
			name: "limit-range",
			prepare: func(p *project) {
				p.create(limitRange(p))
				p.within(patience, "the LimitRange is in force", func() error { return refusedByLimitRange(p) })
			},
			reason: v1alpha1.ReasonPodCreateForbidden, says: "maximum memory usage per Container",
			lift: func(s *session) { s.delete(limitRange(s.project)) },
		},
		{
			name:    "pod-security",
			prepare: func(p *project) { p.label("pod-security.kubernetes.io/enforce", "restricted") },
			reason:  "", // accepted: see case 37
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := share(t)
			c.prepare(p)
			s := p.session("stuck", "hang")
			if c.reason != "" {
				object := s.tells(creating, c.reason)
				if message := condition(object, v1alpha1.ConditionReady).Message; !strings.Contains(message, c.says) {
					t.Errorf("the message %q does not have the server's words %q", message, c.says)
				}
				for _, kind := range []string{v1alpha1.ConditionPodScheduled, v1alpha1.ConditionRunnerStarted} {
					if got := condition(object, kind); got.Status != metav1.ConditionFalse || got.Reason != c.reason {
						t.Errorf("condition %s is %s for %s", kind, got.Status, got.Reason)
					}
				}
				c.lift(s)
			}
			s.reaches(running)
			s.expectHistory(pending, creating, running)
			s.ranOnce()
		})
	}
}

func quota(p *project, of corev1.ResourceName) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{of: resource.MustParse("0")}},
	}
}

func limitRange(p *project) *corev1.LimitRange {
	return &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		}}},
	}
}

// refusedByLimitRange tries a pod: the API server learns of a LimitRange a moment after it is made.
func refusedByLimitRange(p *project) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}},
	}}}}
	if err := suite.admin.Create(p.ctx, pod, client.DryRunAll); err == nil {
		return fmt.Errorf("a pod over its limit is still accepted")
	}
	return nil
}

// TestMissingSecret: a session waits for the Secrets that its project must hold, and says so.
func TestMissingSecret(t *testing.T) {
	t.Parallel()
	t.Run("secret", func(t *testing.T) {
		t.Parallel()
		p := emptyProject(t, sharedOperator(t), map[string]string{v1alpha1.LabelManaged: "true"})
		s := p.session("early", "sleep 300ms\nexit 0")
		object := s.tells(pending, v1alpha1.ReasonPrerequisiteMissing)
		secrets := condition(object, v1alpha1.ConditionSecretsReady)
		if secrets.Status != metav1.ConditionFalse || !strings.Contains(secrets.Message, workload.DefaultRunnerSecret) {
			t.Errorf("SecretsReady is %s: %s", secrets.Status, secrets.Message)
		}
		if jobs := s.jobs(); len(jobs) > 0 {
			t.Error("a Job was made although the Secret is missing")
		}
		p.settles(time.Second)
		p.createRunnerSecret()
		s.reaches(completed)
		s.ranOnce()
	})
	t.Run("other-name", func(t *testing.T) {
		t.Parallel()
		p := newProject(t, sharedOperator(t))
		p.settings("are there", exist)
		p.patch(p.settingsObject(), `{"spec":{"runnerSecretsName":"keys"}}`)
		time.Sleep(200 * time.Millisecond)
		s := p.session("early", "hang")
		object := s.tells(pending, v1alpha1.ReasonPrerequisiteMissing)
		if message := condition(object, v1alpha1.ConditionReady).Message; !strings.Contains(message, `"keys"`) {
			t.Errorf("the message does not name the Secret: %s", message)
		}
		p.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "keys"}, StringData: map[string]string{"A": "b"}})
		s.reaches(running)
		if from := s.job().Spec.Template.Spec.Containers[0].EnvFrom[0].SecretRef.Name; from != "keys" {
			t.Errorf("the runner's keys come from %s", from)
		}
	})
}

// TestCase11LostKey: a Secret that loses its key while the pod waits holds the runner up, and the
// cause is told.
func TestCase11LostKey(t *testing.T) {
	p := share(t)
	// The pod may not start before its Secret is broken.
	q := quota(p, "pods")
	p.create(q)
	s := p.session("key", "hang")
	s.tells(creating, v1alpha1.ReasonQuotaExceeded)
	p.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: workload.DefaultRunnerSecret}})
	p.delete(q)
	object := s.tells(creating, v1alpha1.ReasonContainerConfigError)
	if message := condition(object, v1alpha1.ConditionReady).Message; !strings.Contains(message, workload.DefaultRunnerSecret) {
		t.Errorf("the message does not name the Secret: %s", message)
	}
	p.createRunnerSecret()
	s.reaches(running)
	s.ranOnce()
}

// TestCase14Timeout: the limit counts from the start of the runner, is told as what it is, takes
// effect when the pod has really ended and leaves nothing that a restart would trip over.
func TestCase14Timeout(t *testing.T) {
	t.Parallel()
	t.Run("waiting-does-not-count", func(t *testing.T) {
		p := share(t)
		s := p.session("late", "ready-after 6s\nhang", timeout(4))
		s.reaches(creating)
		s.until("is Running or over", func(object *v1alpha1.AgenticSession) error {
			if object.Status.Phase == creating {
				return fmt.Errorf("it is Creating")
			}
			return nil
		})
		s.tells(failure, v1alpha1.ReasonTimeout)
		if !strings.Contains(condition(s.latest(), v1alpha1.ConditionFailed).Message, "spec.timeout") {
			t.Error("the message does not say what to change")
		}
	})
	t.Run("deaf-to-sigterm", func(t *testing.T) {
		p := share(t)
		s := p.session("deaf", "ignore-sigterm\nhang", timeout(3))
		s.reaches(running)
		s.eventually("the pod is told to end", func() error {
			if s.pod().DeletionTimestamp == nil {
				return fmt.Errorf("it is not")
			}
			return nil
		})
		s.always(3*time.Second, "the session is Running until the pod has ended", func() error { return is(running)(s.latest()) })
		s.does("exit 137")
		object := s.tells(failure, v1alpha1.ReasonTimeout)
		if ran := object.Status.CompletionTime.Sub(object.Status.StartTime.Time); ran < 5*time.Second {
			t.Errorf("ended after %s, before the pod did", ran)
		}
		p.patch(s.object(), `{"spec":{"timeout":600}}`)
		s.start()
		s.reachesInRun(2, running)
		s.expectHistory(pending, creating, running, failure, pending, creating, running)
	})
	t.Run("none", func(t *testing.T) {
		p := share(t)
		s := p.session("endless", "hang", timeout(0))
		s.reaches(running)
		s.eventually("the Job has no deadline", func() error {
			if deadline := s.job().Spec.ActiveDeadlineSeconds; deadline != nil {
				return fmt.Errorf("it has %d", *deadline)
			}
			return nil
		})
	})
}
