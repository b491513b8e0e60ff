package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/internal/config"
)

func logged(t *testing.T, environment map[string]string) []string {
	t.Helper()
	settings, err := config.Load(nil, func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := logger(settings, &out)
	log.Info("Phase changed", "run", 3)
	log.V(1).Info("Status changed")
	log.Error(errors.New("no answer"), "Writing failed")
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestLogsAreForPrograms(t *testing.T) {
	lines := logged(t, nil)
	if len(lines) != 2 {
		t.Fatalf("want one line for each entry and none for details, got %q", lines)
	}
	for i, level := range []string{"info", "error"} {
		entry := map[string]any{}
		if err := json.Unmarshal([]byte(lines[i]), &entry); err != nil {
			t.Fatalf("line %q is not JSON: %v", lines[i], err)
		}
		if entry["level"] != level || entry["ts"] == nil || entry["msg"] == nil {
			t.Errorf("line %q wants level %s, ts and msg", lines[i], level)
		}
	}
}

func TestDevModeLogsForPeople(t *testing.T) {
	lines := logged(t, map[string]string{"DEV_MODE": "true"})
	if len(lines) != 3 {
		t.Fatalf("want one line for each entry, details too, and no stack traces, got %q", lines)
	}
	for _, line := range lines {
		if json.Valid([]byte(line)) || !strings.Contains(line, "\t") {
			t.Errorf("line %q wants columns", line)
		}
	}
	if !strings.Contains(lines[1], "DEBUG") {
		t.Errorf("line %q wants the details that are left out else", lines[1])
	}
}
