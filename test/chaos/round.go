package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// round is what happens from one seed.
type round struct {
	*chaos
	seed   uint64
	prefix string // of its namespaces
	began  time.Time
	// whole is the context of the round, which outlasts the time in which things are broken.
	whole context.Context //nolint:containedctx // what was begun is finished when the time is over
	// good are the projects of sessions that are judged one by one; those of the hostile tenant are
	// judged by what holds for all.
	good, hostile []string

	mu     sync.Mutex
	doomed []string
	wishes []*wish
}

// dice are those of one of the actors, so that the order in which they act makes no difference.
func (r *round) dice(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(r.seed, actor)) }

// settling is how long it may take at the most until all is as it should be when nothing is broken
// any more.
const settling = 4 * time.Minute

// round breaks things for a while, lets them settle, and judges.
func (c *chaos) round(ctx context.Context, seed uint64) error {
	r := &round{chaos: c, seed: seed, prefix: fmt.Sprintf("chaos-%d-", seed), began: time.Now(), whole: ctx}
	r.good = []string{r.prefix + "a", r.prefix + "b", r.prefix + "c"}
	r.hostile = []string{r.prefix + "hostile", r.prefix + "hostile-too"}
	for _, namespace := range append(slices.Clone(r.good), r.hostile...) {
		if err := r.project(ctx, namespace); err != nil {
			return err
		}
	}
	if err := c.rightClocks(ctx); err != nil {
		return err
	}
	if err := r.disturb(ctx); err != nil {
		return err
	}
	c.brought += len(r.wishes)
	fmt.Printf("  %5.1f s: nothing is broken any more\n", time.Since(r.began).Seconds())
	if _, err := c.alone(ctx); err != nil {
		return err
	}
	r.settle(ctx)
	r.judge()
	if err := r.judgeNumbers(ctx); err != nil {
		return err
	}
	if err := r.judgeEvents(ctx); err != nil {
		return err
	}
	return r.clear(ctx)
}

// disturb has everybody act until the time is over.
func (r *round) disturb(ctx context.Context) error {
	for _, replica := range r.replicas {
		replica.proxy.set(r.failing, 0)
	}
	defer r.mend()
	limited, cancel := context.WithTimeout(ctx, r.lasts)
	defer cancel()
	group := errgroup.Group{}
	group.Go(func() error { return r.waves(ctx) })
	group.Go(func() error { return r.users(limited) })
	group.Go(func() error { return r.hostility(limited) })
	group.Go(func() error { return r.breakThings(limited, 4, ofProcesses) })
	group.Go(func() error { return r.breakThings(limited, 5, ofSurroundings) })
	return group.Wait()
}

// settle waits until every session is where its user wants it, and then for what is not.
func (r *round) settle(ctx context.Context) {
	began := time.Now()
	var waits []error
	for time.Since(began) < settling && ctx.Err() == nil {
		waits = waits[:0]
		for _, w := range r.wishes {
			if err := r.fulfilled(w); err != nil {
				waits = append(waits, fmt.Errorf("session %s: %w", w.key, err))
			}
		}
		if len(waits) == 0 {
			fmt.Printf("  %5.1f s: all has settled\n", time.Since(r.began).Seconds())
			break
		}
		pause(ctx, 250*time.Millisecond)
	}
	for _, wait := range waits {
		r.violation("seed %d: not within %s after the last fault: %v", r.seed, settling, wait)
	}
	for _, w := range r.wishes {
		if err := r.fulfilled(w); err != nil {
			fmt.Print(r.evidence(w))
		}
	}
	r.holds("none is stuck, the last request won", len(r.wishes)-len(waits))
}

// clear deletes the round's sessions, waits until nothing of them is left, and has their projects go.
func (r *round) clear(ctx context.Context) error {
	projects := append(slices.Clone(r.good), r.hostile...)
	for _, namespace := range projects {
		err := insist(ctx, func() error {
			return r.cluster.Client.DeleteAllOf(ctx, &v1alpha1.AgenticSession{}, client.InNamespace(namespace))
		})
		if err != nil {
			return fmt.Errorf("deleting the sessions of %s: %w", namespace, err)
		}
	}
	deadline := time.Now().Add(10 * time.Minute)
	for {
		left, err := r.left(ctx)
		if err == nil && left == 0 {
			break
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			r.violation("seed %d: %d sessions were not gone 10 min after they were deleted", r.seed, left)
			return errors.Join(err, ctx.Err())
		}
		pause(ctx, time.Second)
	}
	for _, namespace := range projects {
		if err := r.deleteNow(ctx, namespace); err != nil {
			return err
		}
	}
	fmt.Printf("  %5.1f s: all is gone\n", time.Since(r.began).Seconds())
	return nil
}

func (r *round) left(ctx context.Context) (int, error) {
	sessions := &v1alpha1.AgenticSessionList{}
	if err := r.cluster.Client.List(ctx, sessions, &client.ListOptions{}); err != nil {
		return 0, fmt.Errorf("listing sessions: %w", err)
	}
	n := 0
	for i := range sessions.Items {
		if strings.HasPrefix(sessions.Items[i].Namespace, r.prefix) {
			n++
		}
	}
	return n, nil
}
