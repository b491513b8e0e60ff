package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// fault is something that is broken for a while, and mended.
type fault struct {
	name string
	do   func(context.Context, *round, *rand.Rand) error
}

// Two decks of faults are played at the same time: one of what befalls the operator's processes, one of
// what befalls everything else.
var (
	ofProcesses = []fault{
		{"operator killed", killOne},
		{"leader killed", killLeader},
		{"leader paused for longer than its lease", pauseLeader},
		{skewFault, skewClock},
	}
	ofSurroundings = []fault{
		{"API server killed", restart("kube-apiserver")},
		{"etcd killed", restart("etcd")},
		{"etcd compacted while watches were cut", compact},
		{"watches cut", cutWatches},
		{"watches slow and stale", slowWatches},
		{"a third of calls failed for seconds", failMore},
		{"runner tokens deleted", deleteTokens},
		{"API keys of a project deleted and put back", deleteKeys},
		{"namespace with running sessions deleted", deleteNamespace},
		{"node silent", silenceNode},
	}
)

const skewFault = "clock of a replica five minutes off"

// breakThings injects the faults of a deck one after another, each once before any comes again, until
// the round's time is over.
func (r *round) breakThings(ctx context.Context, actor uint64, deck []fault) error {
	dice := r.dice(actor)
	for ctx.Err() == nil {
		for _, i := range dice.Perm(len(deck)) {
			if f := deck[i]; ctx.Err() == nil && (f.name != skewFault || r.skew) {
				fmt.Printf("  %5.1f s: %s\n", time.Since(r.began).Seconds(), f.name)
				if err := f.do(r.whole, r, dice); err != nil { //nolint:contextcheck // what is begun is finished when the time is over
					return fmt.Errorf("fault %q: %w", f.name, err)
				}
				r.count(f.name)
			}
			pause(ctx, time.Duration(500+dice.IntN(2500))*time.Millisecond)
		}
	}
	return nil
}

func (r *round) one(dice *rand.Rand) *replica { return r.replicas[dice.IntN(len(r.replicas))] }

func killOne(_ context.Context, r *round, dice *rand.Rand) error {
	r.one(dice).kill()
	return nil
}

func killLeader(ctx context.Context, r *round, _ *rand.Rand) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	leader.kill()
	return nil
}

// longerThanLease is longer than a leader holds its lock without renewing it.
const longerThanLease = 20 * time.Second

func pauseLeader(ctx context.Context, r *round, _ *rand.Rand) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	leader.signal(syscall.SIGSTOP)
	pause(ctx, longerThanLease)
	leader.signal(syscall.SIGCONT)
	return nil
}

func restart(component string) func(context.Context, *round, *rand.Rand) error {
	return func(ctx context.Context, r *round, _ *rand.Rand) error {
		r.chaos.mu.Lock()
		r.restarts = append(r.restarts, time.Now())
		r.chaos.mu.Unlock()
		return r.cluster.Restart(ctx, component)
	}
}

func cutWatches(ctx context.Context, r *round, dice *rand.Rand) error {
	for _, replica := range r.replicas {
		replica.proxy.cutWatches(true)
	}
	pause(ctx, time.Duration(500+dice.IntN(4000))*time.Millisecond)
	for _, replica := range r.replicas {
		replica.proxy.cutWatches(false)
	}
	return nil
}

func compact(ctx context.Context, r *round, _ *rand.Rand) error {
	for _, replica := range r.replicas {
		replica.proxy.cutWatches(true)
	}
	pause(ctx, 2*time.Second)
	err := insist(ctx, func() error { return r.cluster.Compact(ctx) })
	for _, replica := range r.replicas {
		replica.proxy.cutWatches(false)
	}
	return err
}

func slowWatches(ctx context.Context, r *round, dice *rand.Rand) error {
	victim := r.one(dice)
	victim.proxy.set(r.failing, time.Duration(300+dice.IntN(1500))*time.Millisecond)
	pause(ctx, 8*time.Second)
	victim.proxy.set(r.failing, 0)
	return nil
}

func failMore(ctx context.Context, r *round, _ *rand.Rand) error {
	for _, replica := range r.replicas {
		replica.proxy.set(1.0/3, 0)
	}
	pause(ctx, 5*time.Second)
	for _, replica := range r.replicas {
		replica.proxy.set(r.failing, 0)
	}
	return nil
}

// skewClock starts a replica again with a clock that is off: in one round ahead of the API server's, in
// the next behind it.
func skewClock(_ context.Context, r *round, dice *rand.Rand) error {
	victim, skew := r.one(dice), 5*time.Minute
	if r.seed%2 == 0 {
		skew = -skew
	}
	victim.mu.Lock()
	victim.skew = skew
	victim.mu.Unlock()
	victim.signal(syscall.SIGTERM)
	return nil
}

// rightClocks starts replicas again whose clocks are off since the round before.
func (c *chaos) rightClocks(ctx context.Context) error {
	for _, replica := range c.replicas {
		replica.mu.Lock()
		off := replica.skew != 0
		replica.skew = 0
		replica.mu.Unlock()
		if off {
			replica.signal(syscall.SIGTERM)
			pause(ctx, time.Second)
		}
	}
	_, err := c.alone(ctx)
	return err
}

// mend undoes whatever is broken still.
func (r *round) mend() {
	for _, replica := range r.replicas {
		replica.proxy.set(0, 0)
		replica.proxy.cutWatches(false)
		replica.signal(syscall.SIGCONT)
	}
}
