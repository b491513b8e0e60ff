package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig"
)

// prompt is the script of the demo's session: the reference runner obeys it instead of asking a
// language model.
const prompt = `Please add a line to the changelog of the repository.
write CHANGELOG.md Describe the first session
sleep 3s`

// patience is how long the demo's session may take.
const patience = 3 * time.Minute

// session creates a session and shows its phases until it ends.
func (d *demo) session(ctx context.Context) error {
	headline("3. A session")
	if err := d.cluster.Project(ctx, project); err != nil {
		return err
	}
	var repos []v1alpha1.Repo
	if d.cluster.Node == rig.NodeReal {
		if err := d.cluster.GitServer(ctx, project, repository); err != nil {
			return err
		}
		repos = []v1alpha1.Repo{{URL: rig.RepositoryURL(project, repository), AutoPush: true}}
		say("Repository: " + repos[0].URL)
	}
	s := &v1alpha1.AgenticSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: sessionName},
		Spec: v1alpha1.AgenticSessionSpec{
			DisplayName:   "First steps",
			InitialPrompt: prompt,
			UserContext:   &v1alpha1.UserContext{UserID: "demo", DisplayName: "Demo User"},
			Repos:         repos,
		},
	}
	if d.cluster.Node != rig.NodeReal {
		s.Spec.InitialPrompt += "\nexit 0"
	}
	say("Prompt:     " + strings.ReplaceAll(prompt, "\n", "\n            ") + "\n")
	created := time.Now()
	if err := d.cluster.Client.Create(ctx, s); err != nil {
		return fmt.Errorf("creating the session: %w", err)
	}
	fmt.Printf("  %8s  %-10s %-22s %s\n", "AFTER", "PHASE", "REASON", "MESSAGE")
	return d.follow(ctx, sessionName, created, in(v1alpha1.PhaseCompleted, 1))
}

// follow prints each change of a session that a person would want to see, until it is as wanted.
func (d *demo) follow(ctx context.Context, name string, since time.Time, wanted func(*v1alpha1.AgenticSession) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	events, err := d.cluster.Client.Watch(ctx, &v1alpha1.AgenticSessionList{}, client.InNamespace(project))
	if err != nil {
		return fmt.Errorf("watching the session: %w", err)
	}
	defer events.Stop()
	shown := ""
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return fmt.Errorf("the session is not there yet after %s; it was last seen as: %s", patience, shown)
			}
			now, ok := event.Object.(*v1alpha1.AgenticSession)
			if !ok || event.Type == watch.Deleted || now.Name != name {
				continue
			}
			if line := summary(now); line != shown {
				fmt.Printf("  %7.1fs  %s\n", time.Since(since).Seconds(), line)
				shown = line
			}
			if now.Status.Phase == v1alpha1.PhaseFailed {
				_, message := ready(now)
				return fmt.Errorf("the session failed: %s", message)
			}
			if wanted(now) {
				return nil
			}
		case <-d.ended():
			return errors.New("the operator ended before the session did")
		}
	}
}

// in is a session that is in a phase, in its n-th run.
func in(phase v1alpha1.Phase, run int64) func(*v1alpha1.AgenticSession) bool {
	return func(s *v1alpha1.AgenticSession) bool { return s.Status.Phase == phase && s.Status.Run == run }
}

// ended is closed when the operator runs as a program here and has ended.
func (d *demo) ended() <-chan struct{} {
	if d.process == nil {
		return nil
	}
	return d.process.Ended()
}

func summary(s *v1alpha1.AgenticSession) string {
	reason, message := ready(s)
	return fmt.Sprintf("%-10s %-22s %s", s.Status.Phase, reason, message)
}

func ready(s *v1alpha1.AgenticSession) (reason, message string) {
	for _, condition := range s.Status.Conditions {
		if condition.Type == v1alpha1.ConditionReady {
			return condition.Reason, condition.Message
		}
	}
	return v1alpha1.ReasonQueued, "not looked at yet"
}
