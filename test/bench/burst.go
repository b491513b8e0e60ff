package main

import (
	"context"
	"fmt"
)

// bursts asks for many sessions at once, beside both floors, in turns.
func bursts(ctx context.Context, b *bench) error {
	if err := b.startOperator(ctx); err != nil {
		return err
	}
	copied, err := b.learn(ctx)
	if err != nil {
		return err
	}
	for round := range b.rounds {
		// The floors have the machine for themselves.
		if err := b.stopOperator(); err != nil {
			return err
		}
		if err := b.floor(ctx, "bare Jobs", round, b.bareJobs); err != nil {
			return err
		}
		plain := func(ctx context.Context, namespace string, n int) (*times, error) {
			return b.plainClient(ctx, copied, namespace, n)
		}
		if err := b.floor(ctx, "plain client", round, plain); err != nil {
			return err
		}
		if err := b.startOperator(ctx); err != nil {
			return err
		}
		if err := b.burst(ctx, round); err != nil {
			return err
		}
	}
	return b.stopOperator()
}

func (b *bench) floor(ctx context.Context, subject string, round int, do func(context.Context, string, int) (*times, error)) error {
	namespace := fmt.Sprintf("floor-%d-%s", round, subject[:4])
	before, err := b.cluster.CPU()
	if err != nil {
		return err
	}
	t, err := do(ctx, namespace, b.sessions)
	if err != nil {
		return err
	}
	after, err := b.cluster.CPU()
	if err != nil {
		return err
	}
	values := arrivals(t)
	values["server_ms"] = float64((after - before).Milliseconds()) / float64(b.sessions)
	b.results.add("burst", subject, b.sessions, values)
	return b.remove(ctx, namespace)
}

func (b *bench) burst(ctx context.Context, round int) error {
	namespace := fmt.Sprintf("burst-%d", round)
	if err := b.cluster.Project(ctx, namespace); err != nil {
		return err
	}
	m, err := b.measure()
	if err != nil {
		return err
	}
	if b.profile && round == 0 {
		if err := b.takeProfile(ctx); err != nil {
			return err
		}
	}
	t, err := b.untilRunning(ctx, namespace, b.sessions)
	if err != nil {
		return err
	}
	values := arrivals(t)
	if err := m.end(values, b.sessions); err != nil {
		return err
	}
	b.results.add("burst", "operator", b.sessions, values)
	return b.remove(ctx, namespace)
}
