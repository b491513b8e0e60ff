package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"dev", "a", "e2e-7"} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for _, name := range []string{"", "-a", "a-", "A", "a/b", "..", "a b", strings.Repeat("a", 41)} {
		if CheckName(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func TestAliveIsTheLock(t *testing.T) {
	layout := Layout{Dir: t.TempDir()}
	expect := func(want bool) {
		t.Helper()
		if alive, err := layout.Alive(); err != nil || alive != want {
			t.Fatalf("alive is %v (%v), want %v", alive, err, want)
		}
	}
	expect(false)
	release, err := layout.Hold()
	if err != nil {
		t.Fatal(err)
	}
	expect(true)
	if _, err := layout.Hold(); err == nil {
		t.Error("two supervisors hold one cluster")
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	expect(false)
}

func TestRemoveKeepsLogs(t *testing.T) {
	layout := Layout{Dir: filepath.Join(t.TempDir(), "c")}
	if err := layout.Make(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(layout.Logs(), "etcd.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := layout.Remove(true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the log is gone: %v", err)
	}
	if _, err := os.Stat(layout.PKI()); err == nil {
		t.Error("keys were left with the logs")
	}
	if err := layout.Remove(false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(layout.Dir); err == nil {
		t.Error("the folder is left")
	}
}

func TestChoosePorts(t *testing.T) {
	first, err := ChoosePorts(nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ChoosePorts([]Ports{first})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range append(first.list(), second.list()...) {
		if port == 0 || seen[port] {
			t.Errorf("port %d was given twice or not at all: %+v %+v", port, first, second)
		}
		seen[port] = true
	}
}
