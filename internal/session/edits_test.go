package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

const host = "https://git.example.com/team/"

func repo(name, branch string) v1alpha1.Repo {
	return v1alpha1.Repo{URL: host + name + ".git", Branch: branch}
}

func wants(repos ...v1alpha1.Repo) change {
	return func(w *session.World) { w.Session.Spec.Repos = repos }
}

func wantsWorkflow(branch string) change {
	return func(w *session.World) {
		w.Session.Spec.ActiveWorkflow = &v1alpha1.Workflow{GitURL: host + "flows.git", Branch: branch, Path: "review"}
	}
}

func hasRepo(name, branch, status string) change {
	return func(w *session.World) {
		w.Session.Status.ReconciledRepos = append(w.Session.Status.ReconciledRepos, v1alpha1.ReconciledRepo{
			URL: host + name + ".git", Name: name, Branch: branch, Status: status, ClonedAt: ago(time.Minute)})
	}
}

func hasWorkflow(branch, status string) change {
	return func(w *session.World) {
		w.Session.Status.ReconciledWorkflow = &v1alpha1.ReconciledWorkflow{GitURL: host + "flows.git", Branch: branch, Path: "review", Status: status}
	}
}

func podIP(p *corev1.Pod) { p.Status.PodIP = "10.0.0.7" }

// reachable is a session whose runner can be called.
func reachable(changes ...change) *session.World {
	return inPhase(v1alpha1.PhaseRunning, append([]change{furnished, recordedJob, pod(runnerUp(true), podIP)}, changes...)...)
}

// told writes calls in short: path and body.
func told(t *testing.T, w *session.World) []string {
	t.Helper()
	calls := []string{}
	for _, call := range w.Calls() {
		body, err := json.Marshal(call.Body)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, strings.ReplaceAll(call.Path+" "+string(body), host, ""))
	}
	return calls
}

func TestCallsTellARunnerWhatWasEdited(t *testing.T) {
	main := repo("app", "main")
	const (
		addApp  = `/repos/add {"branch":"main","name":"app","url":"app.git"}`
		addNext = `/repos/add {"branch":"next","name":"app","url":"app.git"}`
		dropApp = `/repos/remove {"name":"app"}`
		flow    = `/workflow {"branch":"main","gitUrl":"flows.git","path":"review"}`
	)
	for _, c := range []struct {
		name  string
		world *session.World
		want  []string
	}{
		{"nothing wanted, nothing there", reachable(), nil},
		{"all there", reachable(wants(main), hasRepo("app", "main", "Ready"), wantsWorkflow("main"), hasWorkflow("main", "Active")), nil},
		{"a repository more", reachable(wants(main)), []string{addApp}},
		{"a repository less", reachable(hasRepo("app", "main", "Ready")), []string{dropApp}},
		{"another branch", reachable(wants(repo("app", "next")), hasRepo("app", "main", "Ready")), []string{addNext}},
		{"another URL of the same name", reachable(wants(main), hasRepo("app", "main", "Ready"), func(w *session.World) {
			w.Session.Status.ReconciledRepos[0].URL = "https://other.example.com/app.git"
		}), []string{addApp}},
		{"a push switched on is no call", reachable(wants(v1alpha1.Repo{URL: main.URL, Branch: "main", AutoPush: true}), hasRepo("app", "main", "Ready")), nil},
		{"one that failed is tried again", reachable(wants(main), hasRepo("app", "main", "Failed")), []string{addApp}},
		{"removals come first", reachable(wants(main), hasRepo("old", "main", "Ready")), []string{`/repos/remove {"name":"old"}`, addApp}},
		{"a workflow", reachable(wantsWorkflow("main")), []string{flow}},
		{"another branch of the workflow", reachable(wantsWorkflow("main"), hasWorkflow("next", "Active")), []string{flow}},
		{"a workflow that failed is tried again", reachable(wantsWorkflow("main"), hasWorkflow("main", "Failed")), []string{flow}},
		{"a workflow less is no call", reachable(hasWorkflow("main", "Active")), nil},
		{"both", reachable(wants(main), wantsWorkflow("main")), []string{addApp, flow}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := told(t, c.world); !slices.Equal(got, c.want) {
				t.Errorf("the runner is told %q, want %q", got, c.want)
			}
		})
	}
}

func TestCase15ARunnerIsCalledOnlyWhenItIsUp(t *testing.T) {
	edited := wants(repo("app", "main"))
	for name, w := range map[string]*session.World{
		"not ready":  inPhase(v1alpha1.PhaseRunning, recordedJob, edited, pod(runnerUp(false), podIP)),
		"no address": inPhase(v1alpha1.PhaseRunning, recordedJob, edited, pod(runnerUp(true))),
		"no pod":     inPhase(v1alpha1.PhaseRunning, recordedJob, edited, job),
		"Creating":   inPhase(v1alpha1.PhaseCreating, recordedJob, edited, pod(runnerUp(true), podIP)),
		"Stopping":   inPhase(v1alpha1.PhaseStopping, recordedJob, edited, pod(runnerUp(true), podIP)),
		"Completed":  inPhase(v1alpha1.PhaseCompleted, recordedJob, edited, pod(runnerUp(true), podIP)),
	} {
		if calls := told(t, w); len(calls) > 0 {
			t.Errorf("%s: the runner is told %q", name, calls)
		}
	}
}

