package checks

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// sessionCompletes runs the session that the bundle shows to users as its example, under the rights
// that the bundle gives the operator.
func sessionCompletes(ctx context.Context, s *Scene) error {
	session := s.example(ctx)
	if err := s.Project.Start(ctx, session); err != nil {
		return err
	}
	done, err := s.Project.Reaches(ctx, session.Name, v1alpha1.PhaseCompleted)
	if err != nil {
		return err
	}
	if done.Status.StartTime == nil || done.Status.CompletionTime == nil {
		s.Fail("session %s is Completed without a start and an end: %+v", session.Name, done.Status)
	} else {
		s.Note("session %s reached Completed; its runner took %s", session.Name, done.Status.CompletionTime.Sub(done.Status.StartTime.Time).Round(time.Second))
	}
	if done.Status.Run != 1 {
		s.Fail("session %s took %d runs, want 1", session.Name, done.Status.Run)
	}
	job := &batchv1.Job{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.Project.Name, Name: done.Status.JobName}, job); err != nil {
		return err
	}
	if string(job.UID) != done.Status.JobUID || job.Status.Succeeded != 1 {
		s.Fail("Job %s has UID %s and %d pods that succeeded, the session says UID %s; want the same, and 1", job.Name, job.UID, job.Status.Succeeded, done.Status.JobUID)
	}
	return nil
}
