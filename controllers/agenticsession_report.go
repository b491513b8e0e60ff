package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

const (
	// afterConflict is when a session is looked at again whose status could not be written because it
	// changed meanwhile. Its event makes the next pass before; this is for one that got lost.
	afterConflict = time.Second
	// writesOfAPass is how often a pass tries to write the status, or to remove a request, while others change
	// the session in what the pass does not rest on.
	writesOfAPass = 5
)

// report writes the status where it differs, and tells of a phase change after it was written. It
// returns after how long to try again where the session changed meanwhile.
//
// A pass takes longer than one who writes to the session all the time, as the platform's backend may,
// takes from one write to the next. So a status that is refused for that is written again, as long as
// the session that is there now leads to the same decision.
func (r *AgenticSessionReconciler) report(ctx context.Context, w *session.World, d session.Decision) (time.Duration, error) {
	for try := 1; ; try++ {
		err := r.write(ctx, w, d)
		switch {
		case err == nil:
			return 0, nil
		case apierrors.IsNotFound(err):
			return afterConflict, nil
		case !apierrors.IsConflict(err):
			return 0, fmt.Errorf("writing the status: %w", err)
		}
		holds, lookErr := false, error(nil)
		if try < writesOfAPass {
			holds, lookErr = r.holds(ctx, w, d)
		}
		if lookErr != nil {
			return 0, lookErr
		}
		if !holds {
			log.FromContext(ctx).V(1).Info("The session changed meanwhile", "error", err.Error())
			return afterConflict, nil
		}
	}
}

// holds says whether the decision is the same for the session as the API server has it now, and if so
// puts that into the world. Nothing else in the world may have changed with it: what was observed of
// the run belongs to the status, and that to a run and a phase.
func (r *AgenticSessionReconciler) holds(ctx context.Context, w *session.World, d session.Decision) (bool, error) {
	now := &v1alpha1.AgenticSession{}
	found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(w.Session), now)
	if err != nil || !found || now.ResourceVersion == w.Session.ResourceVersion || !session.Unchanged(w.Session, now) {
		return false, err
	}
	later := *w
	later.Session = now
	if session.Decide(&later) != d {
		return false, nil
	}
	w.Session = now
	return true, nil
}

// write writes the status under the version of the session that is in the world.
func (r *AgenticSessionReconciler) write(ctx context.Context, w *session.World, d session.Decision) error {
	was := w.Session.DeepCopy()
	status := session.Status(w, d)
	if equality.Semantic.DeepEqual(was.Status, status) || session.Postponed(w, d, &status) {
		return nil
	}
	changed := w.Session.DeepCopy()
	changed.Status = status
	stored := was.DeepCopy()
	if was.Status.Dropped {
		stored.Status.Drop()
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	asked := r.Clock.Now()
	if err := r.Client.Status().Patch(ctx, changed, patch); err != nil {
		return err
	}
	if changed.Status.Dropped {
		r.dropped.Do(func() {
			log.FromContext(ctx).Info("The CustomResourceDefinition of sessions in this cluster is not this operator's and drops fields of the status; they are kept in condition " + v1alpha1.ConditionRecorded + ". To see them again, apply the operator's own")
		})
	}
	switch {
	case d.Moves() && d.To == v1alpha1.PhaseCreating:
		r.starts.confirmed(changed, asked)
	case d.Moves() || changed.Status.JobUID != "":
		r.starts.forget(client.ObjectKeyFromObject(changed))
	}
	r.tell(ctx, was, changed, w, d)
	w.Session = changed
	return nil
}

// tell counts, logs and publishes what a status write changed.
func (r *AgenticSessionReconciler) tell(ctx context.Context, was, is *v1alpha1.AgenticSession, w *session.World, d session.Decision) {
	r.count(was, is, w, d)
	logger := log.FromContext(ctx)
	if !d.Moves() {
		logger.V(1).Info("Status changed", "phase", d.To, "reason", d.Reason)
		if session.Troubled(&was.Status, d) {
			r.Events.Eventf(is, nil, corev1.EventTypeWarning, d.Reason, "Wait"+string(d.To), "%s", short(d.Message))
		}
		return
	}
	logger.Info("Phase changed", "from", d.From, "to", d.To, "reason", d.Reason, "run", is.Status.Run)
	if d.To == v1alpha1.PhaseCreating {
		return // every run is made; what comes of it, or stands in its way, has an Event
	}
	kind := corev1.EventTypeNormal
	if d.To == v1alpha1.PhaseFailed {
		kind = corev1.EventTypeWarning
	}
	r.Events.Eventf(is, nil, kind, d.Reason, "Phase"+string(d.To), "%s", short(d.Message))
}

// short keeps a message within what an Event may hold.
func short(message string) string {
	const limit = 1000
	if len(message) <= limit {
		return message
	}
	return message[:limit] + "..."
}
