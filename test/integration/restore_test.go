package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// backup is what a backup tool has kept of a session at one moment.
type backup struct {
	session *v1alpha1.AgenticSession
	job     *batchv1.Job
	pod     *corev1.Pod
	secret  *corev1.Secret
}

// backedUp keeps what there is of the session now.
func (s *session) backedUp() *backup {
	s.t.Helper()
	b := &backup{session: &v1alpha1.AgenticSession{}}
	s.get(s.name, b.session)
	if jobs := remaining(s.jobs()); len(jobs) > 0 {
		b.job = jobs[0].DeepCopy()
	}
	if pods := remaining(s.pods()); len(pods) > 0 {
		b.pod = pods[0].DeepCopy()
	}
	secret := &corev1.Secret{}
	if suite.admin.Get(s.ctx, s.key("ambient-runner-token-"+s.name), secret) == nil {
		b.secret = secret
	}
	return b
}

// anew is an object as a backup tool makes it again: with all but what the API server sets.
func anew[T client.Object](object T, namespace string) T {
	made := object.DeepCopyObject().(T)
	made.SetNamespace(namespace)
	made.SetUID("")
	made.SetResourceVersion("")
	made.SetGeneration(0)
	made.SetCreationTimestamp(metav1.Time{})
	made.SetDeletionTimestamp(nil)
	made.SetManagedFields(nil)
	return made
}

// restored makes the session again from its backup, in any project, with its status or without.
func (p *project) restored(b *backup, status bool) *session {
	p.t.Helper()
	object := anew(b.session, p.name)
	p.create(object)
	s := &session{project: p, name: object.Name, uid: object.UID}
	s.tamper()
	if status {
		object.Status = b.session.Status
		if err := suite.admin.Status().Update(p.ctx, object); err != nil {
			p.t.Fatalf("restoring the status of session %s: %v", object.Name, err)
		}
	}
	return s
}

// children makes again what there was of the session's run. Its owners are of a life that is over.
func (p *project) children(b *backup) {
	p.t.Helper()
	if b.job != nil {
		job := anew(b.job, p.name)
		for _, labels := range []map[string]string{job.Labels, job.Spec.Template.Labels} {
			for _, key := range []string{"controller-uid", batchv1.ControllerUidLabel} {
				delete(labels, key)
			}
		}
		job.Spec.Selector = nil
		job.Spec.Suspend = ptr(true) // so that the Job controller is in no race with this test
		p.create(job)
	}
	if b.secret != nil {
		p.create(anew(b.secret, p.name))
	}
}

// TestRestoreFromBackup: a session of which a run had begun does not run by itself when it is restored,
// wherever the backup found it, with its status or without, with the objects of its run or without, in
// its own namespace or another. A person can start it, and then it goes on instead of carrying its
// prompt out again. One that had not begun is a new one.
func TestRestoreFromBackup(t *testing.T) {
	first := alone(t, nil)
	p := newProject(t, first)
	prompts := map[string]string{"ended": "exit 0", "failed": "exit 1", "running": "hang", "creating": "never-ready\nhang", "stopped": "hang"}
	kept := map[string]*backup{}
	before := map[string]*session{}
	for name, prompt := range prompts {
		before[name] = p.session(name, prompt)
	}
	before["ended"].reaches(completed)
	before["failed"].reaches(failure)
	before["running"].reaches(running)
	before["stopped"].reaches(running)
	before["stopped"].stop()
	before["stopped"].reaches(stopped)
	before["creating"].until("has its Job", func(*v1alpha1.AgenticSession) error {
		if len(remaining(before["creating"].jobs())) == 0 {
			return fmt.Errorf("it has none")
		}
		return nil
	})
	p.settles(0)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	before["waiting"] = p.session("waiting", "hang") // nobody has looked at it
	before["ended"].start()                          // what was asked at the moment of the backup
	for name, s := range before {
		kept[name] = s.backedUp()
	}
	kept["ended"].session.Annotations[v1alpha1.AnnotationDesiredPhase] = v1alpha1.DesiredRunning

	again := map[string]*project{}
	for _, way := range []string{"bare", "with-status", "with-children", "whole"} {
		q := newProject(t, nil)
		again[way] = q
		for _, b := range kept {
			if way == "with-children" || way == "whole" {
				q.children(b)
			}
		}
	}
	sessions := map[string]map[string]*session{}
	for way, q := range again {
		sessions[way] = map[string]*session{}
		for name, b := range kept {
			sessions[way][name] = q.restored(b, way == "with-status" || way == "whole")
		}
	}
	operator := alone(t, nil)
	for way, all := range sessions {
		again[way].operator = operator
		for name, s := range all {
			t.Run(way+"/"+name, func(t *testing.T) { s.on(t).restsRestored(kept[name], way == "with-status" || way == "whole") })
		}
	}
	for way, all := range sessions {
		again[way].settles(time.Second)
		t.Run(way+"/started", func(t *testing.T) { all["ended"].on(t).goesOn() })
	}
}

