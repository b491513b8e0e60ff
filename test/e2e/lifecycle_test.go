//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig"
)

const (
	// soon is enough for a pod to start or end, long for one that has to be waited out.
	soon = time.Minute
	long = 2 * time.Minute
)

// A session clones a repository over the cluster's network, changes it, pushes its commit and
// leaves its report in the workspace.
func TestSuccess(t *testing.T) {
	t.Parallel()
	ns := project(t)
	if err := cluster.GitServer(t.Context(), ns, "sample"); err != nil {
		t.Fatal(err)
	}
	told := session(t, ns, "works", "write CHANGELOG.md Written by the session\nsleep 2s", func(s *v1alpha1.AgenticSession) {
		s.Spec.Repos = []v1alpha1.Repo{{URL: rig.RepositoryURL(ns, "sample"), AutoPush: true}}
	})
	s := told.reaches(t, v1alpha1.PhaseCompleted, long)
	told.went(t, v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning, v1alpha1.PhaseCompleted)
	if status, _, _ := condition(t, s, v1alpha1.ConditionCompleted); status != "True" {
		t.Errorf("condition Completed is %s", status)
	}
	commits, err := cluster.Commits(t.Context(), ns, "sample")
	if err != nil {
		t.Fatal(err)
	}
	if len(commits) != 2 || !strings.HasPrefix(commits[0].Message, "Written by the session") {
		t.Errorf("the git server has the commits %+v, want the session's on top of the first", commits)
	}
	if running := pods(t, ns, "works"); len(running) != 1 {
		t.Errorf("the session had %d pods, want exactly 1", len(running))
	}
}

// Each way to fail is told apart.
func TestFailure(t *testing.T) {
	t.Parallel()
	ns := project(t)
	cases := []struct{ name, prompt, reason, message string }{
		{"error", "sleep 3s\nexit 1", v1alpha1.ReasonRunnerFailed, "exit code 1"},
		{"early", "exit 7", v1alpha1.ReasonRunnerFailed, "exit code 7"},
		{"crash", "sleep 3s\ncrash", v1alpha1.ReasonRunnerFailed, "exit code 139"},
	}
	stories := make([]*story, len(cases))
	for i, c := range cases {
		stories[i] = session(t, ns, c.name, c.prompt, nil)
	}
	for i, c := range cases {
		s := stories[i].reaches(t, v1alpha1.PhaseFailed, long)
		status, reason, message := condition(t, s, v1alpha1.ConditionFailed)
		if status != "True" || reason != c.reason || !strings.Contains(message, c.message) {
			t.Errorf("%s: condition Failed is %s, %s, %q; want True, %s, ...%s...", c.name, status, reason, message, c.reason, c.message)
		}
	}
}

// A run that reaches its timeout ends as such, also when the runner is deaf to SIGTERM and has to be
// killed at the end of its grace period, and leaves nothing that would keep the next run from starting.
func TestTimeout(t *testing.T) {
	t.Parallel()
	ns := project(t)
	told := session(t, ns, "slow", "ignore-sigterm\nhang", func(s *v1alpha1.AgenticSession) {
		seconds := int64(5)
		s.Spec.Timeout = &seconds
	})
	s := told.reaches(t, v1alpha1.PhaseFailed, long+soon)
	if _, reason, message := condition(t, s, v1alpha1.ConditionFailed); reason != v1alpha1.ReasonTimeout {
		t.Errorf("the reason is %s (%s), want %s", reason, message, v1alpha1.ReasonTimeout)
	}
	// A type of runner has a grace period of 60 s unless it says otherwise.
	if ran := s.Status.CompletionTime.Sub(s.Status.StartTime.Time); ran < 60*time.Second || ran > 95*time.Second {
		t.Errorf("the run took %s, want about 65 s: 5 s until it is told to end, 60 s until it is killed", ran)
	}
	ask(t, ns, "slow", v1alpha1.DesiredRunning)
	told.until(t, long, "running again", func(s *v1alpha1.AgenticSession) bool {
		return s.Status.Run == 2 && s.Status.Phase == v1alpha1.PhaseRunning
	})
}

// A stop ends as Stopped, never as Failed, though the runner is killed by it; a restart goes on in
// the same workspace as a new run, with the prompt not carried out again.
func TestStopAndRestart(t *testing.T) {
	t.Parallel()
	ns := project(t)
	told := session(t, ns, "long", "hang", nil)
	told.reaches(t, v1alpha1.PhaseRunning, long)
	ask(t, ns, "long", v1alpha1.DesiredStopped)
	s := told.reaches(t, v1alpha1.PhaseStopped, long)
	if s.Status.StoppedReason != v1alpha1.StoppedByUser {
		t.Errorf("stoppedReason is %q, want user", s.Status.StoppedReason)
	}
	if left := pods(t, ns, "long"); len(left) != 0 {
		t.Errorf("%d pods are left after the stop", len(left))
	}
	ask(t, ns, "long", v1alpha1.DesiredRunning)
	told.until(t, long, "running again", func(s *v1alpha1.AgenticSession) bool {
		return s.Status.Run == 2 && s.Status.Phase == v1alpha1.PhaseRunning
	})
	told.went(t, v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning, v1alpha1.PhaseStopping,
		v1alpha1.PhaseStopped, v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning)
	text, err := cluster.RunKubectl(t.Context(), "-n", ns, "logs", "job/long-run-2")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "resume") {
		t.Errorf("the second run does not know that it is one; its log is:\n%s", text)
	}
}
