package checks

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/wait"
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
	// The session may know before the Job's controller does.
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	job := &batchv1.Job{}
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKey{Namespace: s.Project.Name, Name: done.Status.JobName}, job)
		return job.Status.Succeeded == 1, err
	})
	if err != nil {
		return fmt.Errorf("waiting until Job %s has succeeded: %w; its status is %+v", done.Status.JobName, err, job.Status)
	}
	if string(job.UID) != done.Status.JobUID {
		s.Fail("Job %s has UID %s, the session says %s", job.Name, job.UID, done.Status.JobUID)
	}
	return nil
}
