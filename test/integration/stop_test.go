package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestStop: a stop in each phase ends as Stopped, or is no stop at all. (Case 6.)
func TestStop(t *testing.T) {
	p := share(t)
	t.Run("running", func(t *testing.T) {
		s := p.in(t).session("running", "hang")
		s.reaches(running)
		s.patch(s.object(), `{"metadata":{"annotations":{"ambient-code.io/desired-phase":"Stopped","ambient-code.io/stop-requested-at":"2026-01-01T00:00:00Z","team/x":"1"}}}`)
		object := s.tells(stopped, v1alpha1.ReasonStoppedByUser)
		s.expectHistory(pending, creating, running, stopping, stopped)
		if object.Status.StoppedReason != v1alpha1.StoppedByUser || object.Status.CompletionTime == nil {
			t.Errorf("stoppedReason is %q, completionTime %v", object.Status.StoppedReason, object.Status.CompletionTime)
		}
		noneLeft(t, s)
		object = s.requestsConsumed()
		if object.Annotations["team/x"] != "1" {
			t.Error("an annotation of the user's is gone")
		}
	})
	t.Run("pending", func(t *testing.T) {
		q := emptyProject(t, p.operator, map[string]string{v1alpha1.LabelManaged: "true"})
		s := q.session("waiting", "hang")
		s.tells(pending, v1alpha1.ReasonPrerequisiteMissing)
		s.stop()
		s.reaches(stopped)
		s.requestsConsumed()
		if jobs := s.jobs(); len(jobs) > 0 {
			t.Error("a Job was made")
		}
		q.createRunnerSecret()
		q.settles(time.Second)
		s.expectHistory(pending, stopped)
	})
	t.Run("born-stopped", func(t *testing.T) {
		s := p.in(t).session("born-stopped", "hang", asked("Stopped"))
		s.reaches(stopped)
		s.requestsConsumed()
		s.expectHistory(pending, stopped)
		if jobs := s.jobs(); len(jobs) > 0 {
			t.Error("a Job was made")
		}
	})
	t.Run("creating-without-pod", func(t *testing.T) {
		q := newProject(t, p.operator)
		q.create(quota(q, "pods"))
		s := q.session("refused", "hang")
		s.tells(creating, v1alpha1.ReasonQuotaExceeded)
		s.stop()
		s.tells(stopped, v1alpha1.ReasonStoppedByUser)
		noneLeft(t, s)
		s.never(failure)
	})
	t.Run("creating-with-pod", func(t *testing.T) {
		s := p.in(t).session("not-ready", "never-ready\nhang")
		s.pod()
		s.stop()
		s.tells(stopped, v1alpha1.ReasonStoppedByUser)
		noneLeft(t, s)
		s.never(failure)
	})
	for phase, script := range map[v1alpha1.Phase]string{completed: "exit 0", failure: "exit 1"} {
		t.Run(strings.ToLower(string(phase)), func(t *testing.T) {
			q := newProject(t, p.operator)
			s := q.session("over", script)
			s.reaches(phase)
			s.stop()
			s.requestsConsumed()
			q.settles(time.Second)
			s.expectHistory(s.history()...)
			if got := s.latest().Status.Phase; got != phase {
				t.Errorf("a stop made a session that was %s %s", phase, got)
			}
		})
	}
}

// in is the project in a subtest.
func (p *project) in(t *testing.T) *project {
	sub := *p
	sub.t, sub.ctx = t, t.Context()
	return &sub
}

// requestsConsumed waits until the request is no longer in the annotations.
func (s *session) requestsConsumed() *v1alpha1.AgenticSession {
	s.t.Helper()
	return s.until("has its request removed", func(object *v1alpha1.AgenticSession) error {
		for _, key := range []string{v1alpha1.AnnotationDesiredPhase, v1alpha1.AnnotationStopRequestedAt, v1alpha1.AnnotationStartRequestedAt} {
			if value, there := object.Annotations[key]; there {
				return fmt.Errorf("%s is still %q", key, value)
			}
		}
		return nil
	})
}

