// Command chaos breaks things around the operator while hundreds of sessions are under way, and judges
// what came of them.
//
// It brings up a control plane with simulated nodes and runs two replicas of the operator, as their
// ServiceAccount and with leader election, each behind a proxy of its own (proxy.go). Round by round,
// each from a seed, users bring sessions in waves and stop and start them (people.go) while faults are
// injected one after another (faults.go, surroundings.go): of the operator's processes (replica.go),
// its clock (clock.go), its connections, the control plane, the node and the objects around it. Then all
// is left alone until it has settled, and judged from the recorded history of every session, Job and
// pod (judge.go, rest.go, numbers.go) and from the logs (secrets.go). Hand-overs from one replica to the
// other are timed (handover.go). A summary tells what was done (summary.go).
//
//	go run ./test/chaos -seeds 5 -sessions 300
//	go run ./test/chaos -seed 1234 -sessions 60 -time 45s    # one round again
//
// The seed decides who does what and in which order. When exactly it happens, it cannot: the operator
// and the control plane are real.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// options is what there is to choose.
type options struct {
	// seed is that of the first round, rounds is how many there are.
	seed   uint64
	rounds int
	// sessions is how many good ones a round has, flood how many broken ones beside them.
	sessions, flood int
	// lasts is how long things are broken in a round.
	lasts time.Duration
	// failing is the share of the operator's calls that fail.
	failing float64
	// bound is within which time a good session must have started.
	bound time.Duration
	// handovers is how many of each kind are timed.
	handovers int
	// skew has replicas start with clocks that are off, for which a program is built.
	skew bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, read())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func read() options {
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the first round; 0 chooses one")
	flag.IntVar(&o.rounds, "seeds", 5, "how many rounds, each with the next seed")
	flag.IntVar(&o.sessions, "sessions", 300, "good sessions in a round")
	flag.IntVar(&o.flood, "flood", 2000, "broken sessions of a hostile tenant in a round")
	flag.DurationVar(&o.lasts, "time", 3*time.Minute, "how long things are broken in a round")
	flag.Float64Var(&o.failing, "failing", 0.05, "share of the operator's calls that fail")
	flag.DurationVar(&o.bound, "bound", 3*time.Minute, "within which time a good session must have started")
	flag.IntVar(&o.handovers, "handovers", 5, "hand-overs of each kind to time")
	flag.BoolVar(&o.skew, "skew", true, "start replicas with clocks that are five minutes off")
	flag.Parse()
	return o
}

// short is the form that "make chaos-short" runs.
func short() options {
	return options{rounds: 1, sessions: 60, flood: 60, lasts: 45 * time.Second, failing: 0.05, bound: 3 * time.Minute, handovers: 1}
}

var errViolations = errors.New("what must hold did not: see above")

func run(ctx context.Context, o options) (err error) {
	log.SetLogger(logr.Discard()) // clients say in errors what they have to say
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	c, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.end(context.WithoutCancel(ctx), err != nil)) }()
	for i := range o.rounds {
		seed := o.seed + uint64(i)
		fmt.Printf("\n==> seed %d\n", seed)
		if err := c.round(ctx, seed); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	if err := c.handovers(ctx); err != nil {
		return err
	}
	if err := c.judgeProcesses(ctx); err != nil {
		return err
	}
	if err := c.judgeLogs(); err != nil {
		return err
	}
	fmt.Print(c.summary())
	if len(c.violations) > 0 {
		return errViolations
	}
	return nil
}
