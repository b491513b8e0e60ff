package controllers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// count counts what a status write changed.
func (r *AgenticSessionReconciler) count(was, is *v1alpha1.AgenticSession, w *session.World, d session.Decision) {
	change := &metrics.Change{Namespace: is.Namespace, Was: &was.Status, Is: &is.Status, Reason: d.Reason}
	known := func(took time.Duration, known bool) *time.Duration {
		if !known {
			return nil
		}
		return &took
	}
	if was.Status.PodName == "" && is.Status.PodName != "" {
		change.PodCreation = known(w.PodCreation())
	}
	switch {
	case !d.Moves():
	case d.To == v1alpha1.PhaseRunning:
		change.Startup = known(w.Startup())
	case d.To.Terminal():
		change.Run = known(w.RunDuration(&is.Status))
	}
	r.Metrics.Changed(change)
}

// noteToken keeps what the metrics know of the token of a session up to date.
func (r *AgenticSessionReconciler) noteToken(w *session.World) {
	var expires time.Time
	if phase := w.Phase(); w.Token != nil && (phase == v1alpha1.PhaseCreating || phase == v1alpha1.PhaseRunning) {
		expires = w.Token.Expires
	}
	r.Metrics.TokenExpires(client.ObjectKeyFromObject(w.Session), expires)
}

// showSessions lets the metrics count the sessions in the cache. There are none to count without it.
func (r *AgenticSessionReconciler) showSessions(ctx context.Context, mgr ctrl.Manager) error {
	if !r.Indexed {
		return nil
	}
	if len(r.Config.TargetNamespaces) > 0 {
		// There is a cache for each namespace, and none that has a store of all.
		r.Metrics.CountSessions(inCache(ctx, r.Seen, r.Config), r.Clock.Now)
		return nil
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.AgenticSession{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("reaching the cached sessions: %w", err)
	}
	stored, ok := informer.(interface{ GetStore() toolscache.Store })
	if !ok {
		return fmt.Errorf("reaching the cached sessions: %T has no store", informer)
	}
	r.Metrics.CountSessions(inStore(stored.GetStore()), r.Clock.Now)
	return nil
}

// inStore yields the sessions in a store without copying them.
func inStore(store toolscache.Store) iter.Seq[*v1alpha1.AgenticSession] {
	return func(yield func(*v1alpha1.AgenticSession) bool) {
		for _, object := range store.List() {
			if s, ok := object.(*v1alpha1.AgenticSession); ok && !yield(s) {
				return
			}
		}
	}
}

// inCache yields the sessions of the namespaces that are to be served, without copying what is in
// them. Before the caches are filled there are none.
func inCache(ctx context.Context, from client.Reader, settings *config.Config) iter.Seq[*v1alpha1.AgenticSession] {
	return func(yield func(*v1alpha1.AgenticSession) bool) {
		sessions, err := listSessions(ctx, from, settings, metav1.NamespaceAll)
		if err != nil {
			return
		}
		for i := range sessions {
			if !yield(&sessions[i]) {
				return
			}
		}
	}
}

// errorType is the type of an error in metrics.
func errorType(err error) string {
	var blocked *apply.Blocked
	switch {
	case errors.As(err, &blocked):
		return metrics.ErrorBlocked
	case errors.Is(err, errToken):
		return metrics.ErrorToken
	case errors.Is(err, errRunner):
		return metrics.ErrorRunner
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return metrics.ErrorTimeout
	case apierrors.IsConflict(err):
		return metrics.ErrorConflict
	case apierrors.IsForbidden(err):
		return metrics.ErrorForbidden
	default:
		return metrics.Other
	}
}