// answered is what came of all calls.
func answered(err error) change {
	return func(w *session.World) {
		for _, call := range w.Calls() {
			w.Told = append(w.Told, session.CallResult{Call: call, Err: err})
		}
	}
}

func TestWhatTheRunnerTookOverIsReported(t *testing.T) {
	w := reachable(wants(repo("app", "next"), repo("docs", "main")), hasRepo("old", "main", "Ready"), hasRepo("app", "main", "Ready"), wantsWorkflow("main"), answered(nil))
	status := after(w)
	var repos []string
	for _, r := range status.ReconciledRepos {
		repos = append(repos, fmt.Sprint(strings.TrimPrefix(r.URL, host), " ", r.Name, " ", r.Branch, " ", r.Status))
		if r.ClonedAt == nil || !r.ClonedAt.Equal(ago(0)) {
			t.Errorf("%s was cloned at %v, want now", r.Name, r.ClonedAt)
		}
	}
	if want := []string{"app.git app next Ready", "docs.git docs main Ready"}; !slices.Equal(repos, want) {
		t.Errorf("the repositories are %q, want %q", repos, want)
	}
	if flow := status.ReconciledWorkflow; flow == nil || flow.Status != "Active" || flow.Branch != "main" || flow.AppliedAt == nil {
		t.Errorf("the workflow is %+v", flow)
	}
	for _, kind := range edits {
		if c := meta.FindStatusCondition(status.Conditions, kind); c.Status != metav1.ConditionTrue {
			t.Errorf("%s is %s: %s", kind, c.Status, c.Message)
		}
	}
	next := storing(w, status)
	if calls := told(t, next); len(calls) > 0 {
		t.Errorf("it is told again: %q", calls)
	}
}

var edits = []string{v1alpha1.ConditionReposReconciled, v1alpha1.ConditionWorkflowReconciled, v1alpha1.ConditionReconciled}

func TestWhatTheRunnerDidNotTakeOverIsReportedAndTriedAgain(t *testing.T) {
	w := reachable(wants(repo("app", "next")), hasRepo("old", "main", "Ready"), hasRepo("app", "main", "Ready"), wantsWorkflow("main"))
	before := told(t, w)
	status := after(with(w, answered(errors.New("it answered 500"))))
	for _, r := range status.ReconciledRepos {
		want := map[string]string{"old": "Ready", "app": "Failed"}[r.Name]
		if r.Status != want {
			t.Errorf("repository %s is %s, want %s", r.Name, r.Status, want)
		}
	}
	if flow := status.ReconciledWorkflow; flow == nil || flow.Status != "Failed" || flow.AppliedAt != nil {
		t.Errorf("the workflow is %+v", flow)
	}
	for _, kind := range edits {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonRunnerCallFailed || !strings.Contains(c.Message, "it answered 500") || strings.Contains(c.Message, "\n") {
			t.Errorf("%s is %s with %s: %q", kind, c.Status, c.Reason, c.Message)
		}
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); c.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %s: the runner is up all the same", c.Status)
	}
	next := storing(w, status)
	next.Told = nil
	if again := told(t, next); !slices.Equal(again, before) {
		t.Errorf("it is told %q, want once more %q", again, before)
	}
}

func jobAnnotation(key, value string) change {
	return func(w *session.World) {
		if w.Job.Annotations == nil {
			w.Job.Annotations = map[string]string{}
		}
		w.Job.Annotations[key] = value
	}
}

func TestARunBeginsWithWhatItsJobWasMadeOf(t *testing.T) {
	starting := func(changes ...change) *session.World {
		return inPhase(v1alpha1.PhaseCreating, append([]change{furnished, pod(runnerUp(true), podIP)}, changes...)...)
	}
	w := starting(
		wants(repo("app", "main"), repo("docs", "main")), wantsWorkflow("main"), hasRepo("stale", "main", "Ready"),
		jobAnnotation(v1alpha1.AnnotationRunRepos, `[{"url":"`+host+`app.git","branch":"main"}]`),
		jobAnnotation(v1alpha1.AnnotationRunWorkflow, `{"gitUrl":"`+host+`flows.git","branch":"main","path":"review"}`))
	status := after(w)
	if status.Phase != v1alpha1.PhaseRunning || len(status.ReconciledRepos) != 1 || status.ReconciledRepos[0].Name != "app" || status.ReconciledRepos[0].Status != "Ready" {
		t.Errorf("in %s the runner has %+v", status.Phase, status.ReconciledRepos)
	}
	if flow := status.ReconciledWorkflow; flow == nil || flow.Status != "Active" || flow.Path != "review" {
		t.Errorf("the workflow is %+v", flow)
	}
	calls := told(t, storing(w, status))
	if want := []string{`/repos/add {"branch":"main","name":"docs","url":"docs.git"}`}; !slices.Equal(calls, want) {
		t.Errorf("what was edited before the runner was up: it is told %q, want %q", calls, want)
	}
	old := after(starting(hasRepo("stale", "main", "Ready"), hasWorkflow("main", "Active")))
	if old.ReconciledRepos != nil || old.ReconciledWorkflow != nil {
		t.Errorf("case 50: of a Job that does not say, the runner has %+v, %+v", old.ReconciledRepos, old.ReconciledWorkflow)
	}
}

