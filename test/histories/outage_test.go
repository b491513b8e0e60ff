package histories

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestTheStartDeadlinePassesWhileTheCachesStandStill: after an outage of the API server a deadline may
// have passed that the runner met. Its work is not thrown away because the caches do not know yet.
func TestTheStartDeadlinePassesWhileTheCachesStandStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(1, selected) // a seed with one session
		h.trouble = trouble{}
		if len(h.stories) != 1 {
			t.Fatalf("there are %d sessions", len(h.stories))
		}
		for len(h.api.list("Pod")) == 0 {
			if !h.work() {
				h.clusterWorks(false)
			}
		}
		for h.work() {
			h.fillCaches()
		}
		h.trouble.lags = true
		for range 3 { // it is scheduled, starts and is ready
			for _, pod := range copies[*corev1.Pod](h, "Pod") {
				h.podStep(pod, false)
			}
		}
		h.pass(settings.StartDeadline + time.Minute)
		what, due := h.operator.due()
		if !due {
			t.Fatal("no pass is made at the start deadline")
		}
		h.drive(h.operator.begin(what))
		if phase := h.session(what.key.Name).Status.Phase; phase != v1alpha1.PhaseRunning || len(h.complaints) > 0 {
			t.Errorf("the session is %s: %q", phase, h.complaints)
		}
	})
}
