package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// skewVariable tells the program that skewed builds how many seconds its clock is ahead.
const skewVariable = "CLOCK_SKEW_SECONDS"

// The kernel has one clock for all programs, and Go asks the kernel and no library. So the operator is
// built from its own sources as they are, with a standard library whose time.Now adds what the
// environment says. Everything in the process has that clock: status, leases, tokens, certificates.
const (
	nowReads = "\tsec, nsec, mono := runtimeNow()\n"
	skewFile = `package time

import "syscall"

var skew = func() (seconds int64) {
	text, _ := syscall.Getenv("` + skewVariable + `")
	sign := int64(1)
	for i := range len(text) {
		switch digit := text[i]; {
		case i == 0 && digit == '-':
			sign = -1
		case digit < '0' || digit > '9':
			return 0
		default:
			seconds = seconds*10 + int64(digit-'0')
		}
	}
	return sign * seconds
}()
`
)

// skewed builds that operator and returns its path. The first time that takes as long as to build
// everything; the compiler's cache keeps it.
func skewed(ctx context.Context, cluster *rig.Cluster, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("finding the standard library: %w", err)
	}
	library := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(library, "time.go"))
	if err != nil {
		return "", fmt.Errorf("reading the standard library: %w", err)
	}
	changed := strings.Replace(string(source), nowReads, nowReads+"\tsec += skew\n", 1)
	if changed == string(source) {
		return "", errors.New("time.Now of this Go is not as it was: clocks cannot be skewed; leave that out with -skew=false")
	}
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": changed, "skew.go": skewFile} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("writing the skewed clock: %w", err)
		}
		replace[filepath.Join(library, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("writing what replaces the clock: %w", err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return "", fmt.Errorf("writing what replaces the clock: %w", err)
	}
	return cluster.BuildOperator(ctx, "operator-skewed", "-overlay", path)
}
