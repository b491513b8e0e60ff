package integration

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// TestCase45CreateAndDelete: what sessions cost the operator goes with them: after many that came and went
// it has no more goroutines and holds no more memory than after the first few.
func TestCase45CreateAndDelete(t *testing.T) {
	if !soak() {
		t.Skip("takes a quarter of an hour; SOAK=1 runs it")
	}
	trouble(t)
	const (
		cycles, atOnce, first = 1000, 25, 100
		// An object of each session that stayed in a cache would be 5 MiB and more, of each of its objects
		// several times as much.
		mostMemory     = 8 << 20
		mostGoroutines = 10
	)
	operator := runProcess(t, "cycles")
	p := newProject(t, nil)
	made := 0
	cycle := func(until int) {
		for made < until {
			p.comeAndGo(atOnce, made)
			made += atOnce
		}
	}
	// Caches, connections and the heap grow to what so many at once need.
	cycle(first)
	goroutines, memory := rested(t, operator)
	for _, until := range []int{cycles / 2, cycles} {
		cycle(first + until)
		nowGoroutines, nowMemory := rested(t, operator)
		t.Logf("after %d sessions more: %d goroutines, were %d; %d KiB, were %d", until, nowGoroutines, goroutines, nowMemory>>10, memory>>10)
		if nowGoroutines > goroutines+mostGoroutines {
			t.Errorf("the operator has %d goroutines after %d sessions more, had %d", nowGoroutines, until, goroutines)
		}
		if nowMemory > memory+mostMemory {
			t.Errorf("the operator holds %d MiB after %d sessions more, held %d", nowMemory>>20, until, memory>>20)
		}
	}
}

// comeAndGo makes some sessions, waits until all run, and deletes them.
func (p *project) comeAndGo(n, from int) {
	p.t.Helper()
	sessions := make([]*session, n)
	for i := range sessions {
		sessions[i] = p.session(fmt.Sprintf("cycle-%d", from+i), "hang")
	}
	for _, s := range sessions {
		s.reaches(running)
	}
	for _, s := range sessions {
		s.remove()
	}
	for _, s := range sessions {
		s.eventually("session "+s.name+" and its pod are gone", func() error {
			if s.latest() != nil {
				return errors.New("it is there")
			}
			return noPods(s)
		})
	}
}

// rested is how many goroutines the operator has and how much memory it holds when it has done nothing for
// so long that Go has collected what is garbage, which it does every two minutes at least, and given it back.
func rested(t *testing.T, operator *rig.Process) (goroutines int, memory int64) {
	t.Helper()
	time.Sleep(150 * time.Second)
	answer, err := http.Get("http://" + operator.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if n, found := strings.CutPrefix(lines.Text(), "go_goroutines "); found {
			if goroutines, err = strconv.Atoi(n); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil || goroutines == 0 {
		t.Fatalf("the operator does not say how many goroutines it has (%v)", err)
	}
	return goroutines, settledMemory(t, operator)
}
