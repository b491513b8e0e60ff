package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// lease is for how long a leader holds its lock that it does not renew.
const lease = 15 * time.Second

// handovers times how long it takes from the end of a leader until the other replica works, with
// nothing else broken.
func (c *chaos) handovers(ctx context.Context) error {
	if c.options.handovers > 0 {
		fmt.Println("\n==> hand-overs")
	}
	for range c.options.handovers {
		for _, way := range []struct {
			signal os.Signal
			times  *[]time.Duration
			name   string
		}{{syscall.SIGTERM, &c.stopped, "stopped"}, {syscall.SIGKILL, &c.crashed, "killed"}} {
			took, err := c.handover(ctx, way.signal)
			if err != nil {
				return err
			}
			fmt.Printf("  the leader was %s, the other worked after %.2f s\n", way.name, took.Seconds())
			*way.times = append(*way.times, took)
		}
	}
	return nil
}

func (c *chaos) handover(ctx context.Context, signal os.Signal) (time.Duration, error) {
	leader, err := c.alone(ctx)
	if err != nil {
		return 0, err
	}
	other := c.other(leader)
	// Until the other has its caches filled and looks at the lock as often as it does.
	pause(ctx, 10*time.Second)
	// Started again at once, it could take over itself.
	leader.hold(true)
	defer leader.hold(false)
	began := time.Now()
	leader.signal(signal)
	for !other.leads(ctx) {
		if ctx.Err() != nil || time.Since(began) > time.Minute {
			return 0, errors.Join(errors.New("nobody took over within a minute"), ctx.Err())
		}
		pause(ctx, 10*time.Millisecond)
	}
	return time.Since(began), nil
}

func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Clone(times)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}
