package session_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// Work that somebody interrupted is not taken up again by another pod of the same run.
func TestCase9InterruptedWorkIsLost(t *testing.T) {
	yes, none, one := true, int32(0), int32(1)
	for name, interrupt := range map[string]change{
		"suspended":        func(w *session.World) { w.Job.Spec.Suspend = &yes },
		"no pods wanted":   func(w *session.World) { w.Job.Spec.Parallelism = &none },
		"another pod runs": func(w *session.World) { w.Session.Status.PodName = "session-a-run-1-other" },
	} {
		w := inPhase(v1alpha1.PhaseRunning, recordedJob, pod(runnerUp(true)), interrupt)
		if d := session.Decide(w); d.To != v1alpha1.PhaseFailed || d.Reason != v1alpha1.ReasonRunnerLost {
			t.Errorf("%s: the decision is %+v, want Failed, RunnerLost", name, d)
		}
		w.Session.Status.Phase = v1alpha1.PhaseFailed
		if !w.RemoveJob(w.Job) {
			t.Errorf("%s: the Job stays and would go on", name)
		}
	}
	w := inPhase(v1alpha1.PhaseRunning, recordedJob, pod(runnerUp(true)), func(w *session.World) { w.Job.Spec.Parallelism = &one })
	if d := session.Decide(w); d.Moves() {
		t.Errorf("an ordinary Job: the decision is %+v, want to stay", d)
	}
}

func TestStoppingNamesWhoKeepsAnObject(t *testing.T) {
	w := inPhase(v1alpha1.PhaseStopping, recordedJob, pod(runnerUp(true), podDeleted, func(p *corev1.Pod) {
		p.Finalizers = []string{"batch.kubernetes.io/job-tracking", "example.com/hold"}
	}))
	if d := session.Decide(w); !strings.Contains(d.Message, "example.com/hold") || strings.Contains(d.Message, "job-tracking") {
		t.Errorf("the message is %q, want it to name example.com/hold alone", d.Message)
	}
}

// A message as long as everything that went wrong is refused by the API server, and the whole status
// with it.
func TestMessagesAreShort(t *testing.T) {
	w := inPhase(v1alpha1.PhasePending, func(w *session.World) { w.Missing = []string{strings.Repeat("ä", 20000)} })
	for _, c := range after(w).Conditions {
		if len(c.Message) > 4200 || strings.ContainsRune(c.Message, '\uFFFD') {
			t.Errorf("condition %s has a message of %d bytes, or one that is cut within a letter", c.Type, len(c.Message))
		}
	}
}

// What the runner is told to remove is what is taken out of the status, whatever its URL says.
func TestARepositoryIsRemovedByItsName(t *testing.T) {
	w := inPhase(v1alpha1.PhaseRunning, recordedJob, pod(runnerUp(true), func(p *corev1.Pod) { p.Status.PodIP = "192.0.2.1" }))
	w.Session.Spec.Repos = []v1alpha1.Repo{{URL: "https://example.com/x/bar.git", Branch: "main"}}
	w.Session.Status.ReconciledRepos = []v1alpha1.ReconciledRepo{
		{URL: "https://example.com/x/bar.git", Name: "bar", Branch: "main", Status: "Ready"},
		{URL: "https://example.com/y/bar.git", Name: "foo", Branch: "main", Status: "Ready"},
	}
	calls := w.Calls()
	if len(calls) != 1 || calls[0].Path != "/repos/remove" || calls[0].Name != "foo" {
		t.Fatalf("the calls are %+v, want one that removes foo", calls)
	}
	w.Told = []session.CallResult{{Call: calls[0]}}
	status := after(w)
	w = storing(w, status)
	w.Told = nil
	if calls := w.Calls(); len(calls) != 0 {
		t.Errorf("after that the runner is told %+v", calls)
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReposReconciled); c.Status != "True" {
		t.Errorf("condition ReposReconciled is %+v", c)
	}
}
