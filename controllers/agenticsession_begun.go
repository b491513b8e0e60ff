package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// standstill is how long a pass takes at most that was not held up: by then an operator that was paused may
// have lost its lease.
const standstill = 10 * time.Second

// begun remembers which runs this process began, or asked about, and have no Job yet.
type begun struct {
	runs sync.Map
}

type beginning struct {
	uid types.UID
	run int64
}

func (b *begun) add(s *v1alpha1.AgenticSession) {
	b.runs.Store(client.ObjectKeyFromObject(s), beginning{s.UID, s.Status.Run})
}

func (b *begun) has(s *v1alpha1.AgenticSession) bool {
	known, _ := b.runs.Load(client.ObjectKeyFromObject(s))
	return known == beginning{s.UID, s.Status.Run}
}

func (b *begun) forget(key types.NamespacedName) { b.runs.Delete(key) }

// jobIsDue says whether the run of the session that we know still waits for its Job. An operator that has
// just started, or stood still, may know an old session: its run may have had a Job that somebody deleted,
// or be stopped by now. So one that did not begin the run itself, or was held up since its pass began, asks
// the API server.
func (r *AgenticSessionReconciler) jobIsDue(ctx context.Context, w *session.World) (bool, error) {
	s := w.Session
	if r.begun.has(s) && r.Clock.Since(w.Now) < standstill {
		return true, nil
	}
	now := &v1alpha1.AgenticSession{}
	found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(s), now)
	if err != nil || !found || now.UID != s.UID || now.Status.Phase != s.Status.Phase || now.Status.Run != s.Status.Run || now.Status.JobUID != s.Status.JobUID {
		return false, err
	}
	r.begun.add(s)
	return true, nil
}
