// Package environment reads what the operator tells a runner: everything comes
// in environment variables, under the names of the runner contract. Read returns
// all of it, or an error that names every prerequisite that is missing at once.
package environment

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// Defaults for what the operator always sets but a person trying the runner may not.
const (
	defaultPort      = 8001
	defaultArtifacts = "artifacts"
	defaultBranch    = "main"
	defaultTokenFile = "/var/run/secrets/ambient/bot-token"
)

// Repo is one entry of REPOS_JSON.
type Repo struct {
	URL      string `json:"url"`
	Branch   string `json:"branch"`
	AutoPush bool   `json:"autoPush"`
}

// Workflow is the session's active workflow; without a GitURL there is none.
type Workflow struct {
	GitURL string `json:"gitUrl"`
	Branch string `json:"branch"`
	Path   string `json:"path"`
}

// Session is what the runner was told about its session.
type Session struct {
	Name, Namespace string
	UserName        string
	Prompt          string
	Port            int
	AGUIToken       string
	TokenFile       string // holds the runner's Kubernetes token
	WorkspacePath   string
	ArtifactsDir    string // relative to the workspace
	Repos           []Repo
	Workflow        Workflow
	// Resume says that the session ran before. The prompt is not executed again.
	Resume bool
	// ResumeExit, when set, is the exit code with which a resumed run ends at once.
	ResumeExit *int
	// Names lists which variables were set; their values may be secret.
	Names []string
}

// Read reads the environment, given as os.Environ returns it, and tries whether
// the workspace can be written to.
func Read(environ []string) (Session, error) {
	values := map[string]string{}
	session := Session{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
		session.Names = append(session.Names, name)
	}
	sort.Strings(session.Names)
	session.Name = values["AGENTIC_SESSION_NAME"]
	session.Namespace = values["AGENTIC_SESSION_NAMESPACE"]
	session.UserName = values["USER_NAME"]
	session.Prompt = values["INITIAL_PROMPT"]
	session.AGUIToken = values["AGUI_TOKEN"]
	session.WorkspacePath = values["WORKSPACE_PATH"]
	session.TokenFile = orDefault(values["BOT_TOKEN_FILE"], defaultTokenFile)
	session.ArtifactsDir = orDefault(values["ARTIFACTS_DIR"], defaultArtifacts)
	session.Resume = values["IS_RESUME"] == "true"
	session.Workflow = Workflow{
		GitURL: values["ACTIVE_WORKFLOW_GIT_URL"],
		Branch: orDefault(values["ACTIVE_WORKFLOW_BRANCH"], defaultBranch),
		Path:   values["ACTIVE_WORKFLOW_PATH"],
	}
	err := errors.Join(
		session.readPort(values["AGUI_PORT"]),
		session.readRepos(values["REPOS_JSON"]),
		session.readResumeExit(values["RESUME_EXIT"]),
		session.missing(values),
		session.unwritable(),
	)
	return session, err
}

func (s *Session) readPort(text string) error {
	port, err := strconv.ParseUint(orDefault(text, strconv.Itoa(defaultPort)), 10, 16)
	if err != nil {
		return fmt.Errorf("AGUI_PORT is %q: set it to the number of the port to serve on", text)
	}
	s.Port = int(port)
	return nil
}

func (s *Session) readRepos(text string) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &s.Repos); err != nil {
		return fmt.Errorf("REPOS_JSON cannot be read, set it to a JSON list of {url, branch, autoPush}: %w", err)
	}
	for i := range s.Repos {
		if s.Repos[i].URL == "" {
			return fmt.Errorf("REPOS_JSON entry %d has no url: give it one", i)
		}
		s.Repos[i].Branch = orDefault(s.Repos[i].Branch, defaultBranch)
	}
	return nil
}

func (s *Session) readResumeExit(text string) error {
	if text == "" {
		return nil
	}
	code, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return fmt.Errorf("RESUME_EXIT is %q: set it to an exit code from 0 to 255, or not at all", text)
	}
	exit := int(code)
	s.ResumeExit = &exit
	return nil
}

func (s *Session) missing(values map[string]string) error {
	var problems []error
	for _, name := range []string{"AGENTIC_SESSION_NAME", "AGENTIC_SESSION_NAMESPACE", "AGUI_TOKEN", "WORKSPACE_PATH"} {
		if values[name] == "" {
			problems = append(problems, fmt.Errorf("%s is not set: the operator sets it for every runner, set it yourself to try one by hand", name))
		}
	}
	if values["ANTHROPIC_API_KEY"] == "" && values["USE_VERTEX"] != "1" {
		problems = append(problems, errors.New("there are no model credentials: set ANTHROPIC_API_KEY in the project's runner Secret, or switch on Vertex (USE_VERTEX=1)"))
	}
	if !filepath.IsLocal(s.ArtifactsDir) {
		problems = append(problems, fmt.Errorf("ARTIFACTS_DIR is %q: name a folder inside the workspace", s.ArtifactsDir))
	}
	return errors.Join(problems...)
}

// unwritable tries to write, because permission bits do not tell: the volume may
// be full, read-only, or owned by another user.
func (s *Session) unwritable() error {
	if s.WorkspacePath == "" {
		return nil // reported as missing
	}
	probe, err := os.CreateTemp(s.WorkspacePath, ".writable-*")
	if err != nil {
		return fmt.Errorf("the workspace cannot be written to, make it writable for user %d, group %d: %w", os.Getuid(), os.Getgid(), err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("tidying up after a write to the workspace: %w", err)
	}
	return nil
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
