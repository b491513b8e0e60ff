package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// TestInterference: what others do to the objects of a run neither keeps a runner alive that must
// end nor makes work be done twice. (Cases 9, 13, 21, 24.)
func TestInterference(t *testing.T) {
	p := share(t)
	t.Run("a Job that is kept by a finalizer", func(t *testing.T) {
		q := p.in(t)
		s := q.session("kept-job", "hang")
		s.reaches(running)
		job := q.jobOf(s)
		q.patch(job, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		s.stop()
		q.eventually("the runner ends although its Job stays", func() error { return noPods(s) })
		q.eventually("the status names who keeps the Job", func() error {
			for _, c := range s.latest().Status.Conditions {
				if c.Type == v1alpha1.ConditionReady && strings.Contains(c.Message, "example.com/hold") {
					return nil
				}
			}
			return fmt.Errorf("the conditions are %+v", s.latest().Status.Conditions)
		})
		q.patch(job, `{"metadata":{"finalizers":null}}`)
		s.reaches(stopped)
	})
	for name, patch := range map[string]string{"suspended": `{"spec":{"suspend":true}}`, "without-pods": `{"spec":{"parallelism":0}}`} {
		t.Run("a Job that is "+name, func(t *testing.T) {
			q := p.in(t)
			s := q.session("job-"+name, "hang")
			s.reaches(running)
			q.patch(q.jobOf(s), patch)
			s.tells(failure, v1alpha1.ReasonRunnerLost)
			q.eventually("no pod is left", func() error { return noPods(s) })
			if made := len(q.pods(s)); made > 1 {
				t.Errorf("%d pods did the work, want 1", made)
			}
		})
	}
	t.Run("a session that is kept by a finalizer", func(t *testing.T) {
		q := p.in(t)
		s := q.session("kept-session", "hang")
		s.reaches(running)
		q.patch(s.object(), `{"metadata":{"finalizers":["example.com/hold"]}}`)
		q.delete(s.object())
		q.eventually("the runner ends", func() error { return noPods(s) })
		q.eventually("the token is gone", func() error {
			return q.absent(workload.TokenSecretName(s.name), &corev1.Secret{})
		})
		q.patch(s.object(), `{"metadata":{"finalizers":null}}`)
	})
	t.Run("a copy of the Job", func(t *testing.T) {
		q := p.in(t)
		s := q.session("copied", "hang")
		s.reaches(running)
		one := q.jobOf(s)
		other := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: "my-debug", Labels: one.Labels, Annotations: one.Annotations},
			Spec:       batchv1.JobSpec{Template: one.Spec.Template},
		}
		for _, label := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
			delete(other.Labels, label)
			delete(other.Spec.Template.Labels, label)
		}
		// Its pod is none of the session's, else two of them would be alive, as a person wanted.
		delete(other.Spec.Template.Labels, v1alpha1.LabelSession)
		q.create(other)
		s.stop()
		s.reaches(stopped)
		q.get("my-debug", &batchv1.Job{})
	})
	t.Run("a request that asks for nothing", func(t *testing.T) {
		q := p.in(t)
		s := q.session("typo", "hang", asked("stopped"))
		s.reaches(running)
		q.eventually("it is taken away and told", func() error {
			if _, there := s.latest().Annotations[v1alpha1.AnnotationDesiredPhase]; there {
				return errors.New("the annotation is still there")
			}
			return nil
		})
	})
}

// jobOf is the Job of the session's first run.
func (p *project) jobOf(s *session) *batchv1.Job {
	job := &batchv1.Job{}
	p.get(workload.JobName(s.name, 1), job)
	return job
}

// pods lists the pods of a session that are there now.
func (p *project) pods(s *session) []corev1.Pod {
	pods := &corev1.PodList{}
	if err := suite.admin.List(p.t.Context(), pods, client.InNamespace(p.name), client.MatchingLabels{v1alpha1.LabelSession: s.name}); err != nil {
		p.t.Fatal(err)
	}
	return pods.Items
}

func noPods(s *session) error {
	if left := s.project.pods(s); len(left) > 0 {
		return fmt.Errorf("%d pods are left", len(left))
	}
	return nil
}
