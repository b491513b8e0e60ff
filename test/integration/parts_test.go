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
	"time"
)

// The tests that run one after another mostly wait. So a run of all tests is done in several parts at
// the same time, each in a process and with a cluster of its own. The first has all that is in none of
// the others, and the verdict on the access of all of them.

// otherParts is where the tests of the other parts are.
var otherParts = [][]string{
	{"wiring_*_test.go", "wiring_test.go", "serving_*_test.go", "serving_test.go", "upgrade_test.go", "shared_secrets_test.go", "runtimes_test.go"},
	{"crash_test.go", "restore_test.go", "platform_test.go", "outage_test.go", "scale_test.go", "metrics_test.go"},
}

// partVariable names, in the environment of another part, the file for the access that it used.
const partVariable = "INTEGRATION_PART"

// part is another part while it runs.
type part struct {
	command *exec.Cmd
	// lifeline ends the part with this process, however that ends.
	lifeline io.Closer
	output   bytes.Buffer
	used     string
	ended    bool
}

// startOthers starts the other parts, and takes their tests out of this process. There are none where
// not all tests are asked for or the cluster is given.
func startOthers(ctx context.Context) ([]*part, error) {
	if !everything() || os.Getenv("INTEGRATION_KUBECONFIG") != "" {
		return nil, nil
	}
	var started []*part
	var taken []string
	for _, files := range otherParts {
		tests, err := testsIn(files)
		if err != nil {
			return started, err
		}
		p, err := startPart(ctx, tests)
		if err != nil {
			return started, fmt.Errorf("starting another part of the tests: %w", err)
		}
		started, taken = append(started, p), append(taken, tests...)
	}
	return started, flag.Set("test.skip", oneOf(taken))
}

func oneOf(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

func startPart(ctx context.Context, tests []string) (*part, error) {
	folder, err := os.MkdirTemp("", "integration-part-")
	if err != nil {
		return nil, err
	}
	p := &part{used: filepath.Join(folder, "access.json")}
	args := []string{"-test.run=" + oneOf(tests)}
	for _, name := range []string{"test.v", "test.timeout", "test.short", "test.failfast", "test.count"} {
		if f := flag.Lookup(name); f.Value.String() != f.DefValue {
			args = append(args, "-"+name+"="+f.Value.String())
		}
	}
	p.command = exec.CommandContext(ctx, os.Args[0], args...)
	p.command.Env = append(os.Environ(), partVariable+"="+p.used)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	if p.lifeline, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.command.Start()
}

// endWithTheFirst ends another part when the first is gone.
func endWithTheFirst() {
	if os.Getenv(partVariable) == "" {
		return
	}
	go func() {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "integration tests:", err)
		}
		os.Exit(1)
	}()
}

// end waits for a part, prints what it said, and adds the access that it used.
func (p *part) end(to *accessUsed) error {
	began := time.Now()
	err := p.command.Wait()
	p.ended = true
	fmt.Printf("Another part of the tests, waited for %s:\n%s", time.Since(began).Round(time.Second), p.output.String())
	if err != nil {
		return fmt.Errorf("another part of the tests: %w", err)
	}
	content, err := os.ReadFile(p.used)
	if err != nil {
		return fmt.Errorf("reading the access that another part used: %w", err)
	}
	var more accessUsed
	if err := json.Unmarshal(content, &more); err != nil {
		return fmt.Errorf("reading the access that another part used: %w", err)
	}
	to.add(&more)
	return nil
}

// abandon ends those parts for whose end nobody waited, as the first did not come that far.
func abandon(parts []*part) error {
	var failures []error
	for _, p := range parts {
		failures = append(failures, os.RemoveAll(filepath.Dir(p.used)))
		if p.ended {
			continue
		}
		failures = append(failures, p.lifeline.Close())
		var ended *exec.ExitError
		if err := p.command.Wait(); !errors.As(err, &ended) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
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
