package checks_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// scorecardResult is what a scorecard test prints.
type scorecardResult struct {
	Results []struct {
		Name        string
		State       string
		Errors      []string
		Suggestions []string
	}
}

// The program that runs in scorecard's pods wants the bundle at /bundle, so it gets a root of its
// own with both in it.
func TestCase57ScorecardHasNothingToSuggest(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		jail := t.TempDir()
		if err := os.CopyFS(filepath.Join(jail, "bundle"), os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(program(t, "scorecard-test"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Mkdir(filepath.Join(jail, "tmp"), 0o777), os.WriteFile(filepath.Join(jail, "scorecard-test"), content, 0o755)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"basic-check-spec", "olm-bundle-validation", "olm-crds-have-validation", "olm-crds-have-resources", "olm-spec-descriptors", "olm-status-descriptors"} {
			t.Run(name, func(t *testing.T) { scorecard(t, jail, name) })
		}
	})
}

func scorecard(t *testing.T, jail, name string) {
	t.Helper()
	cmd := exec.Command("/scorecard-test", name)
	cmd.Dir, cmd.Env = "/", []string{"TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: jail}
	if uid := os.Getuid(); uid != 0 {
		// Only root may change its root; in a user namespace of our own we are.
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var result scorecardResult
	if err := json.Unmarshal(out, &result); err != nil || len(result.Results) == 0 {
		t.Fatalf("no result: %v: %s", err, out)
	}
	for _, r := range result.Results {
		if r.State != "pass" || len(r.Errors) > 0 {
			t.Errorf("%s: %s: %q", r.Name, r.State, r.Errors)
		}
		if len(r.Suggestions) > 0 {
			t.Errorf("%s: suggestions: %q", r.Name, r.Suggestions)
		}
	}
}

// Each kind has an example that names what it is for.
func TestCase57EveryKindHasAnExample(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		have := map[string]int{}
		for _, e := range examples(t, readCSV(t, dir)) {
			have[e.GetKind()]++
			if e.GetName() == "" || e.GetNamespace() != "" {
				t.Errorf("the example %s %q must have a name and leave the namespace to its user", e.GetKind(), e.GetName())
			}
		}
		for kind := range crds(t, dir) {
			if have[kind] == 0 {
				t.Errorf("%s has no example", kind)
			}
		}
	})
}
