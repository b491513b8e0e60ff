package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// toldRunner is the server of a runner as far as the operator calls it: it notes what it is told, and
// refuses what it is to refuse.
type toldRunner struct {
	host string
	port int

	mu      sync.Mutex
	calls   []told
	refused string // the beginning of the paths that are answered with 500; empty for none
}

// told is one call to a runner.
type told struct {
	at            time.Time
	what          string // path and body
	method, token string
	contentType   string
}

// listen starts the server of a runner.
func listen(t *testing.T) *toldRunner {
	t.Helper()
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	r := &toldRunner{host: host}
	if r.port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return r
}

func (r *toldRunner) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	call := told{at: time.Now(), method: request.Method, token: request.Header.Get("X-Ambient-Session-Token"), contentType: request.Header.Get("Content-Type")}
	var body map[string]string
	err := json.NewDecoder(request.Body).Decode(&body)
	text, again := json.Marshal(body)
	call.what = request.URL.Path + " " + string(text)
	if err := errors.Join(err, again); err != nil {
		call.what = request.URL.Path + " " + err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	if r.refused != "" && strings.HasPrefix(request.URL.Path, r.refused) {
		http.Error(answer, "as the test wants it", http.StatusInternalServerError)
	}
}

// refuses has it answer with 500 where a path begins so, and forget what it was told before; empty is to
// refuse nothing.
func (r *toldRunner) refuses(paths string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused, r.calls = paths, nil
}

// heard lists the calls so far that begin with a text.
func (r *toldRunner) heard(what string) []told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.calls), func(c told) bool { return !strings.HasPrefix(c.what, what) })
}

// forget returns what it was told so far, in order of the words, and forgets it.
func (r *toldRunner) forget() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, call := range r.calls {
		all = append(all, call.what)
	}
	r.calls = nil
	slices.Sort(all)
	return all
}

