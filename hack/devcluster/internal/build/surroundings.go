package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// SourceVariable names the environment variable that says where hack/devcluster lies, for a
// program that was moved away from its sources.
const SourceVariable = "DEVCLUSTER_SOURCE"

const (
	oldestGoMinor = 26
	// spaceNeeded is what a cold build of everything takes, the Go build cache included.
	spaceNeeded = 6 << 30
)

// findSource finds the folder components/. Its modules can't be embedded into this program (a
// module never embeds files of another), so they are looked for where this program was compiled
// and then upwards from the working directory.
func findSource() (string, error) {
	if dir := os.Getenv(SourceVariable); dir != "" {
		components := filepath.Join(dir, "components")
		if !holdsComponents(components) {
			return "", fmt.Errorf("%s is %s, which has no components/kubernetes/go.mod: set it to the folder hack/devcluster", SourceVariable, dir)
		}
		return filepath.Abs(components)
	}
	var candidates []string
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		candidates = append(candidates, filepath.Join(filepath.Dir(file), "..", "..", "components"))
	}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			candidates = append(candidates, filepath.Join(dir, "components"), filepath.Join(dir, "hack", "devcluster", "components"))
		}
	}
	for _, dir := range candidates {
		if holdsComponents(dir) {
			return filepath.Clean(dir), nil
		}
	}
	return "", fmt.Errorf("the sources of this program are not where it was compiled: run it inside the repository or set %s to the folder hack/devcluster", SourceVariable)
}

func holdsComponents(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "kubernetes", "go.mod"))
	return err == nil
}

var goRelease = regexp.MustCompile(`^go1\.(\d+)`)

// goVersion asks the go command for its version and refuses one that is too old.
func goVersion(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = dir
	output, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("the go command is not on PATH: install Go 1.%d or newer to build the cluster's programs", oldestGoMinor)
	}
	if err != nil {
		return "", fmt.Errorf("asking go for its version: %w", err)
	}
	version := strings.TrimSpace(string(output))
	match := goRelease.FindStringSubmatch(version)
	if match == nil {
		return version, nil // a development version
	}
	if minor, err := strconv.Atoi(match[1]); err != nil || minor < oldestGoMinor {
		return "", fmt.Errorf("%s is too old to build the cluster's programs: install Go 1.%d or newer", version, oldestGoMinor)
	}
	return version, nil
}

func checkSpace(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("asking for the free space of %s: %w", dir, err)
	}
	free := stat.Bavail * uint64(stat.Bsize)
	if free < spaceNeeded {
		return fmt.Errorf("only %.1f GiB are free below %s and the first build needs %d: make room or set %s to a folder on another disk",
			float64(free)/(1<<30), dir, spaceNeeded>>30, CacheVariable)
	}
	return nil
}

// lock takes the lock file of the cache, and says so when it has to wait for another build.
func lock(ctx context.Context, path string, progress *Progress) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the build: %w", err)
	}
	for waiting := false; ; waiting = true {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file.Close, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking the build: %w", err), file.Close())
		}
		if !waiting {
			progress.Say("waiting for another build to end")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for another build: %w", ctx.Err()), file.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
