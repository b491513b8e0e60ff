package integration

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/test/record"
)

// tampered are the sessions whose status a test has written itself.
var tampered struct {
	sync.Mutex
	sessions []types.UID
}

func (s *session) tamper() {
	tampered.Lock()
	defer tampered.Unlock()
	tampered.sessions = append(tampered.sessions, s.uid)
}

// judgeHistories checks what must hold of every session at every moment, whatever its test was
// about.
func judgeHistories() int {
	sessions := suite.recorder.Sessions()
	faults, versions := 0, 0
	complain := func(format string, args ...any) {
		if faults++; faults <= 20 {
			fmt.Printf("history: "+format+"\n", args...)
		}
	}
	for uid, history := range sessions {
		versions += len(history)
		if slices.Contains(tampered.sessions, uid) {
			continue
		}
		for i := 1; i < len(history); i++ {
			if history[i].Listed {
				continue // the API server was away, and what happened just before is not known
			}
			if complaint := record.Step(history[i-1].Object, history[i].Object); complaint != "" {
				complain("session %s/%s: %s", history[i].Object.Namespace, history[i].Object.Name, complaint)
			}
		}
	}
	for key, pods := range suite.recorder.Pods() {
		if most := mostAtOnce(pods); most > 1 && key.Name != bareJob {
			complain("session %s: %d pods were alive at once", key, most)
		}
	}
	for _, line := range suite.logs.containing("panic") {
		complain("the operator panicked: %s", shorten(line))
	}
	fmt.Printf("history: %d versions of %d sessions judged, %d faults\n", versions, len(sessions), faults)
	return min(faults, 1)
}
