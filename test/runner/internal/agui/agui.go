// Package agui is the runner's side of the calls that the operator and the
// platform's backend make to a running runner:
//
//	GET  /health         200 when ready, else 503
//	POST /repos/add      {url, branch, name}: have this repository, on this branch
//	POST /repos/remove   {name}: have it no longer
//	POST /workflow       {gitUrl, branch, path}: make this the active workflow
//	GET  /state          what the runner has, for tests
//
// All but /health want the run's token in header X-Ambient-Session-Token and
// answer 401 without. 200 means done; another status comes with {"error": ...}.
// Calls may be repeated: adding what is there and removing what is not is done.
package agui

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/ambient-code/agentic-operator/test/runner/internal/environment"
	"github.com/ambient-code/agentic-operator/test/runner/internal/script"
	"github.com/ambient-code/agentic-operator/test/runner/internal/workspace"
)

// TokenHeader carries the run's token.
const TokenHeader = "X-Ambient-Session-Token"

// largestCall is the most a call may send.
const largestCall = 1 << 20

// State is what GET /state answers.
type State struct {
	Session   string                 `json:"session"`
	Namespace string                 `json:"namespace"`
	Run       int                    `json:"run"`
	Resume    bool                   `json:"resume"`
	Ready     bool                   `json:"ready"`
	Repos     []workspace.Repository `json:"repos"`
	Workflow  *workspace.Workflow    `json:"workflow"`
	// TokenSHA256 is the fingerprint of the Kubernetes token's file, empty when
	// there is none. It changes when a renewed token arrives.
	TokenSHA256 string   `json:"tokenSHA256"`
	Environment []string `json:"environment"` // names only
}

// Server answers the calls of one run.
type Server struct {
	Log       *slog.Logger
	Session   environment.Session
	Script    script.Script
	Workspace *workspace.Workspace
	Run       int
	Started   time.Time
}

// Handler is the whole interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.Handle("GET /state", s.guarded(s.state))
	mux.Handle("POST /repos/add", s.guarded(s.addRepo))
	mux.Handle("POST /repos/remove", s.guarded(s.removeRepo))
	mux.Handle("POST /workflow", s.guarded(s.setWorkflow))
	return mux
}

func (s *Server) ready() bool {
	return !s.Script.NeverReady && time.Since(s.Started) >= s.Script.ReadyAfter
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if !s.ready() {
		s.answer(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready"})
		return
	}
	s.answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

// callError is a call that cannot be done as it was made.
type callError struct{ error }

// guarded lets only callers with the run's token through.
func (s *Server) guarded(call func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := []byte(r.Header.Get(TokenHeader))
		if s.Session.AGUIToken == "" || subtle.ConstantTimeCompare(token, []byte(s.Session.AGUIToken)) != 1 {
			s.answer(w, http.StatusUnauthorized, failure(fmt.Errorf("send the token of this run in header %s", TokenHeader)))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, largestCall)
		done, err := call(r)
		if err == nil {
			s.answer(w, http.StatusOK, done)
			return
		}
		status := http.StatusInternalServerError
		if fault := (callError{}); errors.As(err, &fault) {
			status = http.StatusBadRequest
		}
		s.Log.Warn("a call failed", "path", r.URL.Path, "status", status, "error", err)
		s.answer(w, status, failure(err))
	})
}

func (s *Server) state(*http.Request) (any, error) {
	fingerprint, err := fingerprintOf(s.Session.TokenFile)
	return State{
		Session: s.Session.Name, Namespace: s.Session.Namespace,
		Run: s.Run, Resume: s.Session.Resume, Ready: s.ready(),
		Repos: s.Workspace.Repos(), Workflow: s.Workspace.Workflow(),
		TokenSHA256: fingerprint, Environment: s.Session.Names,
	}, err
}

func (s *Server) addRepo(r *http.Request) (any, error) {
	var call struct{ URL, Branch, Name string }
	if err := read(r, &call); err != nil {
		return nil, err
	}
	if call.URL == "" {
		return nil, callError{errors.New("url is missing: name the repository to clone")}
	}
	repo := environment.Repo{URL: call.URL, Branch: call.Branch}
	if repo.Branch == "" {
		repo.Branch = "main"
	}
	if call.Name == "" {
		call.Name = workspace.NameOf(call.URL)
	}
	for _, known := range s.Workspace.Repos() {
		// The call does not say whether to push; what the session said stays.
		if known.Name == call.Name && known.URL == workspace.Redacted(call.URL) {
			repo.AutoPush = known.AutoPush
		}
	}
	if err := s.Workspace.Add(r.Context(), call.Name, repo); err != nil {
		return nil, err
	}
	s.Log.Info("repository added", "repository", call.Name, "branch", repo.Branch)
	return map[string]string{"name": call.Name}, nil
}

func (s *Server) removeRepo(r *http.Request) (any, error) {
	var call struct{ Name string }
	if err := read(r, &call); err != nil {
		return nil, err
	}
	removed, err := s.Workspace.Remove(call.Name)
	if err != nil {
		return nil, err
	}
	s.Log.Info("repository removed", "repository", call.Name, "present", removed)
	return map[string]bool{"removed": removed}, nil
}

func (s *Server) setWorkflow(r *http.Request) (any, error) {
	var call environment.Workflow
	if err := read(r, &call); err != nil {
		return nil, err
	}
	if call.Branch == "" {
		call.Branch = "main"
	}
	if err := s.Workspace.SetWorkflow(r.Context(), call); err != nil {
		return nil, err
	}
	s.Log.Info("workflow set", "branch", call.Branch, "path", call.Path)
	return s.Workspace.Workflow(), nil
}

func (s *Server) answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		s.Log.Warn("a caller went away", "error", err)
	}
}

func read(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return callError{fmt.Errorf("reading the call, send a JSON object: %w", err)}
	}
	return nil
}

func failure(err error) map[string]string { return map[string]string{"error": err.Error()} }

func fingerprintOf(file string) (string, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the token file: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
