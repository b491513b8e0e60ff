package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ambient-code/agentic-operator/test/runner/internal/agui"
	"github.com/ambient-code/agentic-operator/test/runner/internal/artifact"
	"github.com/ambient-code/agentic-operator/test/runner/internal/githost"
)

// token is the run's token in these tests.
const token = "run-token-never-to-be-printed"

// binary is the runner as it goes into the image.
var binary string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "runner-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(folder, "runner")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	code := 1
	if err := build.Run(); err == nil && os.Chmod(folder, 0o755) == nil {
		code = m.Run()
	}
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// process is a running runner.
type process struct {
	t         *testing.T
	command   *exec.Cmd
	workspace string
	url       string // empty when it never served
	started   time.Time

	mu  sync.Mutex
	log bytes.Buffer

	copied chan struct{} // closed when the log is complete
}

// environment is all a runner needs, besides what a test adds. HOME is not set,
// as it may be in a container with a random user.
func environment(workspace string) []string {
	return []string{
		"AGENTIC_SESSION_NAME=session-1", "AGENTIC_SESSION_NAMESPACE=project", "AGUI_TOKEN=" + token,
		"AGUI_PORT=0", "WORKSPACE_PATH=" + workspace, "ARTIFACTS_DIR=artifacts", "USER_NAME=Ada",
		"ANTHROPIC_API_KEY=key-never-to-be-printed", "BOT_TOKEN_FILE=" + filepath.Join(workspace, "bot-token"),
	}
}

// start starts a runner and waits until it serves or has ended. As root it is
// the first process of its own namespace, as it is in a container: signals work
// differently there.
func start(t *testing.T, workspace string, more ...string) *process {
	t.Helper()
	return startAs(t, exec.Command(binary), workspace, more...)
}

func startAs(t *testing.T, command *exec.Cmd, workspace string, more ...string) *process {
	t.Helper()
	p := &process{t: t, command: command, workspace: workspace, copied: make(chan struct{})}
	command.Env = append(environment(workspace), more...)
	command.Dir = "/"
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if os.Getuid() == 0 {
		command.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = writer, writer
	p.started = time.Now()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go p.copyLog(reader, address)
	t.Cleanup(func() {
		if command.ProcessState == nil {
			if err := command.Process.Kill(); err != nil {
				t.Error(err)
			}
			p.wait()
		}
		if t.Failed() {
			t.Log("log of the runner:\n" + p.logged())
		}
	})
	select {
	case p.url = <-address:
	case <-p.copied:
	}
	return p
}

// copyLog keeps what the runner prints, and finds the address it serves on.
func (p *process) copyLog(from *os.File, address chan<- string) {
	defer close(p.copied)
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		p.mu.Lock()
		fmt.Fprintln(&p.log, lines.Text())
		p.mu.Unlock()
		if _, found, ok := strings.Cut(lines.Text(), "msg=serving address=[::]:"); ok {
			port, _, _ := strings.Cut(found, " ")
			address <- "http://127.0.0.1:" + port
		}
	}
	if err := from.Close(); err != nil {
		p.t.Error(err)
	}
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// wait waits for the end and returns the exit code as a container would have it.
func (p *process) wait() int {
	p.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.command.Wait() }()
	select {
	case err := <-ended:
		// An exit code other than 0 is an error too, but one to look at below.
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			p.t.Fatal(err)
		}
	case <-time.After(time.Minute):
		p.t.Fatalf("the runner did not end within a minute:\n%s", p.logged())
	}
	<-p.copied
	status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		p.t.Fatal("the system does not tell how the runner ended")
	}
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func (p *process) wantExit(code int) {
	p.t.Helper()
	if got := p.wait(); got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
}

// waitFor waits until the log holds a text.
func (p *process) waitFor(text string) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(p.logged(), text); {
		if time.Now().After(deadline) {
			p.t.Fatalf("the runner never said %q", text)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// call makes a call to the runner and returns status and answer.
func (p *process) call(method, path, body, withToken string) (int, string) {
	p.t.Helper()
	request, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if withToken != "" {
		request.Header.Set(agui.TokenHeader, withToken)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func (p *process) state() agui.State {
	p.t.Helper()
	status, answer := p.call("GET", "/state", "", token)
	var state agui.State
	if err := json.Unmarshal([]byte(answer), &state); err != nil || status != http.StatusOK {
		p.t.Fatalf("state: %d %s", status, answer)
	}
	return state
}

// report reads the report of a run, as it stands in the workspace.
func (p *process) report(run int) artifact.Report {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.workspace, "artifacts", fmt.Sprintf("run-%d", run), "report.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	var report artifact.Report
	if err := json.Unmarshal(text, &report); err != nil {
		p.t.Fatal(err)
	}
	return report
}

// gitServer serves repositories over HTTP and returns its address.
func gitServer(t *testing.T, names ...string) string {
	t.Helper()
	host := githost.New("")
	for _, name := range names {
		if err := host.Add(name); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(host.Handler(slog.New(slog.DiscardHandler)))
	t.Cleanup(server.Close)
	return server.URL
}

func commits(t *testing.T, repoURL string) []githost.Commit {
	t.Helper()
	response, err := http.Get(repoURL + "/commits")
	if err != nil {
		t.Fatal(err)
	}
	var listed []githost.Commit
	if err := json.NewDecoder(response.Body).Decode(&listed); err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return listed
}
