package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// noisy asks for sessions in a quiet project, alone and beside one that asks for many at once.
func noisy(ctx context.Context, b *bench) error {
	const few = 10
	for _, beside := range []int{0, b.sessions} {
		quiet, loud := fmt.Sprintf("quiet-%d", beside), fmt.Sprintf("loud-%d", beside)
		for _, namespace := range []string{quiet, loud} {
			if err := b.project(ctx, namespace); err != nil {
				return err
			}
		}
		ended := make(chan error, 1)
		if beside > 0 {
			go func() {
				_, err := b.untilRunning(ctx, loud, beside)
				ended <- err
			}()
			time.Sleep(time.Second) // the noise has begun
		} else {
			ended <- nil
		}
		t, err := b.untilRunning(ctx, quiet, few)
		if err != nil {
			return err
		}
		b.results.add("noisy", fmt.Sprintf("%d sessions beside %d", few, beside), few, arrivals(t))
		if err := <-ended; err != nil {
			return err
		}
		for _, namespace := range []string{quiet, loud} {
			if err := b.remove(ctx, namespace); err != nil {
				return err
			}
		}
	}
	return nil
}

// pace is how many sessions a second the steady stream brings.
const pace = 5

// stream asks for sessions at a steady pace; each ends after a few seconds.
func stream(ctx context.Context, b *bench) error {
	const namespace = "stream"
	if err := b.project(ctx, namespace); err != nil {
		return err
	}
	n := int(b.stream.Seconds() * pace)
	t := b.follow(ctx, &v1alpha1.AgenticSessionList{}, namespace, n, inPhase(v1alpha1.PhaseRunning, v1alpha1.PhaseCompleted))
	ends := b.follow(ctx, &v1alpha1.AgenticSessionList{}, namespace, n, inPhase(v1alpha1.PhaseCompleted))
	m, err := b.measure()
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second / pace)
	defer tick.Stop()
	for i := range n {
		s := session(namespace, fmt.Sprintf("s-%d", i), "sleep 3s\nexit 0")
		t.create(s.Name)
		ends.create(s.Name)
		if err := b.client.Create(ctx, s); err != nil {
			return fmt.Errorf("creating session %s: %w", s.Name, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	if err := t.wait(ctx); err != nil {
		return err
	}
	if err := ends.wait(ctx); err != nil {
		return err
	}
	values := arrivals(t)
	if err := m.end(values, n); err != nil {
		return err
	}
	b.results.add("stream", fmt.Sprintf("%d a second, whole life", pace), n, values)
	return b.remove(ctx, namespace)
}
