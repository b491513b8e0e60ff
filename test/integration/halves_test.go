package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The tests that run one after another mostly wait. So a run of all tests is done in two halves at
// the same time, each in a process and with a cluster of its own: the second one has what concerns
// the operator's own surroundings, the first everything else and the verdict on the access of both.

// secondHalf is where the tests of the second half are.
var secondHalf = []string{"wiring_*_test.go", "wiring_test.go", "serving_*_test.go", "serving_test.go", "upgrade_test.go", "shared_secrets_test.go", "runtimes_test.go"}

// halfVariable names, in the environment of the second half, the file for the access that it used.
const halfVariable = "INTEGRATION_HALF"

// half is the second half while it runs.
type half struct {
	command *exec.Cmd
	// lifeline ends the second half with this process, however that ends.
	lifeline io.Closer
	output   bytes.Buffer
	used     string
	ended    bool
}

// startSecondHalf starts the second half, and takes its tests out of this process; nil where not all
// tests are asked for or the cluster is given.
func startSecondHalf(ctx context.Context) (*half, error) {
	if !everything() || os.Getenv("INTEGRATION_KUBECONFIG") != "" {
		return nil, nil
	}
	tests, err := testsIn(secondHalf)
	if err != nil {
		return nil, err
	}
	pattern := "^(" + strings.Join(tests, "|") + ")$"
	folder, err := os.MkdirTemp("", "integration-half-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the second half: %w", err)
	}
	h := &half{used: filepath.Join(folder, "access.json")}
	args := []string{"-test.run=" + pattern}
	for _, name := range []string{"test.v", "test.timeout", "test.short", "test.failfast", "test.count"} {
		if f := flag.Lookup(name); f.Value.String() != f.DefValue {
			args = append(args, "-"+name+"="+f.Value.String())
		}
	}
	h.command = exec.CommandContext(ctx, os.Args[0], args...)
	h.command.Env = append(os.Environ(), halfVariable+"="+h.used)
	h.command.Stdout, h.command.Stderr = &h.output, &h.output
	if h.lifeline, err = h.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the second half: %w", err)
	}
	if err := h.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the second half: %w", err)
	}
	return h, flag.Set("test.skip", pattern)
}

// endWithFirstHalf ends a second half when the first is gone.
func endWithFirstHalf() {
	if os.Getenv(halfVariable) == "" {
		return
	}
	go func() {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "integration tests:", err)
		}
		os.Exit(1)
	}()
}

// end waits for the second half, prints what it said, and adds the access that it used.
func (h *half) end(to *accessUsed) error {
	err := h.command.Wait()
	h.ended = true
	fmt.Printf("The second half of the tests:\n%s", h.output.String())
	if err != nil {
		return fmt.Errorf("the second half: %w", err)
	}
	content, err := os.ReadFile(h.used)
	if err != nil {
		return fmt.Errorf("reading the access that the second half used: %w", err)
	}
	var more accessUsed
	if err := json.Unmarshal(content, &more); err != nil {
		return fmt.Errorf("reading the access that the second half used: %w", err)
	}
	to.add(&more)
	return nil
}

// abandon ends the second half if the first did not come as far as its end.
func (h *half) abandon() error {
	if h == nil {
		return nil
	}
	err := os.RemoveAll(filepath.Dir(h.used))
	if h.ended {
		return err
	}
	err = errors.Join(err, h.lifeline.Close())
	var ended *exec.ExitError
	if result := h.command.Wait(); !errors.As(result, &ended) {
		err = errors.Join(err, result)
	}
	return err
}

// testsIn lists the tests in files of this package.
func testsIn(patterns []string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no test files %s (%w)", pattern, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("looking for tests in %s: %w", name, err)
			}
			for _, declared := range file.Decls {
				if f, is := declared.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
					names = append(names, f.Name.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
