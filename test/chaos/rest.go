package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// usage is what a process of the operator holds.
type usage struct {
	heap       float64 // bytes, after a collection of garbage
	goroutines float64
}

// How much more a leader may hold after everything than one that has had a single session: what lives
// on of libraries, metrics and pools.
const (
	mostHeap       = 24 << 20
	mostGoroutines = 60
)

// warm runs one session to its end and returns what the leader holds then.
func (c *chaos) warm(ctx context.Context) (usage, error) {
	r := &round{chaos: c, prefix: "chaos-warm", whole: ctx, good: []string{"chaos-warm"}}
	if err := r.project(ctx, "chaos-warm"); err != nil {
		return usage{}, err
	}
	w := &wish{key: types.NamespacedName{Namespace: "chaos-warm", Name: "first"}, prompt: "exit 0", ends: "Completed"}
	if err := r.bring(ctx, w); err != nil {
		return usage{}, err
	}
	if err := insist(ctx, func() error { return r.fulfilled(w) }); err != nil {
		return usage{}, fmt.Errorf("the first session: %w", err)
	}
	if err := c.cluster.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "chaos-warm"}}); err != nil {
		return usage{}, fmt.Errorf("removing the first project: %w", err)
	}
	return c.usage(ctx)
}

// usage is what the leader holds once it has come to rest: the least of some measurements.
func (c *chaos) usage(ctx context.Context) (least usage, err error) {
	leader, err := c.leader(ctx)
	if err != nil {
		return usage{}, err
	}
	for range 10 {
		pause(ctx, time.Second)
		if err := leader.collect(ctx); err != nil {
			return usage{}, err
		}
		families, err := leader.scrape(ctx)
		if err != nil {
			return usage{}, err
		}
		now := usage{total(families, "go_memstats_heap_alloc_bytes", nil), total(families, "go_goroutines", nil)}
		if least.heap == 0 || now.heap < least.heap {
			least.heap = now.heap
		}
		if least.goroutines == 0 || now.goroutines < least.goroutines {
			least.goroutines = now.goroutines
		}
	}
	return least, nil
}

// judgeProcesses checks that the leader holds no more than at the beginning, with nothing left to do.
func (c *chaos) judgeProcesses(ctx context.Context) error {
	now, err := c.usage(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\nthe leader holds %.1f MB and %v goroutines, and held %.1f MB and %v at the beginning\n",
		now.heap/1e6, now.goroutines, c.base.heap/1e6, c.base.goroutines)
	if now.heap > c.base.heap+mostHeap {
		c.violation("seed %d and after: memory is not given back", c.seed)
	}
	if now.goroutines > c.base.goroutines+mostGoroutines {
		c.violation("seed %d and after: goroutines are left", c.seed)
	}
	c.holds("memory and goroutines returned to base", 2)
	return nil
}
