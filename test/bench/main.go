// Command bench measures what sessions cost, beside what Kubernetes itself costs for the same work. It
// brings up a control plane with simulated nodes and its own operator, and runs in one sitting,
// interleaved and repeated:
//
//   - bare Jobs, which is the floor of Kubernetes (floors.go);
//   - a plain client that makes the same objects as a session has, which is the floor of the
//     operator's contract (floors.go);
//   - the operator, with the same number of sessions (burst.go), and what else happens in its life
//     (life.go, load.go, crowd.go).
//
// It prints medians and ratios as a table, and writes them with every single measurement as JSON and
// as a plot (record.go). Requests are counted from the audit log of the API server
// (requests.go), memory and time of the processor are the kernel's account of the operator's process.
//
//	go -C test/bench run . -sessions 300 -rounds 3
//
// Figures depend on the machine; ratios much less, and they are what is compared.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options is what there is to choose.
type options struct {
	sessions, rounds, large, renewals, finished, running int
	stream, rest                                         time.Duration
	only                                                 []string
	out                                                  string
	profile                                              bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func read() (options, error) {
	var o options
	var only string
	flag.IntVar(&o.sessions, "sessions", 300, "how many sessions a burst has")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each burst is repeated")
	flag.IntVar(&o.large, "large", 3000, "how many sessions the large burst has")
	flag.IntVar(&o.renewals, "renewals", 1000, "how many tokens fall due at once")
	flag.IntVar(&o.finished, "finished", 10000, "how many finished sessions there are at a restart and at rest")
	flag.IntVar(&o.running, "running", 500, "how many running sessions there are at a restart and at rest")
	flag.DurationVar(&o.stream, "stream", 5*time.Minute, "how long the steady stream lasts")
	flag.DurationVar(&o.rest, "rest", 5*time.Minute, "how long nothing happens")
	flag.StringVar(&only, "only", strings.Join(scenarioNames(), ","), "which scenarios to run")
	flag.StringVar(&o.out, "out", "", "folder for bench.json, bench.md and bench.svg; empty writes none")
	flag.BoolVar(&o.profile, "profile", false, "take a profile of the operator's processor time during the first burst, into the same folder")
	flag.Parse()
	o.only = strings.Split(only, ",")
	for _, name := range o.only {
		if !slices.Contains(scenarioNames(), name) {
			return o, fmt.Errorf("%q is no scenario; there are %s", name, strings.Join(scenarioNames(), ", "))
		}
	}
	if o.sessions < 1 || o.rounds < 1 {
		return o, errors.New("at least one session and one round")
	}
	return o, nil
}

// scenario is something that is measured.
type scenario struct {
	name string
	do   func(context.Context, *bench) error
}

var scenarios = []scenario{
	{"prices", prices},
	{"burst", func(ctx context.Context, b *bench) error { return bursts(ctx, b, "burst", b.sessions, b.rounds) }},
	{"large", func(ctx context.Context, b *bench) error { return bursts(ctx, b, "large", b.large, 1) }},
	{"cycle", cycle},
	{"renewal", renewal},
	{"noisy", noisy},
	{"stream", stream},
	// The last ones leave their sessions there: to remove them would take longer than all else.
	{"restart", restart},
	{"rest", resting},
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

func run(ctx context.Context) (err error) {
	o, err := read()
	if err != nil {
		return err
	}
	if o.out != "" {
		if o.out, err = filepath.Abs(o.out); err != nil {
			return fmt.Errorf("finding the folder of the results: %w", err)
		}
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return fmt.Errorf("making the folder of the results: %w", err)
		}
	}
	b, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(context.WithoutCancel(ctx))) }()
	for _, s := range scenarios {
		if !slices.Contains(o.only, s.name) {
			continue
		}
		fmt.Printf("\n==> %s\n", s.name)
		if err := s.do(ctx, b); err != nil {
			return fmt.Errorf("scenario %s: %w", s.name, err)
		}
	}
	table := b.results.table()
	fmt.Printf("\n%s", table)
	if o.out == "" {
		return nil
	}
	return errors.Join(b.results.write(o.out), b.results.plot(filepath.Join(o.out, "bench.svg")))
}
