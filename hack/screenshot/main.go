// Command screenshot makes the pictures of docs/images: it runs the end-to-end test of monitoring,
// in which a real Prometheus watches the operator, and has headless Chromium draw Prometheus' own
// page as the test leaves it. It needs root, Debian's chromium and, the first time, npm, with which
// it builds the page.
//
//	go run ./hack/screenshot
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/monitoring"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "screenshot:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	pageOnly := flag.Bool("page-only", false, "only build the page, for the demo")
	flag.Parse()
	root, err := rig.Root()
	if err != nil {
		return err
	}
	page, source, err := monitoring.Page(ctx)
	if err != nil {
		return err
	}
	if !monitoring.HasPage(page) {
		if err := do(ctx, root, nil, filepath.Join(root, "hack", "screenshot", "page.sh"), source, page); err != nil {
			return err
		}
	}
	if *pageOnly {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("the end-to-end test needs a real node: run this as root")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		return errors.New("chromium is missing: apt-get install --no-install-recommends chromium fonts-dejavu-core")
	}
	images := filepath.Join(root, "docs", "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return fmt.Errorf("making the folder of the pictures: %w", err)
	}
	return do(ctx, root, []string{monitoring.PicturesVariable + "=" + images, "E2E=required"},
		"go", "test", "-tags", "e2e", "-count=1", "-timeout=60m", "-v", "./test/e2e/monitoring")
}

// do runs a command that a person watches.
func do(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}
