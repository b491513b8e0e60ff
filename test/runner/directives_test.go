package main_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func prompt(lines ...string) string { return "INITIAL_PROMPT=" + strings.Join(lines, "\n") }

func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		prompt string
		code   int
		says   string
	}{
		"end of script": {"Say hello to everybody, please.", 0, "Finished"},
		"empty":         {"", 0, "Finished"},
		"exit 0":        {"exit 0\nexit 9", 0, ""},
		"exit 1":        {"exit 1", 1, ""},
		"exit 2":        {"exit 2", 2, ""},
		"exit 42":       {"sleep 10ms\nexit 42", 42, "Sleeping"},
		"fail":          {"fail the model is not reachable", 1, "the model is not reachable"},
		"crash":         {"crash", 139, "Crashing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, t.TempDir(), prompt(test.prompt))
			p.wantExit(test.code)
			if !strings.Contains(p.logged(), test.says) {
				t.Errorf("it did not say %q", test.says)
			}
		})
	}
}

func TestCrashIsASegmentationFault(t *testing.T) {
	p := start(t, t.TempDir(), prompt("crash"))
	p.wantExit(139)
	if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGSEGV {
		t.Errorf("it ended with %s", p.command.ProcessState)
	}
}

func TestWriteCommitsPushesAndReports(t *testing.T) {
	server := gitServer(t, "app", "docs")
	p := start(t, t.TempDir(), prompt("Please greet the world.", "write HELLO.md Hello, world", "write CHANGELOG.md Greet"),
		fmt.Sprintf(`REPOS_JSON=[{"url":"%[1]s/app.git","branch":"main","autoPush":true},{"url":"%[1]s/docs"}]`, server))
	p.wantExit(0)
	pushed := commits(t, server+"/app")
	if len(pushed) != 3 || pushed[1].Message != "Hello, world" || pushed[0].Message != "Greet" ||
		pushed[0].Author != "Ada" || pushed[0].Email != "session-1@project.ambient-code.local" {
		t.Errorf("the server holds %+v", pushed)
	}
	if got := commits(t, server+"/docs"); len(got) != 1 {
		t.Errorf("without autoPush the server got %+v", got)
	}
	report := p.report(1)
	if len(report.Changes) != 4 || report.Session != "session-1" || report.Resume || report.Outcome != "ended with exit code 0" {
		t.Fatalf("report %+v", report)
	}
	first := report.Changes[0]
	if first.Repository != "app" || first.File != "HELLO.md" || first.Commit != pushed[1].Hash || !first.Pushed || report.Changes[1].Pushed {
		t.Errorf("report %+v", report)
	}
	if text, err := os.ReadFile(filepath.Join(p.workspace, "repos", "docs", "HELLO.md")); err != nil || string(text) != "Hello, world\n" {
		t.Errorf("the work tree holds %q, %v", text, err)
	}
	for _, secret := range []string{token, "key-never", "Please greet"} {
		if strings.Contains(p.logged(), secret) {
			t.Errorf("the log gives %q away", secret)
		}
	}
}

func TestWorkThatCannotBeDone(t *testing.T) {
	server := gitServer(t, "app")
	for name, more := range map[string][]string{
		"no such repository": {fmt.Sprintf(`REPOS_JSON=[{"url":"%s/missing"}]`, server)},
		"no such branch":     {fmt.Sprintf(`REPOS_JSON=[{"url":"%s/app","branch":"missing"}]`, server)},
		"outside":            {fmt.Sprintf(`REPOS_JSON=[{"url":"%s/app"}]`, server), prompt("write ../../x text")},
		"no such workflow":   {"ACTIVE_WORKFLOW_GIT_URL=" + server + "/missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, t.TempDir(), more...)
			p.wantExit(1)
			if outcome := p.report(1).Outcome; !strings.HasPrefix(outcome, "failed: ") {
				t.Errorf("the report says %q", outcome)
			}
		})
	}
}

func TestPrerequisites(t *testing.T) {
	for _, entry := range []string{
		"AGENTIC_SESSION_NAME=", "ANTHROPIC_API_KEY=", "WORKSPACE_PATH=/does/not/exist", "REPOS_JSON=nonsense", "AGUI_TOKEN=",
	} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			p := start(t, t.TempDir(), entry, prompt("exit 0"))
			p.wantExit(2)
			if !strings.Contains(p.logged(), "a prerequisite is missing") {
				t.Error("it did not say what is missing")
			}
		})
	}
	t.Run("Vertex instead of a key", func(t *testing.T) {
		start(t, t.TempDir(), "ANTHROPIC_API_KEY=", "USE_VERTEX=1").wantExit(0)
	})
	t.Run("port taken", func(t *testing.T) {
		_, port, _ := strings.Cut(gitServer(t)[len("http://"):], ":")
		start(t, t.TempDir(), "AGUI_PORT="+port).wantExit(2)
	})
}