// noneLeft wants no Job, no pod and no token of a stopped session. (Case 21.)
func noneLeft(t *testing.T, s *session) {
	t.Helper()
	jobs, pods := &batchv1.JobList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{jobs, pods} {
		if err := suite.admin.List(s.ctx, list, client.InNamespace(s.project.name), client.MatchingLabels{"agentic-session": s.name}); err != nil {
			t.Fatal(err)
		}
	}
	if len(jobs.Items)+len(pods.Items) > 0 {
		t.Errorf("session %s is over and has %d Jobs and %d pods", s.name, len(jobs.Items), len(pods.Items))
	}
	s.eventually("the token Secret is gone", func() error { return s.absent("ambient-runner-token-"+s.name, &corev1.Secret{}) })
}

// TestRestart: from each terminal phase a new run begins, with a new Job, a new token and the same
// workspace.
func TestRestart(t *testing.T) {
	p := share(t)
	for _, c := range []struct {
		name  string
		end   func(*session)
		phase v1alpha1.Phase
	}{
		{"was-stopped", (*session).stop, stopped},
		{"was-completed", func(s *session) { s.does("exit 0") }, completed},
		{"was-failed", func(s *session) { s.does("exit 1") }, failure},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := p.in(t).session(c.name, "hang")
			s.reaches(running)
			// Taken back with the end of the run, so it has to be read before.
			token, claim := s.runnerSecret(), &corev1.PersistentVolumeClaim{}
			c.end(s)
			before := s.reaches(c.phase)
			s.get("ambient-workspace-"+s.name, claim)
			s.patch(s.object(), `{"metadata":{"annotations":{"ambient-code.io/desired-phase":"Running","ambient-code.io/start-requested-at":"2026-01-01T00:00:00Z"}}}`)
			after := s.reachesInRun(2, running)
			s.requestsConsumed()
			if after.Status.JobUID == before.Status.JobUID || after.Status.CompletionTime != nil || after.Status.StoppedReason != "" {
				t.Errorf("the second run has the status of the first: %+v", after.Status)
			}
			again, sameClaim := s.runnerSecret(), &corev1.PersistentVolumeClaim{}
			s.get("ambient-workspace-"+s.name, sameClaim)
			if claim.UID != sameClaim.UID {
				t.Error("the workspace is another one")
			}
			for _, key := range []string{"k8s-token", "agui-token"} {
				first, second := string(token.Data[key]), string(again.Data[key])
				if first == "" || second == "" || first == second {
					t.Errorf("%s has %d bytes in the first run and %d in the second, the same: %t", key, len(first), len(second), first == second)
				}
			}
			resumed := false
			for _, e := range s.latestPod().Spec.Containers[0].Env {
				resumed = resumed || e.Name == "IS_RESUME" && e.Value == "true"
			}
			if !resumed {
				t.Error("the second run is not told that it resumes")
			}
			if most := mostAtOnce(s.pods()); most > 1 {
				t.Errorf("%d pods were alive at once", most)
			}
		})
	}
	t.Run("prompt-again", func(t *testing.T) {
		s := p.in(t).session("prompt-again", "exit 0")
		s.reaches(completed)
		s.patch(s.object(), `{"metadata":{"annotations":{"ambient-code.io/desired-phase":"Running","ambient-code.io/force-execute-prompt":"true"}}}`)
		s.reachesInRun(2, completed)
		for _, e := range s.latestPod().Spec.Containers[0].Env {
			if e.Name == "IS_RESUME" {
				t.Error("a run that is to use its prompt again is told that it resumes")
			}
		}
		s.until("has force-execute-prompt removed", func(object *v1alpha1.AgenticSession) error {
			if _, there := object.Annotations[v1alpha1.AnnotationForceExecutePrompt]; there {
				return errors.New("it is still there: the next run would use the prompt again")
			}
			return nil
		})
	})
}

// latestPod is the pod that was made last, whether it is there or not.
func (s *session) latestPod() *corev1.Pod {
	s.t.Helper()
	pods := s.pods()
	if len(pods) == 0 {
		s.t.Fatalf("session %s has no pod", s.name)
	}
	newest := pods[0].Object
	for _, m := range pods {
		if m.Object.CreationTimestamp.After(newest.CreationTimestamp.Time) {
			newest = m.Object
		}
	}
	return newest
}