// servedBy gives the session's pod the address of a server, which a simulated pod does not have.
func (s *session) servedBy(r *toldRunner) {
	s.t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"podIP":%q,"podIPs":[{"ip":%q}]}}`, r.host, r.host)
	if err := suite.admin.Status().Patch(s.ctx, s.pod(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		s.t.Fatal(err)
	}
	s.settles(0) // the operator knows the address
}

// edits changes the spec and returns the generation that it has then.
func (s *session) edits(spec string) int64 {
	s.t.Helper()
	object := s.object()
	s.patch(object, `{"spec":`+spec+`}`)
	return object.Generation
}

// edited waits until a condition about edits has a status for a generation of the spec.
func (s *session) edited(generation int64, kind string, status metav1.ConditionStatus, reason string) *v1alpha1.AgenticSession {
	s.t.Helper()
	return s.until(fmt.Sprintf("has %s %s for %s", kind, status, reason), func(object *v1alpha1.AgenticSession) error {
		c := condition(object, kind)
		if c.ObservedGeneration != generation || c.Status != status || c.Reason != reason {
			return fmt.Errorf("%s of generation %d, want %d, is %s for %s: %s", kind, c.ObservedGeneration, generation, c.Status, c.Reason, c.Message)
		}
		return nil
	})
}

// expectRepos compares what the status says of the session's repositories, each as name, branch and status.
func expectRepos(t *testing.T, object *v1alpha1.AgenticSession, want ...string) {
	t.Helper()
	var got []string
	for _, repo := range object.Status.ReconciledRepos {
		got = append(got, strings.Join([]string{repo.Name, repo.Branch, repo.Status}, " "))
		if !strings.HasPrefix(repo.URL, "https://git.example/") || !strings.Contains(repo.URL, "/"+repo.Name) {
			t.Errorf("repository %s has the URL %q", repo.Name, repo.URL)
		}
		if cloned := repo.ClonedAt != nil; cloned != (repo.Status == "Ready") {
			t.Errorf("repository %s is %s and was cloned: %t", repo.Name, repo.Status, cloned)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the status has the repositories %q, want %q", got, want)
	}
}

// expectWorkflow compares what the status says of the session's workflow.
func expectWorkflow(t *testing.T, object *v1alpha1.AgenticSession, want string) {
	t.Helper()
	w := object.Status.ReconciledWorkflow
	if w == nil || w.AppliedAt == nil {
		t.Errorf("the status has the workflow %+v, want %s", w, want)
		return
	}
	if got := strings.Join([]string{w.GitURL, w.Branch, w.Path, w.Status}, " "); got != want {
		t.Errorf("the status has the workflow %s, want %s", got, want)
	}
}

func expectCalls(t *testing.T, r *toldRunner, want ...string) {
	t.Helper()
	if got := r.forget(); !slices.Equal(got, want) {
		t.Errorf("the runner was told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEditsOfARunningSession: repositories and a workflow that are edited while a session runs are told
// its runner, once; the status says of each what came of it. What the runner refuses is tried again,
// more and more seldom, and keeps nothing else back. (Case 15.)
func TestEditsOfARunningSession(t *testing.T) {
	runner := listen(t)
	p := newProject(t, alone(t, nil))
	register(t, otherEntry(runner.port))
	s := p.session("edited", "hang", ofType("other-sdk"), timeout(0), func(s *v1alpha1.AgenticSession) {
		s.Spec.Repos = []v1alpha1.Repo{{URL: "https://git.example/a/one.git"}}
	})
	expectRepos(t, s.reaches(running), "one main Ready")
	s.servedBy(runner)
	expectCalls(t, runner) // it began with what the spec says

	edited := s.edits(`{"repos":[{"url":"https://git.example/a/one.git"},{"url":"https://git.example/b/two","branch":"dev"}],
		"activeWorkflow":{"gitUrl":"https://git.example/flows.git","path":"review"}}`)
	object := s.edited(edited, v1alpha1.ConditionReconciled, metav1.ConditionTrue, v1alpha1.ReasonPresent)
	expectRepos(t, object, "one main Ready", "two dev Ready")
	expectWorkflow(t, object, "https://git.example/flows.git main review Active")
	checkCallers(t, s, runner)
	expectCalls(t, runner, `/repos/add {"branch":"dev","name":"two","url":"https://git.example/b/two"}`,
		`/workflow {"branch":"main","gitUrl":"https://git.example/flows.git","path":"review"}`)

	edited = s.edits(`{"repos":[{"url":"https://git.example/b/two","branch":"main"}],"activeWorkflow":{"branch":"next"}}`)
	object = s.edited(edited, v1alpha1.ConditionReconciled, metav1.ConditionTrue, v1alpha1.ReasonPresent)
	expectRepos(t, object, "two main Ready")
	expectWorkflow(t, object, "https://git.example/flows.git next review Active")
	expectCalls(t, runner, `/repos/add {"branch":"main","name":"two","url":"https://git.example/b/two"}`, `/repos/remove {"name":"one"}`,
		`/workflow {"branch":"next","gitUrl":"https://git.example/flows.git","path":"review"}`)

	runner.refuses("/repos/")
	edited = s.edits(`{"repos":[{"url":"https://git.example/c/three"}],"activeWorkflow":{"branch":"main"}}`)
	object = s.edited(edited, v1alpha1.ConditionReposReconciled, metav1.ConditionFalse, v1alpha1.ReasonRunnerCallFailed)
	checkRefused(t, object)
	checkRetries(t, s, runner)
	if now := s.edited(edited, v1alpha1.ConditionReposReconciled, metav1.ConditionFalse, v1alpha1.ReasonRunnerCallFailed); now.ResourceVersion != object.ResourceVersion {
		t.Error("the status was written again although each attempt had the same end")
	}
	runner.refuses("")
	object = s.edited(edited, v1alpha1.ConditionReconciled, metav1.ConditionTrue, v1alpha1.ReasonPresent)
	expectRepos(t, object, "three main Ready")
	s.settles(time.Second)
	expectCalls(t, runner, `/repos/add {"branch":"main","name":"three","url":"https://git.example/c/three"}`, `/repos/remove {"name":"two"}`)
	s.ranOnce()
	s.expectHistory(pending, creating, running)
}

// checkCallers wants every call to be as the contract says, with the secret of the runner's Service.
func checkCallers(t *testing.T, s *session, runner *toldRunner) {
	t.Helper()
	token := string(s.runnerSecret().Data["agui-token"])
	for _, call := range runner.heard("/") {
		if call.token != token || call.token == "" || call.method != http.MethodPost || call.contentType != "application/json" {
			t.Errorf("%s came as %s, %s, with the runner's secret: %t", call.what, call.method, call.contentType, call.token == token)
		}
	}
}

// checkRefused looks at a session whose runner refuses one repository and the removal of another.
func checkRefused(t *testing.T, object *v1alpha1.AgenticSession) {
	t.Helper()
	expectRepos(t, object, "two main Ready", "three main Failed")
	expectWorkflow(t, object, "https://git.example/flows.git main review Active")
	message := condition(object, v1alpha1.ConditionReposReconciled).Message
	for _, word := range []string{"https://git.example/b/two", "https://git.example/c/three", "500"} {
		if !strings.Contains(message, word) {
			t.Errorf("the message does not say %q: %s", word, message)
		}
	}
	for kind, want := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionReconciled: metav1.ConditionFalse, v1alpha1.ConditionWorkflowReconciled: metav1.ConditionTrue, v1alpha1.ConditionReady: metav1.ConditionTrue,
	} {
		if c := condition(object, kind); c.Status != want {
			t.Errorf("%s is %s for %s: %s", kind, c.Status, c.Reason, c.Message)
		}
	}
}

// checkRetries waits for some attempts and looks at the times between them: 200 ms, then twice as long
// each time. The first two are due to the edit and to the status that told of the refusal, so the first
// retry is the third call; its delay counts from the first. Lateness makes the times longer only.
func checkRetries(t *testing.T, s *session, runner *toldRunner) {
	t.Helper()
	const add, attempts = `/repos/add {"branch":"main","name":"three"`, 6
	s.eventually("it was tried again", func() error {
		if n := len(runner.heard(add)); n < attempts {
			return fmt.Errorf("%d attempts", n)
		}
		return nil
	})
	calls := runner.heard(add)
	least := 800 * time.Millisecond // two passes failed before the first retry did
	for i := 3; i < attempts; i++ {
		if gap := calls[i].at.Sub(calls[i-1].at); gap < least*9/10 {
			t.Errorf("attempt %d came %s after the one before, want %s at least", i+1, gap, least)
		}
		least *= 2
	}
	if once := len(runner.heard("/workflow ")); once != 1 {
		t.Errorf("the runner was told of its workflow %d times although it took it over", once)
	}
}

// TestEditBeforeTheRunnerServes: what is edited while the runner cannot be reached is told as soon as it
// can. The session runs on meanwhile. (Case 15.)
func TestEditBeforeTheRunnerServes(t *testing.T) {
	runner := listen(t)
	p := newProject(t, alone(t, nil))
	register(t, otherEntry(runner.port))
	s := p.session("early", "never-ready\nhang", ofType("other-sdk"), timeout(0))
	s.eventually("the pod runs", func() error {
		if pod := s.pod(); pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	})
	s.servedBy(runner)
	s.edits(`{"repos":[{"url":"https://git.example/a/one"}]}`)
	s.always(time.Second, "a runner that is not ready is not called", func() error {
		if calls := runner.heard("/"); len(calls) > 0 {
			return fmt.Errorf("it was told %s", calls[0].what)
		}
		return s.phaseIs(creating)
	})
	s.does("hang")
	s.reaches(running)
	// The kubelet has written the pod's status, and with it its own address.
	s.servedBy(runner)
	s.edited(2, v1alpha1.ConditionReconciled, metav1.ConditionTrue, v1alpha1.ReasonPresent)
	expectRepos(t, s.latest(), "one main Ready")
	expectCalls(t, runner, `/repos/add {"branch":"main","name":"one","url":"https://git.example/a/one"}`)
}
