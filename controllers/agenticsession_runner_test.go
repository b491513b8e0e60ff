package controllers

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// TestACallToARunner: a runner is called as it expects, and only 200 means that it is done. What it
// says beside, and the token, are in no error.
func TestACallToARunner(t *testing.T) {
	const token, confidential = "not-a-token", "not for everybody"
	call := &session.Call{Path: "/repos/add", Body: map[string]string{"url": "https://git.example.com/a.git", "branch": "main", "name": "a"}}
	for status, says := range map[int]string{
		http.StatusOK: "", http.StatusCreated: "201 Created", http.StatusFound: "302 Found",
		http.StatusUnauthorized: "401 Unauthorized", http.StatusInternalServerError: "500 Internal Server Error",
	} {
		calls := 0
		runner := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
			calls++
			body, err := io.ReadAll(request.Body)
			if err != nil {
				t.Error(err)
			}
			if request.Method != http.MethodPost || request.URL.Path != "/repos/add" || request.Header.Get("X-Ambient-Session-Token") != token ||
				request.Header.Get("Content-Type") != "application/json" || string(body) != `{"branch":"main","name":"a","url":"https://git.example.com/a.git"}` {
				t.Errorf("the runner gets %s %s %v %s", request.Method, request.URL, request.Header, body)
			}
			answer.Header().Set("Location", "/elsewhere")
			answer.WriteHeader(status)
			if _, err := io.WriteString(answer, confidential); err != nil {
				t.Error(err)
			}
		}))
		err := post(t.Context(), runner.URL, token, call)
		runner.Close()
		if calls != 1 || (err == nil) != (says == "") {
			t.Errorf("%d: %v after %d calls", status, err, calls)
		}
		if err != nil && (!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), confidential)) {
			t.Errorf("%d: the error is %v", status, err)
		}
	}
}

// TestCase36NoCallWithoutTheSecret: a runner whose secret is not known is not called at all.
func TestCase36NoCallWithoutTheSecret(t *testing.T) {
	runner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	defer runner.Close()
	if err := post(t.Context(), runner.URL, "", &session.Call{Path: "/workflow", Body: map[string]string{}}); err == nil {
		t.Error("no error")
	}
}

// TestARunnerThatDoesNotAnswer: a worker waits for it a few seconds at most.
func TestARunnerThatDoesNotAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	deaf := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ctx.Done() }))
	call := &session.Call{Path: "/workflow", Body: map[string]string{}}
	began := time.Now()
	err := post(t.Context(), deaf.URL, "token", call)
	if waited := time.Since(began); waited < callPatience || waited > callPatience+30*time.Second || callPatience > 5*time.Second {
		t.Errorf("it was waited for %s, with a patience of %s", waited, callPatience)
	}
	if err == nil || err.Error() != "it did not answer within 3s" {
		t.Errorf("the error is %v", err)
	}
	cancel()
	deaf.Close()
	if err := post(t.Context(), deaf.URL, "token", call); err == nil || err.Error() != "it cannot be reached" {
		t.Errorf("once it is gone the error is %v", err)
	}
}

// TestWhoseInactivityTimeoutCounts: the session's before the project's before the operator's, where 0
// is a word like any other.
func TestWhoseInactivityTimeoutCounts(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	r := &AgenticSessionReconciler{Config: &config.Config{DefaultInactivity: 30 * time.Second}}
	for _, c := range []struct {
		name             string
		session, project *int64
		want             time.Duration
	}{
		{"nobody says", nil, nil, 30 * time.Second},
		{"the project", nil, seconds(20), 20 * time.Second},
		{"the project switches it off", nil, seconds(0), 0},
		{"the session", seconds(10), seconds(20), 10 * time.Second},
		{"the session switches it off", seconds(0), seconds(20), 0},
		{"the session against a project that switches it off", seconds(10), seconds(0), 10 * time.Second},
	} {
		s, project := &v1alpha1.AgenticSession{}, &v1alpha1.ProjectSettings{}
		s.Spec.InactivityTimeout, project.Spec.InactivityTimeoutSeconds = c.session, c.project
		if got := r.inactivity(s, project); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := r.inactivity(&v1alpha1.AgenticSession{}, nil); got != 30*time.Second {
		t.Errorf("without settings it is %s", got)
	}
	r.Config.DefaultInactivity = 0
	if got := r.inactivity(&v1alpha1.AgenticSession{}, nil); got != 0 {
		t.Errorf("where the operator switches it off it is %s", got)
	}
}
