package checks

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// mark is what must be the same after an upgrade: the run, not only the session.
type mark struct {
	session, job, pod string
	run               int64
	restarts          int32
	started           time.Time
}

// sessionsSurviveUpgrade replaces all pods of the operator as an upgrade does, while a session runs
// and another has ended. The run must be the very same afterwards, and obey the new operator.
func sessionsSurviveUpgrade(ctx context.Context, s *Scene) error {
	session, ended := s.waiting(ctx, "long-running"), s.waiting(ctx, "ended")
	for _, one := range []*v1alpha1.AgenticSession{session, ended} {
		if err := s.Project.Start(ctx, one); err != nil {
			return err
		}
		if _, err := s.Project.Reaches(ctx, one.Name, v1alpha1.PhaseRunning); err != nil {
			return err
		}
	}
	if err := s.Project.Ask(ctx, ended.Name, v1alpha1.DesiredStopped); err != nil {
		return err
	}
	stopped, err := s.Project.Reaches(ctx, ended.Name, v1alpha1.PhaseStopped)
	if err != nil {
		return err
	}
	before, err := s.mark(ctx, session.Name)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := s.Operator.Restart(ctx, s.config); err != nil {
		return err
	}
	s.Note("all pods of the operator were replaced in %s", time.Since(begun).Round(time.Second))
	// Only the new operator can do this, so it has seen the session by then.
	if err := s.touched(ctx, session.Name); err != nil {
		return err
	}
	after, err := s.mark(ctx, session.Name)
	if err != nil {
		return err
	}
	if before != after {
		s.Fail("the upgrade changed the run of session %s: before %+v, after %+v", session.Name, before, after)
	}
	s.Note("session %s kept Job %s and pod %s", session.Name, after.job, after.pod)
	if still, err := s.Project.Reaches(ctx, ended.Name, v1alpha1.PhaseStopped); err != nil || still.Status.Run != stopped.Status.Run {
		s.Fail("session %s, which had ended, is not as it was: %v", ended.Name, err)
	}
	if err := s.Project.Ask(ctx, session.Name, v1alpha1.DesiredStopped); err != nil {
		return err
	}
	if _, err = s.Project.Reaches(ctx, session.Name, v1alpha1.PhaseStopped); err != nil {
		return fmt.Errorf("the new operator does not stop the session of the old one: %w", err)
	}
	return nil
}

// touched edits the session and waits until the operator has taken notice.
func (s *Scene) touched(ctx context.Context, name string) error {
	session, err := s.Project.Reaches(ctx, name, v1alpha1.PhaseRunning)
	if err != nil {
		return err
	}
	was := client.MergeFrom(session.DeepCopy())
	session.Spec.DisplayName += " after the upgrade"
	if err := s.client.Patch(ctx, session, was); err != nil {
		return fmt.Errorf("editing session %s: %w", name, err)
	}
	return s.Project.Observed(ctx, name, session.Generation)
}

func (s *Scene) mark(ctx context.Context, name string) (mark, error) {
	session, err := s.Project.Reaches(ctx, name, v1alpha1.PhaseRunning)
	if err != nil {
		return mark{}, err
	}
	m := mark{session: string(session.UID), run: session.Status.Run, started: session.Status.StartTime.UTC()}
	job := &batchv1.Job{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.Project.Name, Name: session.Status.JobName}, job); err != nil {
		return mark{}, fmt.Errorf("reading the Job of session %s: %w", name, err)
	}
	m.job = string(job.UID)
	pods := &corev1.PodList{}
	if err := s.client.List(ctx, pods, client.InNamespace(s.Project.Name), client.MatchingLabels{v1alpha1.LabelSession: name}); err != nil {
		return mark{}, fmt.Errorf("listing the pods of session %s: %w", name, err)
	}
	if len(pods.Items) != 1 {
		return mark{}, fmt.Errorf("session %s has %d pods, want one", name, len(pods.Items))
	}
	m.pod = string(pods.Items[0].UID)
	for _, c := range pods.Items[0].Status.ContainerStatuses {
		m.restarts += c.RestartCount
	}
	return m, nil
}
