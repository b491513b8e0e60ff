package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// standstill is for how long an answer of the API server about a run that begins is believed: an operator
// that was paused for longer may have lost its lease, and another have gone on with the run.
const standstill = 10 * time.Second

// starts remembers how far this process has come with runs that have no Job in their status.
type starts struct {
	runs sync.Map // start, by the key of the session
}

type start struct {
	uid types.UID
	run int64
	// asked is when the API server was asked that last said that the run is as we know it. It is the time of
	// day: the clock that measures durations stands still while the machine does.
	asked time.Time
	// job is the Job that this process made for the run; empty for none.
	job types.UID
}

// of is what is known of the current run of the session.
func (s *starts) of(session *v1alpha1.AgenticSession) start {
	is := start{uid: session.UID, run: session.Status.Run}
	if known, ok := s.runs.Load(client.ObjectKeyFromObject(session)); ok {
		if was := known.(start); was.uid == is.uid && was.run == is.run {
			return was
		}
	}
	return is
}

// confirmed notes that the API server, asked at that time, had the session as it is here.
func (s *starts) confirmed(session *v1alpha1.AgenticSession, asked time.Time) {
	is := s.of(session)
	is.asked = asked.Round(0)
	s.runs.Store(client.ObjectKeyFromObject(session), is)
}

// made notes the Job of the run.
func (s *starts) made(session *v1alpha1.AgenticSession, job types.UID) {
	is := s.of(session)
	is.job = job
	s.runs.Store(client.ObjectKeyFromObject(session), is)
}

func (s *starts) forget(key types.NamespacedName) { s.runs.Delete(key) }

// fresh says that the API server has confirmed the run a moment ago.
func (s *starts) fresh(session *v1alpha1.AgenticSession, now time.Time) bool {
	age := now.Round(0).Sub(s.of(session).asked)
	return age >= 0 && age < standstill
}

// jobIsDue says whether the run of the session that we know still waits for its Job. An operator that has
// just started, or stood still, may know an old session: its run may have had a Job that somebody deleted,
// or be stopped by now. So the API server is asked, unless it has said a moment ago how the session is.
func (r *AgenticSessionReconciler) jobIsDue(ctx context.Context, s *v1alpha1.AgenticSession) (bool, error) {
	asked := r.Clock.Now()
	if r.starts.fresh(s, asked) {
		return true, nil
	}
	stored := &v1alpha1.AgenticSession{}
	found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(s), stored)
	if err != nil {
		return false, fmt.Errorf("asking whether the run still waits for its Job: %w", err)
	}
	if !found || !session.Unchanged(s, stored) {
		return false, nil // the event of the change makes the next pass
	}
	r.starts.confirmed(s, asked)
	return true, nil
}
