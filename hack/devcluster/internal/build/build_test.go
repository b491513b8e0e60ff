package build

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBuildIsKeptUntilTheSourceChanges(t *testing.T) {
	b := &Builder{Source: t.TempDir(), Cache: t.TempDir(), goVersion: "go1.26"}
	source := filepath.Join(b.Source, "m", "main.go")
	write(t, filepath.Join(b.Source, "m", "go.mod"), "module example.com/m\n\ngo 1.26\n")
	write(t, source, "package main\n\nvar word = \"none\"\n\nfunc main() { println(word) }\n")
	components := []Component{{Name: "speaker", Module: "m", Package: ".", LDFlags: "-X main.word=first"}}
	progress := NewProgress(io.Discard)

	first, err := b.Build(t.Context(), components, progress)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), filepath.Join(first, "speaker")).CombinedOutput(); err != nil || string(said) != "first\n" {
		t.Errorf("the built program says %q (%v)", said, err)
	}
	if missing, err := b.Missing(components); err != nil || len(missing) != 0 {
		t.Errorf("missing after the build: %v (%v)", missing, err)
	}

	write(t, source, "package main\n\nfunc main() { broken }\n")
	if missing, err := b.Missing(components); err != nil || len(missing) != 1 {
		t.Errorf("a change of the source is not noticed: %v (%v)", missing, err)
	}
	if _, err := b.Build(t.Context(), components, progress); err == nil || !strings.Contains(err.Error(), "undefined: broken") {
		t.Errorf("the error does not tell what the compiler said: %v", err)
	}
	if missing, err := b.Missing(components); err != nil || len(missing) != 1 {
		t.Errorf("a failed build left a program: %v (%v)", missing, err)
	}
}