// on is the session for a subtest.
func (s *session) on(t *testing.T) *session {
	p := *s.project
	p.t, p.ctx = t, t.Context()
	return &session{project: &p, name: s.name, uid: s.uid}
}

// restsRestored checks that a restored session is at rest and has not run.
func (s *session) restsRestored(b *backup, status bool) {
	s.t.Helper()
	was := b.session.Status.Phase
	if s.name == "waiting" {
		s.reaches(running)
		return
	}
	if status && was.Terminal() {
		object := s.until("is known as this one", marked)
		if object.Status.Phase != was || condition(object, v1alpha1.ConditionReady).Reason != condition(b.session, v1alpha1.ConditionReady).Reason {
			s.t.Errorf("it was %s, and is %s", was, object.Status.Phase)
		}
	} else {
		s.tells(stopped, v1alpha1.ReasonRestored)
		object := s.until("is known as this one", marked)
		if object.Status.StoppedReason != "" {
			s.t.Errorf("it is said to have been stopped by %s", object.Status.StoppedReason)
		}
	}
	s.requestsConsumed()
	s.eventually("nothing of a run is left", func() error {
		for _, pod := range remaining(s.pods()) {
			return fmt.Errorf("pod %s is there", pod.Name)
		}
		return nil
	})
	s.always(500*time.Millisecond, "it stays so", func() error { return is(s.latest().Status.Phase)(s.latest()) })
	if pods := uids(s.pods()); len(pods) > 0 {
		s.t.Errorf("it had %d pods", len(pods))
	}
	if slices.Contains(s.history(), creating) && was != creating {
		s.t.Errorf("it went through %v", s.history())
	}
}

// marked complains unless the session says of itself that it has run.
func marked(s *v1alpha1.AgenticSession) error {
	if got, want := s.Annotations[v1alpha1.AnnotationRunOf], s.Name+"/"+string(s.UID); got != want {
		return fmt.Errorf("it says that %q has run", got)
	}
	return nil
}

// goesOn starts a restored session, whose runner goes on with what it did.
func (s *session) goesOn() {
	s.t.Helper()
	s.patch(s.object(), `{"spec":{"initialPrompt":"hang"}}`)
	run := s.latest().Status.Run
	s.start()
	s.reachesInRun(run+1, running)
	s.requestsConsumed()
	if env := s.job().Spec.Template.Spec.Containers[0].Env; !slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == "IS_RESUME" && e.Value == "true" }) {
		s.t.Error("its runner would carry out the prompt again")
	}
	s.ranOnce()
}

// TestTheStatusAloneIsLost: a session that has run and has no status any more is not run again.
func TestTheStatusAloneIsLost(t *testing.T) {
	first := alone(t, nil)
	p := newProject(t, first)
	s := p.session("blank", "hang")
	s.reaches(running)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	s.tamper()
	if err := suite.admin.Status().Patch(p.ctx, s.object(), client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))); err != nil {
		t.Fatal(err)
	}
	p.operator = alone(t, nil)
	s.tells(stopped, v1alpha1.ReasonRestored)
	p.settles(time.Second)
	s.ranOnce()
	if pods := remaining(s.pods()); len(pods) > 0 {
		t.Errorf("%d pods are left", len(pods))
	}
}
