//go:build e2e

// Package olm installs the operator with a real Operator Lifecycle Manager on a real node, from the
// images and the catalog of its releases, and upgrades it while sessions run. It needs root; "make e2e"
// runs it.
package olm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/olm"
)

// soon is enough for what should take seconds, on a machine that has much else to do.
const soon = 3 * time.Minute

// namespace is where the operator is installed: not where the bundle suggests. Each test of an install
// mode has one of its own, before the tests that run side by side.
var namespace = "tools-of-the-team"

var (
	cluster   *rig.Cluster
	lifecycle *olm.Lifecycle
	// versions are the released ones, oldest first, then the one being worked on, and one after that.
	versions []olm.Version
	// current is the version being worked on.
	current olm.Version
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the client says in errors what it has to say
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e of OLM:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	if os.Geteuid() != 0 && os.Getenv("E2E") != "required" {
		fmt.Println("skipped: a real node needs root; run: sudo make e2e")
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "e2e-olm-")
	if err != nil {
		return 1, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cluster, err = rig.Up(ctx, rig.Options{
		Name: fmt.Sprintf("e2e-olm-%d", os.Getpid()), Node: rig.NodeReal, Audit: true, DieWithUs: true, Progress: os.Stdout,
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, cluster.Down(ending))
	}()
	if lifecycle, err = olm.Install(ctx, cluster, dir); err != nil {
		return 1, err
	}
	if err := publish(ctx); err != nil {
		return 1, errors.Join(err, lifecycle.Stop())
	}
	code = m.Run()
	return code, lifecycle.Stop()
}

// publish publishes every version.
func publish(ctx context.Context) error {
	var err error
	if versions, err = lifecycle.Versions(ctx); err != nil {
		return err
	}
	current = versions[len(versions)-1]
	after, err := lifecycle.After(ctx, current)
	if err != nil {
		return err
	}
	versions = append(versions, after)
	for _, v := range versions {
		from, err := lifecycle.Publish(ctx, v)
		if err != nil {
			return err
		}
		fmt.Printf("version %s of the operator is built from %s\n", v.Number, from)
	}
	return lifecycle.PublishRunner(ctx)
}
