package progress_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ambient-code/agentic-operator/test/runner/internal/progress"
)

// request is what the API was asked.
type request struct{ method, path, contentType, authorization, message string }

// api is the part of a Kubernetes API that a runner uses, behind TLS with a
// certificate authority of its own.
func api(t *testing.T, status int) (progress.Target, func() []request) {
	t.Helper()
	var mu sync.Mutex
	var seen []request
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var patch struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal(body, &patch); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, request{r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("Authorization"),
			patch.Metadata.Annotations[progress.Annotation]})
		w.WriteHeader(status)
		if _, err := io.WriteString(w, `{"kind":"Status","message":"it is forbidden"}`); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	target := progress.Target{
		Host: address.Hostname(), Port: address.Port(), Namespace: "ns", Session: "s",
		CAFile: filepath.Join(t.TempDir(), "ca.crt"), TokenFile: filepath.Join(t.TempDir(), "token"),
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write(t, target.CAFile, certificate)
	write(t, target.TokenFile, []byte("first-token\n"))
	return target, func() []request {
		mu.Lock()
		defer mu.Unlock()
		return append([]request(nil), seen...)
	}
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSayAnnotates(t *testing.T) {
	target, seen := api(t, http.StatusOK)
	for _, token := range []string{"first-token", "renewed-token"} {
		write(t, target.TokenFile, []byte(token))
		reporter := progress.New(slog.New(slog.DiscardHandler), target)
		reporter.Say("cloned", "repository", "app")
		reporter.Close(5 * time.Second)
		requests := seen()
		want := request{"PATCH", "/apis/vteam.ambient-code/v1alpha1/namespaces/ns/agenticsessions/s",
			"application/merge-patch+json", "Bearer " + token, "cloned repository=app"}
		if len(requests) == 0 || requests[len(requests)-1] != want {
			t.Fatalf("requests %+v, want the last to be %+v", requests, want)
		}
	}
}

func TestNewestMessageWins(t *testing.T) {
	target, seen := api(t, http.StatusOK)
	reporter := progress.New(slog.New(slog.DiscardHandler), target)
	for range 50 {
		reporter.Say("working")
	}
	reporter.Say("done")
	reporter.Close(5 * time.Second)
	requests := seen()
	if len(requests) == 0 || requests[len(requests)-1].message != "done" {
		t.Errorf("the last of %d messages is not the newest: %+v", len(requests), requests)
	}
}

// TestSayDoesNotWait says more than an API that does not answer can take.
func TestSayDoesNotWait(t *testing.T) {
	answer := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answer }))
	defer server.Close()
	defer close(answer)
	target, _ := api(t, http.StatusOK)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	target.Port = address.Port()
	write(t, target.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	reporter := progress.New(slog.New(slog.DiscardHandler), target)
	began := time.Now()
	for range 5 {
		reporter.Say("working")
	}
	reporter.Close(10 * time.Millisecond)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("five messages took %s", took)
	}
}

func TestFailuresAreLoggedOnly(t *testing.T) {
	forbidden, _ := api(t, http.StatusForbidden)
	untrusted, untrustedSeen := api(t, http.StatusOK)
	write(t, untrusted.CAFile, []byte("no certificate"))
	tokenless, _ := api(t, http.StatusOK)
	tokenless.TokenFile += ".missing"
	for want, target := range map[string]progress.Target{
		"it is forbidden": forbidden, "certificate": untrusted, "no such file": tokenless,
	} {
		var logged bytes.Buffer
		reporter := progress.New(slog.New(slog.NewTextHandler(&logged, nil)), target)
		reporter.Say("working")
		reporter.Close(10 * time.Second)
		if !strings.Contains(logged.String(), want) || strings.Contains(logged.String(), "first-token") {
			t.Errorf("logged %s, want %q and no token", logged.String(), want)
		}
	}
	if requests := untrustedSeen(); len(requests) != 0 {
		t.Errorf("a server that nobody vouches for was shown %+v", requests)
	}
}

func TestWithoutClusterNothingIsTried(t *testing.T) {
	var logged bytes.Buffer
	reporter := progress.New(slog.New(slog.NewTextHandler(&logged, nil)), progress.Target{})
	reporter.Say("working")
	reporter.Close(time.Second)
	if strings.Contains(logged.String(), "WARN") {
		t.Errorf("logged %s", logged.String())
	}
}
