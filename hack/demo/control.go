package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig"
)

// longName is the session that the demo gives a repository while it runs, stops and starts again.
const longName = "long-running"

// control shows what a user may ask of a session that runs.
func (d *demo) control(ctx context.Context) error {
	headline("5. A session that goes on")
	s := &v1alpha1.AgenticSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: longName},
		Spec:       v1alpha1.AgenticSessionSpec{InitialPrompt: "hang"},
	}
	if err := d.cluster.Client.Create(ctx, s); err != nil {
		return fmt.Errorf("creating the session: %w", err)
	}
	if err := d.follow(ctx, longName, time.Now(), in(v1alpha1.PhaseRunning, 1)); err != nil {
		return err
	}
	if d.cluster.Node == rig.NodeReal {
		url := rig.RepositoryURL(project, repository)
		say("\nA repository is added to its spec while it runs:")
		if err := d.patch(ctx, fmt.Sprintf(`{"spec":{"repos":[{"url":%q}]}}`, url)); err != nil {
			return err
		}
		if err := d.follow(ctx, longName, time.Now(), hasRepository); err != nil {
			return err
		}
		say("  the runner has cloned " + url)
	}
	for _, step := range []struct {
		says, asks string
		wanted     func(*v1alpha1.AgenticSession) bool
	}{
		{"It is told to stop:", v1alpha1.DesiredStopped, in(v1alpha1.PhaseStopped, 1)},
		{"It is started again, as its second run, in the same workspace:", v1alpha1.DesiredRunning, in(v1alpha1.PhaseRunning, 2)},
	} {
		say("\n" + step.says)
		if err := d.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationDesiredPhase, step.asks)); err != nil {
			return err
		}
		if err := d.follow(ctx, longName, time.Now(), step.wanted); err != nil {
			return err
		}
	}
	return nil
}

// hasRepository is a session whose runner has taken over its first repository.
func hasRepository(s *v1alpha1.AgenticSession) bool {
	return len(s.Status.ReconciledRepos) == 1 && s.Status.ReconciledRepos[0].Status == "Ready"
}

func (d *demo) patch(ctx context.Context, patch string) error {
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: longName}}
	if err := d.cluster.Client.Patch(ctx, s, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("changing the session: %w", err)
	}
	return nil
}
