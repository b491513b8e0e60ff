package main_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestToken(t *testing.T) {
	p := start(t, t.TempDir(), prompt("hang"))
	if status, _ := p.call("GET", "/health", "", ""); status != http.StatusOK {
		t.Errorf("/health answers %d without a token", status)
	}
	for path, method := range map[string]string{"/state": "GET", "/repos/add": "POST", "/repos/remove": "POST", "/workflow": "POST"} {
		for _, wrong := range []string{"", "wrong", token + "x", token[1:]} {
			if status, _ := p.call(method, path, "{}", wrong); status != http.StatusUnauthorized {
				t.Errorf("%s with token %q answers %d, want 401", path, wrong, status)
			}
		}
	}
}

func TestReposWhileRunning(t *testing.T) {
	server := gitServer(t, "app", "docs", "flows")
	p := start(t, t.TempDir(), prompt("write A a", "hang"),
		fmt.Sprintf(`REPOS_JSON=[{"url":"%s/app","autoPush":true}]`, server))
	p.waitFor("Waiting to be stopped")
	for _, test := range []struct {
		path, body string
		status     int
	}{
		{"/repos/add", fmt.Sprintf(`{"url":"%s/docs.git","branch":"main","name":"docs"}`, server), 200},
		{"/repos/add", fmt.Sprintf(`{"url":"%s/docs.git","branch":"main","name":"docs"}`, server), 200}, // again
		{"/repos/add", fmt.Sprintf(`{"url":"%s/app","branch":"main","name":"app"}`, server), 200},
		{"/repos/add", fmt.Sprintf(`{"url":"%s/app","branch":"missing","name":"app"}`, server), 500},
		{"/repos/add", fmt.Sprintf(`{"url":"%s/missing","branch":"main","name":"missing"}`, server), 500},
		{"/repos/add", fmt.Sprintf(`{"url":"%s/docs","name":"../out"}`, server), 500},
		{"/repos/add", `{"name":"x"}`, 400},
		{"/repos/add", `not JSON`, 400},
		{"/workflow", fmt.Sprintf(`{"gitUrl":"%s/flows","branch":"main","path":"workflows/review"}`, server), 200},
		{"/workflow", fmt.Sprintf(`{"gitUrl":"%s/flows","branch":"main","path":"no/such"}`, server), 500},
	} {
		if status, answer := p.call("POST", test.path, test.body, token); status != test.status {
			t.Errorf("%s %s: %d %s, want %d", test.path, test.body, status, answer, test.status)
		}
	}
	state := p.state()
	if len(state.Repos) != 2 || state.Repos[0].Name != "app" || !state.Repos[0].AutoPush || state.Repos[1].Name != "docs" {
		t.Errorf("repos %+v", state.Repos)
	}
	if state.Workflow == nil || state.Workflow.Path != "workflows/review" {
		t.Errorf("workflow %+v", state.Workflow)
	}
	for range 2 {
		if status, answer := p.call("POST", "/repos/remove", `{"name":"docs"}`, token); status != http.StatusOK {
			t.Errorf("removing: %d %s", status, answer)
		}
	}
	if _, err := os.Stat(filepath.Join(p.workspace, "repos", "docs")); !os.IsNotExist(err) {
		t.Errorf("the removed repository is still there: %v", err)
	}
	if state := p.state(); len(state.Repos) != 1 {
		t.Errorf("after removing one, repos are %+v", state.Repos)
	}
}

func TestState(t *testing.T) {
	p := start(t, t.TempDir(), prompt("hang"))
	before := p.state()
	if before.TokenSHA256 != "" || before.Resume || before.Run != 1 || !before.Ready {
		t.Errorf("state %+v", before)
	}
	if !slices.Contains(before.Environment, "AGUI_TOKEN") || slices.ContainsFunc(before.Environment, func(name string) bool {
		return strings.Contains(name, "=")
	}) {
		t.Errorf("environment %q", before.Environment)
	}
	var seen []string
	for _, content := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(p.workspace, "bot-token"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, p.state().TokenSHA256)
	}
	if len(seen[0]) != 64 || seen[0] == seen[1] {
		t.Errorf("fingerprints of two tokens: %q", seen)
	}
}

func TestResume(t *testing.T) {
	server, workspace := gitServer(t, "app"), t.TempDir()
	repos := fmt.Sprintf(`REPOS_JSON=[{"url":"%s/app"}]`, server)
	first := start(t, workspace, prompt("write NOTES once"), repos)
	first.wantExit(0)
	made := first.report(1).Changes[0].Commit

	second := start(t, workspace, prompt("write NOTES twice", "exit 9", "never-ready"), repos, "IS_RESUME=true")
	second.waitFor("Resumed")
	state := second.state()
	if !state.Resume || state.Run != 2 || !state.Ready || len(state.Repos) != 1 || state.Repos[0].Commit != made {
		t.Errorf("resumed as %+v, the first run left commit %s", state, made)
	}
	second.terminate()
	second.wantExit(143)
	if report := second.report(2); !report.Resume || len(report.Changes) != 0 {
		t.Errorf("the resumed run reports %+v", report)
	}
	if text, err := os.ReadFile(filepath.Join(workspace, "repos", "app", "NOTES")); err != nil || string(text) != "once\n" {
		t.Errorf("after a resumed run the file holds %q, %v", text, err)
	}
	start(t, workspace, prompt("exit 9"), repos, "IS_RESUME=true", "RESUME_EXIT=0").wantExit(0)
	// A prompt that is executed again goes on from the commits that are there.
	again := start(t, workspace, prompt("write NOTES again"), repos)
	again.wantExit(0)
	if text, err := os.ReadFile(filepath.Join(workspace, "repos", "app", "NOTES")); err != nil || string(text) != "once\nagain\n" {
		t.Errorf("after a repeated run the file holds %q, %v", text, err)
	}
}

// TestAnyUser runs as a user that nobody has heard of, in group 0, as OpenShift
// does, in a workspace that only the group may write to.
func TestAnyUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("run the tests as root to try another user")
	}
	server := gitServer(t, "app")
	workspace, err := os.MkdirTemp("", "runner-workspace-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(workspace); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(workspace, 0o775); err != nil {
		t.Fatal(err)
	}
	user := func() *exec.Cmd {
		command := exec.Command(binary)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000650000, Gid: 0}}
		return command
	}
	p := startAs(t, user(), workspace, prompt("write A a"), fmt.Sprintf(`REPOS_JSON=[{"url":"%s/app","autoPush":true}]`, server))
	p.wantExit(0)
	if got := commits(t, server+"/app"); len(got) != 2 {
		t.Errorf("the server holds %+v", got)
	}
	if err := os.Chmod(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	startAs(t, user(), workspace, prompt("exit 0")).wantExit(2)
}

// mutePort is a port that accepts connections and never answers.
func mutePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
