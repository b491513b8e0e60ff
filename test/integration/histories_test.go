package integration

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
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
	r := suite.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	faults, versions := 0, 0
	complain := func(format string, args ...any) {
		if faults++; faults <= 20 {
			fmt.Printf("history: "+format+"\n", args...)
		}
	}
	for uid, history := range r.sessions {
		versions += len(history)
		if slices.Contains(tampered.sessions, uid) {
			continue
		}
		for i := 1; i < len(history); i++ {
			if complaint := step(history[i-1].object, history[i].object); complaint != "" {
				complain("session %s/%s: %s", history[i].object.Namespace, history[i].object.Name, complaint)
			}
		}
	}
	for key, pods := range r.pods {
		if most := mostAtOnce(pods); most > 1 && key.Name != bareJob {
			complain("session %s: %d pods were alive at once", key, most)
		}
	}
	for _, line := range suite.logs.containing("panic") {
		complain("the operator panicked: %s", shorten(line))
	}
	fmt.Printf("history: %d versions of %d sessions judged, %d faults\n", versions, len(r.sessions), faults)
	return min(faults, 1)
}

// step says what is wrong with a change of a session; empty when nothing is.
func step(was, is *v1alpha1.AgenticSession) string {
	from, to := was.Status.Phase, is.Status.Phase
	switch {
	case from != to && from != "" && !slices.Contains(edges[from], to):
		return fmt.Sprintf("went from %s to %s", from, to)
	case is.Status.ObservedGeneration < was.Status.ObservedGeneration || is.Status.ObservedGeneration > is.Generation:
		return fmt.Sprintf("observed generation %d after %d, of %d", is.Status.ObservedGeneration, was.Status.ObservedGeneration, is.Generation)
	case is.Status.Run < was.Status.Run:
		return fmt.Sprintf("run %d after %d", is.Status.Run, was.Status.Run)
	}
	for i := range is.Status.Conditions {
		c := &is.Status.Conditions[i]
		if c.Reason == "" || c.Message == "" {
			return fmt.Sprintf("condition %s has reason %q and message %q", c.Type, c.Reason, c.Message)
		}
		if before := meta.FindStatusCondition(was.Status.Conditions, c.Type); before != nil && before.Status == c.Status && !before.LastTransitionTime.Equal(&c.LastTransitionTime) {
			return fmt.Sprintf("condition %s has another time of transition although it is still %s", c.Type, c.Status)
		}
	}
	return ""
}
