package upgrade_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/upgrade"
)

const limit = 10 * time.Minute

var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

func session(name string, phase v1alpha1.Phase, reason string) v1alpha1.AgenticSession {
	s := v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	s.Status.Phase = phase
	if reason != "" {
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
	}
	return s
}

func TestWhatAnUpgradeWaitsFor(t *testing.T) {
	deleted := session("deleted", v1alpha1.PhaseStopping, "")
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	for _, c := range []struct {
		session            v1alpha1.AgenticSession
		starting, stopping int
		soon               bool
	}{
		{session("creating", v1alpha1.PhaseCreating, v1alpha1.ReasonProvisioning), 1, 0, true},
		{session("just-creating", v1alpha1.PhaseCreating, ""), 1, 0, true},
		{session("stopping", v1alpha1.PhaseStopping, v1alpha1.ReasonStoppedByUser), 0, 1, true},
		{session("idle", v1alpha1.PhaseStopping, v1alpha1.ReasonInactivityTimeout), 0, 1, true},
		{session("no-image", v1alpha1.PhaseCreating, v1alpha1.ReasonImagePullBackOff), 0, 0, false},
		{session("no-node", v1alpha1.PhaseCreating, v1alpha1.ReasonUnschedulable), 0, 0, false},
		{session("node-lost", v1alpha1.PhaseStopping, v1alpha1.ReasonForcedStop), 0, 0, false},
		{session("pending", v1alpha1.PhasePending, v1alpha1.ReasonPrerequisiteMissing), 0, 0, false},
		{session("running", v1alpha1.PhaseRunning, v1alpha1.ReasonRunnerStarted), 0, 0, false},
		{session("completed", v1alpha1.PhaseCompleted, v1alpha1.ReasonRunnerCompleted), 0, 0, false},
		{deleted, 0, 0, false},
	} {
		progress, all := upgrade.Progress{}, []v1alpha1.AgenticSession{c.session}
		if work := progress.Look(all, limit, noon); !work.None() || work.Soon != c.soon {
			t.Errorf("%s at first sight: %+v, want nothing yet, and a second look: %t", c.session.Name, work, c.soon)
		}
		want := upgrade.Work{Starting: c.starting, Stopping: c.stopping, Soon: c.soon}
		if work := progress.Look(all, limit, noon.Add(upgrade.Moment)); work != want {
			t.Errorf("%s after a moment: %+v, want %+v", c.session.Name, work, want)
		}
		if work := progress.Look(all, limit, noon.Add(limit)); work != (upgrade.Work{}) {
			t.Errorf("%s after the limit: %+v, want nothing for ever", c.session.Name, work)
		}
	}
}

// A moment counts for each start and each stop by itself.
func TestEachStepHasItsOwnMoment(t *testing.T) {
	progress := upgrade.Progress{}
	look := func(after time.Duration, s v1alpha1.AgenticSession) upgrade.Work {
		return progress.Look([]v1alpha1.AgenticSession{s}, limit, noon.Add(after))
	}
	s := session("s", v1alpha1.PhaseCreating, "")
	look(0, s)
	s.Status.Phase = v1alpha1.PhaseStopping
	if work := look(time.Minute, s); !work.None() {
		t.Errorf("a stop that has just begun is in the way: %+v", work)
	}
	if work := look(2*time.Minute, s); work.Stopping != 1 {
		t.Errorf("a stop that goes on is not in the way: %+v", work)
	}
	s.Status.Phase, s.Status.Run = v1alpha1.PhaseRunning, 1
	look(3*time.Minute, s)
	s.Status.Phase, s.Status.Run = v1alpha1.PhaseCreating, 2
	if work := look(20*time.Minute, s); !work.None() || !work.Soon {
		t.Errorf("another run is judged by the time of the first: %+v", work)
	}
}

func stored(status metav1.ConditionStatus, since time.Duration) *metav1.Condition {
	return &metav1.Condition{Type: upgrade.Upgradeable, Status: status, Reason: "Stored", LastTransitionTime: metav1.NewTime(noon.Add(-since))}
}

