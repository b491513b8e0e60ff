package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestCrashes strikes the operator at each of its writes in each scenario, until a run of the
// scenario sees no n-th write any more, and then has a new one, with an empty memory, go on to rest.
// The end is the same as without, a run has one Job and one pod, and the counters of both operators
// together are exact but for a write of which the answer never arrived.
//
// The operator is killed after each write, and meets one of the other blows at each, which is drawn:
// killed before a write it leaves what it leaves when it is killed after the last one. With CRASH=all
// all are tried, with CRASH=restart all in the scenario of that name alone. CRASH_SEED=n draws the same
// again.
func TestCrashes(t *testing.T) {
	chosen := os.Getenv("CRASH")
	if legacyWatch() && chosen == "" {
		t.Skip("what is written does not depend on how events come; CRASH=all runs it with --legacy-watch, too")
	}
	c := newCrashes(t, chosen)
	for round := 1; len(c.next) > 0; round++ {
		if round > 6 {
			t.Fatalf("there are more writes each time: %v", c.next)
		}
		c.round()
	}
	c.report()
}

// crashes goes through all points at which the operator is struck.
type crashes struct {
	*testing.T
	thorough bool
	random   *rand.Rand
	// undisturbed is the session of each scenario that nobody disturbed, and ends what there is of it in
	// the end.
	undisturbed map[*scenario]*victim
	ends        map[*scenario]string
	// next are the writes of each scenario that are tried in the next round.
	next map[*scenario][]int
	// tried are the writes that were struck.
	tried map[point][]string
	took  map[string]time.Duration
}

type point struct {
	scenario string
	blow     blow
}

// survived are the blows that the operator survives.
var survived = []blow{refusing, conflicting, unanswered}

func newCrashes(t *testing.T, chosen string) *crashes {
	seed := time.Now().UnixNano()
	if given, err := strconv.ParseInt(os.Getenv("CRASH_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("CRASH_SEED=%d", seed)
	c := &crashes{T: t, thorough: chosen != "", random: rand.New(rand.NewPCG(uint64(seed), 0)),
		undisturbed: map[*scenario]*victim{}, ends: map[*scenario]string{}, next: map[*scenario][]int{},
		tried: map[point][]string{}, took: map[string]time.Duration{}}
	for _, s := range scenarios() {
		if chosen == "" || chosen == "all" || chosen == s.name {
			c.next[s] = nil
		}
	}
	return c
}

// blows lists those that are tried at the n-th write.
func (c *crashes) blows(n int) []blow {
	if c.thorough {
		return append([]blow{killedBefore, killedAfter}, survived...)
	}
	if n == 1 {
		return []blow{killedBefore, killedAfter, survived[c.random.IntN(len(survived))]}
	}
	others := append([]blow{killedBefore}, survived...)
	return []blow{killedAfter, others[c.random.IntN(len(others))]}
}

// report tells how many writes were struck in each scenario, and how.
func (c *crashes) report() {
	total := 0
	for _, s := range scenarios() {
		line := ""
		for _, b := range append([]blow{killedBefore, killedAfter}, survived...) {
			struck := c.tried[point{s.name, b}]
			total += len(struck)
			line += fmt.Sprintf(", %s %d (%d kinds of writes)", b, len(struck), len(slices.Compact(slices.Sorted(slices.Values(struck)))))
		}
		c.Logf("crash points of %s%s", s.name, line)
	}
	fmt.Printf("crashes: %d crash points in %d scenarios: %v\n", total, len(scenarios()), c.took)
}
