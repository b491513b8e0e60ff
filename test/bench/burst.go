package main

import (
	"context"
	"fmt"
)

// bursts asks for n sessions at once, beside both floors, in turns.
func bursts(ctx context.Context, b *bench, scenario string, n, rounds int) error {
	if err := b.startOperator(ctx); err != nil {
		return err
	}
	copied, err := b.learn(ctx)
	if err != nil {
		return err
	}
	for round := range rounds {
		// The floors have the machine for themselves.
		if err := b.stopOperator(); err != nil {
			return err
		}
		if err := b.floor(ctx, scenario, "bare Jobs", n, round, b.bareJobs); err != nil {
			return err
		}
		plain := func(ctx context.Context, namespace string, n int) (*times, error) {
			return b.plainClient(ctx, copied, namespace, n)
		}
		if err := b.floor(ctx, scenario, "plain client", n, round, plain); err != nil {
			return err
		}
		if err := b.startOperator(ctx); err != nil {
			return err
		}
		if err := b.burst(ctx, scenario, n, round); err != nil {
			return err
		}
	}
	return b.stopOperator()
}

func (b *bench) floor(ctx context.Context, scenario, subject string, n, round int, do func(context.Context, string, int) (*times, error)) error {
	namespace := fmt.Sprintf("floor-%s-%d-%s", scenario, round, subject[:4])
	before, err := b.cluster.CPU()
	if err != nil {
		return err
	}
	t, err := do(ctx, namespace, n)
	if err != nil {
		return err
	}
	after, err := b.cluster.CPU()
	if err != nil {
		return err
	}
	values := arrivals(t)
	values["server_ms"] = float64((after - before).Milliseconds()) / float64(n)
	b.results.add(scenario, subject, n, values)
	return b.remove(ctx, namespace)
}

func (b *bench) burst(ctx context.Context, scenario string, n, round int) error {
	namespace := fmt.Sprintf("%s-%d", scenario, round)
	if err := b.makeProject(ctx, namespace); err != nil {
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
	t, err := b.untilRunning(ctx, namespace, n)
	if err != nil {
		return err
	}
	values := arrivals(t)
	if err := m.end(values, n); err != nil {
		return err
	}
	b.results.add(scenario, "operator", n, values)
	return b.remove(ctx, namespace)
}
