package proc

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

var errNotYet = errors.New("not yet")

func shell(name, script string) Spec {
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, StopTimeout: 300 * time.Millisecond}
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

func TestCrashIsRestartedAndStopEndsIt(t *testing.T) {
	group := NewGroup(t.TempDir())
	process, err := group.Start(shell("sleeper", "echo started; exec sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	first := process.State().PID
	waitFor(t, "the first run wrote to the log", func() bool { return Tail(process.LogFile()) == "started" })
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the process is restarted", func() bool { s := process.State(); return s.Restarts == 1 && s.PID != 0 })
	second := process.State().PID
	waitFor(t, "both runs wrote to the log", func() bool { return strings.Count(Tail(process.LogFile()), "started") == 2 })
	if err := group.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(second, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is left (%v)", second, err)
	}
}

func TestStopKillsWhatIgnoresIt(t *testing.T) {
	group := NewGroup(t.TempDir())
	process, err := group.Start(shell("deaf", "trap '' TERM; echo deaf; while :; do sleep 300; done"))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the trap is set", func() bool { return Tail(process.LogFile()) == "deaf" })
	pid := process.State().PID
	if err := group.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is left (%v)", pid, err)
	}
}

func TestWaitReadyTellsWhyAProcessEnded(t *testing.T) {
	group := NewGroup(t.TempDir())
	process, err := group.Start(shell("broken", "echo port is taken >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	err = process.WaitReady(t.Context(), func(context.Context) error { return errNotYet })
	if err == nil || !strings.Contains(err.Error(), "port is taken") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("the error does not tell why: %v", err)
	}
	if err := group.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRunReturnsWhatWasSaid(t *testing.T) {
	out, err := Run(t.Context(), shell("", "echo fine"))
	if err != nil || out != "fine\n" {
		t.Errorf("got %q, %v", out, err)
	}
	_, err = Run(t.Context(), shell("", "echo no such device >&2; exit 1"))
	if err == nil || !strings.Contains(err.Error(), "no such device") {
		t.Errorf("the error does not tell why: %v", err)
	}
	_, err = Run(t.Context(), Spec{Path: "/nonexistent"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing program gives %v", err)
	}
}
