package environment_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/test/runner/internal/environment"
)

func complete(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{
		"AGENTIC_SESSION_NAME=s", "AGENTIC_SESSION_NAMESPACE=ns", "AGUI_TOKEN=secret",
		"WORKSPACE_PATH=" + t.TempDir(), "ANTHROPIC_API_KEY=key",
	}, more...)
}

func TestReadComplete(t *testing.T) {
	session, err := environment.Read(complete(t, "AGUI_PORT=9000", "IS_RESUME=true", "RESUME_EXIT=3",
		`REPOS_JSON=[{"url":"http://h/a.git"},{"url":"http://h/b","branch":"dev","autoPush":true}]`,
		"ACTIVE_WORKFLOW_GIT_URL=http://h/w", "INITIAL_PROMPT=a=b\nc"))
	if err != nil {
		t.Fatal(err)
	}
	if session.Port != 9000 || !session.Resume || *session.ResumeExit != 3 || session.Prompt != "a=b\nc" {
		t.Errorf("read %+v", session)
	}
	want := []environment.Repo{{URL: "http://h/a.git", Branch: "main"}, {URL: "http://h/b", Branch: "dev", AutoPush: true}}
	if len(session.Repos) != 2 || session.Repos[0] != want[0] || session.Repos[1] != want[1] {
		t.Errorf("repos %+v, want %+v", session.Repos, want)
	}
	if session.Workflow != (environment.Workflow{GitURL: "http://h/w", Branch: "main"}) {
		t.Errorf("workflow %+v", session.Workflow)
	}
	for _, name := range session.Names {
		if strings.Contains(name, "secret") || strings.Contains(name, "=") {
			t.Errorf("name %q gives a value away", name)
		}
	}
}

func TestReadNamesWhatIsMissing(t *testing.T) {
	_, err := environment.Read(nil)
	if err == nil {
		t.Fatal("an empty environment was accepted")
	}
	for _, want := range []string{"AGENTIC_SESSION_NAME", "AGENTIC_SESSION_NAMESPACE", "AGUI_TOKEN", "WORKSPACE_PATH", "ANTHROPIC_API_KEY"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, entry := range []string{
		"AGUI_PORT=http", "AGUI_PORT=70000", "REPOS_JSON={", `REPOS_JSON=[{"branch":"main"}]`,
		"RESUME_EXIT=x", "ARTIFACTS_DIR=../out", "ANTHROPIC_API_KEY=", "AGUI_TOKEN=",
		"WORKSPACE_PATH=" + filepath.Join(t.TempDir(), "missing"),
	} {
		name, _, _ := strings.Cut(entry, "=")
		if name == "WORKSPACE_PATH" || name == "ANTHROPIC_API_KEY" {
			name = map[string]string{"WORKSPACE_PATH": "workspace", "ANTHROPIC_API_KEY": "credentials"}[name]
		}
		if _, err := environment.Read(complete(t, entry)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one about %s", entry, err, name)
		}
	}
	if _, err := environment.Read(complete(t, "ANTHROPIC_API_KEY=", "USE_VERTEX=1")); err != nil {
		t.Errorf("Vertex is no model credential: %v", err)
	}
}
