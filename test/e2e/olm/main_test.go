//go:build e2e

// Package olm installs the operator with a real Operator Lifecycle Manager on a real node, from the
// images and the catalog of its releases, and upgrades it while sessions run. It needs root; "make
// e2e-olm" runs it.
package olm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/olm"
)

// soon is enough for what should take seconds, on a machine that has much else to do.
const soon = 3 * time.Minute

var (
	cluster   *rig.Cluster
	lifecycle *olm.Lifecycle
	// versions are the released ones, oldest first, then the one being worked on, and one after that.
	versions []olm.Version
	// current is the version being worked on.
	current olm.Version
)

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "e2e-olm", Audit: true, Prepare: prepare}.Run(m.Run))
}

// prepare puts the Operator Lifecycle Manager onto the cluster and publishes every version.
func prepare(ctx context.Context, up *rig.Cluster, dir string) (after func() error, err error) {
	cluster = up
	if lifecycle, err = olm.Install(ctx, cluster, dir); err != nil {
		return nil, err
	}
	if err := publish(ctx); err != nil {
		return nil, errors.Join(err, lifecycle.Stop())
	}
	if err := lifecycle.Available(ctx); err != nil {
		return nil, errors.Join(err, lifecycle.Stop())
	}
	return lifecycle.Stop, nil
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