func TestSIGTERM(t *testing.T) {
	server := gitServer(t, "app")
	for name, more := range map[string][]string{
		"hanging":  {prompt("write A a", "hang"), fmt.Sprintf(`REPOS_JSON=[{"url":"%s/app"}]`, server)},
		"sleeping": {prompt("sleep 1h")},
		"resumed":  {prompt("exit 5"), "IS_RESUME=true"},
		// An API server that does not answer must not keep the runner up.
		"mute API": {prompt("hang"), "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + mutePort(t)},
	} {
		t.Run(name, func(t *testing.T) {
			workspace := t.TempDir()
			if err := os.WriteFile(filepath.Join(workspace, "bot-token"), []byte("token"), 0o600); err != nil {
				t.Fatal(err)
			}
			p := start(t, workspace, more...)
			wanted := "Waiting to be stopped"
			switch name {
			case "sleeping":
				wanted = "Sleeping"
			case "resumed":
				wanted = "waiting to be stopped"
			}
			p.waitFor(wanted)
			p.terminate()
			sent := time.Now()
			p.wantExit(143)
			// A second is promised; as much again for a busy machine.
			if took := time.Since(sent); took > 2*time.Second {
				t.Errorf("it took %s to stop", took)
			}
			if outcome := p.report(1).Outcome; outcome != "stopped by SIGTERM" {
				t.Errorf("the report says %q", outcome)
			}
		})
	}
}

func TestIgnoreSIGTERM(t *testing.T) {
	p := start(t, t.TempDir(), prompt("hang", "ignore-sigterm"))
	p.waitFor("Waiting to be stopped")
	p.terminate()
	p.waitFor("SIGTERM is ignored")
	if status, _ := p.call("GET", "/health", "", ""); status != http.StatusOK {
		t.Errorf("after an ignored SIGTERM /health answers %d", status)
	}
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wantExit(137)
}

func TestReadiness(t *testing.T) {
	const pause = 3 * time.Second
	p := start(t, t.TempDir(), prompt("ready-after "+pause.String(), "hang"))
	for ready := false; !ready; time.Sleep(20 * time.Millisecond) {
		asked := time.Now()
		status, _ := p.call("GET", "/health", "", "")
		ready = status == http.StatusOK
		if ready && time.Since(p.started) < pause {
			t.Fatalf("ready %s after the start, want %s", time.Since(p.started), pause)
		}
		if !ready && asked.Sub(p.started) > pause+20*time.Second {
			t.Fatal("never ready")
		}
	}
	never := start(t, t.TempDir(), prompt("never-ready", "hang"))
	if status, _ := never.call("GET", "/health", "", ""); status != http.StatusServiceUnavailable {
		t.Errorf("never-ready, but /health answers %d", status)
	}
	start(t, t.TempDir(), prompt("never-ready")).wantExit(0)
}

func TestOutOfMemory(t *testing.T) {
	group := fmt.Sprintf("/sys/fs/cgroup/memory/runner-test-%d", os.Getpid())
	limit := "memory.limit_in_bytes"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		group, limit = fmt.Sprintf("/sys/fs/cgroup/runner-test-%d", os.Getpid()), "memory.max"
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("a process with a memory limit cannot be made here (run the tests as root for it): %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(group); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(group, limit), []byte("67108864"), 0o600); err != nil {
		t.Skipf("the memory of a process cannot be limited here: %v", err)
	}
	command := exec.Command("sh", "-c", fmt.Sprintf("echo 0 > %s/cgroup.procs && exec %s", group, binary))
	p := startAs(t, command, t.TempDir(), prompt("oom"), "PATH="+os.Getenv("PATH"))
	p.wantExit(137)
	events := "memory.oom_control"
	if limit == "memory.max" {
		events = "memory.events"
	}
	counted, err := os.ReadFile(filepath.Join(group, events))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(counted), "oom_kill 1\n") {
		t.Errorf("it was not the kernel that ended it: %s", counted)
	}
}

// terminate asks the runner to stop, as a kubelet does.
func (p *process) terminate() {
	p.t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}
