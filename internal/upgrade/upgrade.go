// Package upgrade decides when the next version of the operator has to wait. While sessions are
// being started or stopped the operator is needed at every step, and an upgrade leaves a gap until
// the new one leads; so OLM is told to hold upgrades for as long as that takes. Never for ever: a
// session that meets trouble, or takes longer than the limit, is no reason to wait, and a hold ends
// after the limit whatever goes on, with as long a time afterwards in which there is none.
//
// The package is pure: what was read goes in, the condition to store comes out. The stored
// condition is the only memory of when a hold began or ended, so a new leader goes on where another
// has left off.
package upgrade

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Upgradeable is the type of the condition that OLM heeds.
const Upgradeable = "Upgradeable"

// Reasons of the condition.
const (
	ReasonSessionsInProgress = "SessionsInProgress"
	ReasonNothingInProgress  = "NothingInProgress"
	ReasonHeldLongEnough     = "HeldLongEnough"
)

// Moment is how long a session may be on its way before it is a reason to wait, and how often that
// is looked at: most sessions start and stop within it, so they write nothing.
const Moment = 15 * time.Second

// Progress remembers since when sessions have been on their way.
type Progress struct {
	seen map[step]time.Time
}

// step is one start or one stop of a session.
type step struct {
	session types.UID
	run     int64
	phase   v1alpha1.Phase
}

// Work is what goes on.
type Work struct {
	// Starting and Stopping count the sessions that an upgrade should wait for.
	Starting, Stopping int
	// Soon says that there are sessions that may become a reason to wait, or cease to be one, by
	// the clock alone.
	Soon bool
}

// None says that there is nothing to wait for.
func (w Work) None() bool { return w.Starting+w.Stopping == 0 }

// Look takes in all sessions as they are now.
func (p *Progress) Look(sessions []v1alpha1.AgenticSession, limit time.Duration, now time.Time) Work {
	seen := map[step]time.Time{}
	work := Work{}
	for i := range sessions {
		s := &sessions[i]
		if !Moving(s) {
			continue
		}
		this := step{s.UID, s.Status.Run, s.Status.Phase}
		since, known := p.seen[this]
		if !known {
			since = now
		}
		seen[this] = since
		if troubled(s) || now.Sub(since) >= limit {
			continue
		}
		work.Soon = true
		switch {
		case now.Sub(since) < Moment:
		case s.Status.Phase == v1alpha1.PhaseStopping:
			work.Stopping++
		default:
			work.Starting++
		}
	}
	p.seen = seen
	return work
}

// Moving says that a session is on its way from one phase to another, with the operator's help.
func Moving(s *v1alpha1.AgenticSession) bool {
	return s.DeletionTimestamp == nil && (s.Status.Phase == v1alpha1.PhaseCreating || s.Status.Phase == v1alpha1.PhaseStopping)
}

// troubled says that a session waits for something that may never come: an image, a quota, a node.
func troubled(s *v1alpha1.AgenticSession) bool {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return false
	case s.Status.Phase == v1alpha1.PhaseStopping:
		return ready.Reason == v1alpha1.ReasonForcedStop
	default:
		return ready.Reason != v1alpha1.ReasonProvisioning
	}
}

// Decide says what condition is to be stored in place of the stored one, nil for the same. The
// limit is how long upgrades are held at most, and afterwards not; 0 holds none.
func Decide(stored *metav1.Condition, work Work, limit time.Duration, now time.Time) *metav1.Condition {
	held := stored != nil && stored.Status == metav1.ConditionFalse
	spent := stored == nil || !now.Before(stored.LastTransitionTime.Add(limit))
	switch {
	case held && work.None():
		return condition(metav1.ConditionTrue, ReasonNothingInProgress, "no session is being started or stopped", now)
	case held && spent:
		return condition(metav1.ConditionTrue, ReasonHeldLongEnough, fmt.Sprintf("upgrades were held for %s; they may now go on although sessions are being started or stopped", limit), now)
	case !held && spent && !work.None() && limit > 0:
		until := now.Add(limit).UTC().Format(time.TimeOnly)
		return condition(metav1.ConditionFalse, ReasonSessionsInProgress, fmt.Sprintf("%s; upgrades wait until that is done, at most until %s UTC", work, until), now)
	default:
		return nil
	}
}

// String tells people what goes on. It names no session: OLM shows the message to everybody who
// may see that the operator is installed.
func (w Work) String() string {
	var parts []string
	for _, part := range []struct {
		count int
		verb  string
	}{{w.Starting, "started"}, {w.Stopping, "stopped"}} {
		switch part.count {
		case 0:
		case 1:
			parts = append(parts, "1 session is being "+part.verb)
		default:
			parts = append(parts, fmt.Sprintf("%d sessions are being %s", part.count, part.verb))
		}
	}
	return strings.Join(parts, " and ")
}

func condition(status metav1.ConditionStatus, reason, message string, now time.Time) *metav1.Condition {
	return &metav1.Condition{Type: Upgradeable, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now)}
}