func TestCase27AnEditThatWaitsForTheNextStart(t *testing.T) {
	spec := func(change func(*v1alpha1.AgenticSessionSpec)) change {
		return func(w *session.World) {
			jobAnnotation(v1alpha1.AnnotationRunSpec, session.RunSpec(w.Session))(w)
			change(&w.Session.Spec)
		}
	}
	timeout := int64(7)
	for _, c := range []struct {
		name  string
		world *session.World
		waits bool
	}{
		{"no edit", reachable(spec(func(*v1alpha1.AgenticSessionSpec) {})), false},
		{"prompt", reachable(spec(func(s *v1alpha1.AgenticSessionSpec) { s.InitialPrompt = "another" })), true},
		{"timeout", reachable(spec(func(s *v1alpha1.AgenticSessionSpec) { s.Timeout = &timeout })), true},
		{"model", reachable(spec(func(s *v1alpha1.AgenticSessionSpec) { s.LLMSettings.Model = "another" })), true},
		{"variables", reachable(spec(func(s *v1alpha1.AgenticSessionSpec) {
			s.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"A": "b"}
		})), true},
		{"prompt, while Creating", inPhase(v1alpha1.PhaseCreating, job, spec(func(s *v1alpha1.AgenticSessionSpec) { s.InitialPrompt = "another" })), true},
		{"prompt, once over", inPhase(v1alpha1.PhaseCompleted, job, spec(func(s *v1alpha1.AgenticSessionSpec) { s.InitialPrompt = "another" })), false},
		{"inactivity timeout takes effect at once", reachable(spec(func(s *v1alpha1.AgenticSessionSpec) { s.InactivityTimeout = &timeout })), false},
		{"display name is for people", reachable(spec(func(s *v1alpha1.AgenticSessionSpec) { s.DisplayName = "another" })), false},
		{"case 50: a Job that does not say", reachable(), false},
		{"a workflow less", reachable(hasWorkflow("main", "Active")), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := meta.FindStatusCondition(after(c.world).Conditions, v1alpha1.ConditionReconciled)
			if waits := got.Status == metav1.ConditionFalse && got.Reason == v1alpha1.ReasonSpecChanged; waits != c.waits {
				t.Errorf("Reconciled is %s with %s (%s); want an edit that waits: %t", got.Status, got.Reason, got.Message, c.waits)
			}
		})
	}
}

// TestNoCallIsMadeForTheWorkspaceItself: a URL that ends in no name is told, and the runner is asked
// neither to clone it nor to remove what has no name.
func TestNoCallIsMadeForTheWorkspaceItself(t *testing.T) {
	for _, url := range []string{"https://git.example.com/.git", "https://git.example.com/team/..", "https://git.example.com/team/."} {
		w := reachable(wants(v1alpha1.Repo{URL: url}))
		if calls := told(t, w); len(calls) > 0 {
			t.Errorf("%s: the runner is called: %v", url, calls)
		}
		status := session.Status(w, session.Decide(w))
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReposReconciled); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, url+" (it does not end in a name") {
			t.Errorf("%s: it is told as %+v", url, c)
		}
	}
	for _, name := range []string{"", ".", ".."} {
		w := reachable(wants(), hasRepo(name, "main", "Failed"))
		if calls := told(t, w); len(calls) > 0 {
			t.Errorf("repository %q: the runner is called: %v", name, calls)
		}
	}
}

func TestOnlyTheCallsThatFailedAreMadeAgain(t *testing.T) {
	w := reachable(wants(repo("app", "main"), repo("docs", "main")))
	calls := w.Calls()
	if len(calls) != 2 {
		t.Fatalf("the runner is told %q, want two calls", told(t, w))
	}
	w.Told = []session.CallResult{{Call: calls[0]}, {Call: calls[1], Err: errors.New("it answered 500")}}
	w = storing(w, after(w))
	w.Told = nil
	again := w.Calls()
	if len(again) != 1 || again[0].Repo.Name() != "docs" {
		t.Fatalf("it is told %q, want docs alone", told(t, w))
	}
	w.Told = []session.CallResult{{Call: again[0]}}
	status := after(w)
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReposReconciled); c.Status != metav1.ConditionTrue {
		t.Errorf("after the success ReposReconciled is %s: %s", c.Status, c.Message)
	}
	if len(status.ReconciledRepos) != 2 || status.ReconciledRepos[1].Status != "Ready" || status.ReconciledRepos[1].ClonedAt == nil {
		t.Errorf("the repositories are %+v", status.ReconciledRepos)
	}
}