func TestDecide(t *testing.T) {
	none, work := upgrade.Work{}, upgrade.Work{Starting: 2, Stopping: 1}
	for _, c := range []struct {
		name   string
		stored *metav1.Condition
		work   upgrade.Work
		limit  time.Duration
		status metav1.ConditionStatus
		reason string
	}{
		{"nothing ever", nil, none, limit, "", ""},
		{"work begins", nil, work, limit, metav1.ConditionFalse, upgrade.ReasonSessionsInProgress},
		{"work goes on", stored(metav1.ConditionFalse, time.Minute), work, limit, "", ""},
		{"work ends", stored(metav1.ConditionFalse, time.Minute), none, limit, metav1.ConditionTrue, upgrade.ReasonNothingInProgress},
		{"the limit", stored(metav1.ConditionFalse, limit), work, limit, metav1.ConditionTrue, upgrade.ReasonHeldLongEnough},
		{"rest", stored(metav1.ConditionTrue, limit-time.Second), work, limit, "", ""},
		{"after the rest", stored(metav1.ConditionTrue, limit), work, limit, metav1.ConditionFalse, upgrade.ReasonSessionsInProgress},
		{"quiet", stored(metav1.ConditionTrue, time.Hour), none, limit, "", ""},
		{"switched off", nil, work, 0, "", ""},
		{"switched off after a hold", stored(metav1.ConditionFalse, time.Second), work, 0, metav1.ConditionTrue, upgrade.ReasonHeldLongEnough},
	} {
		got := upgrade.Decide(c.stored, c.work, c.limit, noon)
		if got == nil {
			got = &metav1.Condition{}
		}
		if got.Status != c.status || got.Reason != c.reason {
			t.Errorf("%s: %s %s, want %s %s", c.name, got.Status, got.Reason, c.status, c.reason)
		}
		if c.status != "" && (got.Type != upgrade.Upgradeable || got.Message == "" || !got.LastTransitionTime.Time.Equal(noon)) {
			t.Errorf("%s: the condition is not whole: %+v", c.name, got)
		}
	}
	message := upgrade.Decide(nil, work, limit, noon).Message
	if want := "2 sessions are being started and 1 session is being stopped; upgrades wait until that is done, at most until 12:10:00 UTC"; message != want {
		t.Errorf("the message is %q, want %q", message, want)
	}
}

// TestHowLongAnUpgradeWaits: OLM asks whenever it likes, in a cluster in which sessions start without
// end. It is never put off for longer than the limit, and little is written.
func TestHowLongAnUpgradeWaits(t *testing.T) {
	var condition *metav1.Condition
	progress, writes, waiting := upgrade.Progress{}, 0, time.Duration(0)
	for after := time.Duration(0); after < 5*time.Hour; after += upgrade.Moment {
		now := noon.Add(after)
		all := make([]v1alpha1.AgenticSession, 0, 3)
		for i := range 3 {
			// Each takes a minute, and there is a new one every 20 s.
			begun := int(after/(20*time.Second)) - i
			all = append(all, session(fmt.Sprintf("s-%d", begun), v1alpha1.PhaseCreating, ""))
		}
		if next := upgrade.Decide(condition, progress.Look(all, limit, now), limit, now); next != nil {
			condition, writes = next, writes+1
			if next.Status == metav1.ConditionFalse && !strings.Contains(next.Message, "being started") {
				t.Errorf("the message is %q", next.Message)
			}
		}
		if condition == nil || condition.Status == metav1.ConditionTrue {
			waiting = 0
			continue
		}
		if waiting += upgrade.Moment; waiting > limit {
			t.Fatalf("an upgrade is put off for %s", waiting)
		}
	}
	if writes < 10 || writes > 31 {
		t.Errorf("%d writes in five hours, want holds and releases of ten minutes each", writes)
	}
}
