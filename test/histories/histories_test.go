package histories

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ordinary is how many histories a test run makes; HISTORIES=n makes n.
const ordinary = 2000

// met are seeds beyond the ordinary ones in which a fault was found. What they live through changes with
// what can happen, so what they found has tests of its own.
var met = []uint64{2860, 3728, 6790, 7351}

// TestRandomHistories makes random histories. HISTORY=seed repeats one, and tells it.
func TestRandomHistories(t *testing.T) {
	if one := os.Getenv("HISTORY"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		h := live(t, seed)
		t.Log("\n" + strings.Join(h.notes, "\n"))
		for _, complaint := range h.complaints {
			t.Error(complaint)
		}
		return
	}
	many := ordinary
	if asked := os.Getenv("HISTORIES"); asked != "" {
		var err error
		if many, err = strconv.Atoi(asked); err != nil {
			t.Fatal(err)
		}
	}
	debug.SetGCPercent(400) // short-lived garbage, and much of it
	began, all := time.Now(), &tally{happened: map[string]int{}}
	workers := runtime.GOMAXPROCS(0)
	t.Run("seeds", func(t *testing.T) {
		for worker := range workers {
			t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
				t.Parallel()
				for i := worker; i < many+len(met) && all.failed() < 5; i += workers {
					seed := uint64(i)
					if i >= many {
						seed = met[i-many]
					}
					h := live(t, seed)
					all.add(h)
					if len(h.complaints) > 0 {
						t.Errorf("seed %d: %s\nrepeat it with: HISTORY=%d go test ./test/histories -run TestRandomHistories -v\nthe end of it:\n%s",
							seed, strings.Join(h.complaints, "; "), seed, strings.Join(h.notes[max(0, len(h.notes)-40):], "\n"))
					}
				}
			})
		}
	})
	t.Logf("%d histories in %s: %s", all.histories, time.Since(began).Round(time.Millisecond), all)
}

// live is one history from its seed to its end.
func live(t *testing.T, seed uint64) (h *history) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		h = newHistory(seed, selected)
		h.unfold(40 + h.pick(160))
		if len(h.complaints) == 0 {
			h.settle(false)
		}
		if len(h.complaints) == 0 {
			h.settle(true)
		}
	})
	return h
}

// tally adds up what happened.
type tally struct {
	sync.Mutex
	histories, faulty, passes, writes, steps, operators int
	happened                                            map[string]int
}

func (a *tally) failed() int {
	a.Lock()
	defer a.Unlock()
	return a.faulty
}

func (a *tally) add(h *history) {
	a.Lock()
	defer a.Unlock()
	a.histories++
	a.passes += h.passes
	a.writes += h.writes
	a.steps += h.steps
	a.operators += h.processes
	if len(h.complaints) > 0 {
		a.faulty++
	}
	for what, n := range h.happened {
		a.happened[what] += n
	}
}

func (a *tally) String() string {
	told := fmt.Sprintf("%d steps, %d passes, %d writes of %d operators", a.steps, a.passes, a.writes, a.operators)
	for _, what := range slices.Sorted(maps.Keys(a.happened)) {
		told += fmt.Sprintf(", %d %s", a.happened[what], what)
	}
	return told
}
