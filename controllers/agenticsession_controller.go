// Package controllers is the imperative shell around internal/session: the only place with a
// client. For a session, agenticsession_observe.go reads one World, internal/session decides,
// agenticsession_enforce.go makes the cluster match the phase and this file reports. A pass either
// moves a session to another phase or enforces the phase it is in; the stored phase is the log
// that a crash cannot lose. What wakes a pass is in sources.go, for plain watches in
// legacy_watch.go.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// AgenticSessionReconciler runs sessions.
type AgenticSessionReconciler struct {
	// Client reads from caches, or from the API server under --legacy-watch, and writes.
	Client client.Client
	// Seen reads for what maps events, without waiting for writes that are under way.
	Seen client.Reader
	// Live reads from the API server; only where the cache may not be believed.
	Live client.Reader
	// Own reads the registry of runner types in the operator's own namespace.
	Own     client.Reader
	Config  *config.Config
	Metrics *metrics.Set
	Events  events.EventRecorder
	Clock   clock.PassiveClock
	// Indexed says that Client finds the objects of a session by index.
	Indexed bool

	verified verified
	leaving  leaving
	starts   starts
	dropped  sync.Once
}

// +kubebuilder:rbac:groups=vteam.ambient-code,resources=agenticsessions,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups=vteam.ambient-code,resources=agenticsessions/status,verbs=patch
// +kubebuilder:rbac:groups=vteam.ambient-code,resources=projectsettings,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create
// +kubebuilder:rbac:groups="",resources=services;persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one pass over a session.
func (r *AgenticSessionReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	began := r.Clock.Now()
	s := &v1alpha1.AgenticSession{}
	if err := r.Client.Get(ctx, request.NamespacedName, s); err != nil {
		if apierrors.IsNotFound(err) {
			r.verified.forget(request.NamespacedName)
			r.starts.forget(request.NamespacedName)
			r.Metrics.TokenExpires(request.NamespacedName, time.Time{})
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading the session: %w", err)
	}
	phase := s.Status.Phase
	if err := r.number(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	wake, err := r.pass(ctx, s, began)
	r.Metrics.Passed(phase, r.Clock.Since(began), err)
	if err != nil {
		r.Metrics.Erred(s.Namespace, phase, errorType(err))
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: wake}, nil
}

// pass observes, decides, moves or enforces, and reports. It returns after how long the session is
// to be looked at again, 0 for not before something happens.
func (r *AgenticSessionReconciler) pass(ctx context.Context, s *v1alpha1.AgenticSession, now time.Time) (time.Duration, error) {
	seen, err := r.observe(ctx, s, now)
	if err != nil {
		return 0, err
	}
	if s.DeletionTimestamp != nil {
		return 0, r.end(ctx, seen)
	}
	w := &seen.world
	defer r.noteToken(w)
	d, err := r.decide(ctx, seen)
	if err != nil {
		return 0, err
	}
	sure, err := r.confirm(ctx, seen, d)
	if err != nil {
		return 0, err
	}
	if w.Namespace.Terminating && w.Phase() != v1alpha1.PhasePending {
		// The namespace controller takes everything away, in an order of its own; what it does to a
		// run is not the run's outcome.
		return 0, nil
	}
	if d.Moves() && sure {
		return r.report(ctx, w, d)
	}
	obstructed := w.Obstructed()
	enforceErr := r.enforce(ctx, seen)
	d = session.Decide(w)
	again, err := r.report(ctx, w, d)
	switch {
	case err != nil:
		return 0, errors.Join(enforceErr, err)
	case again > 0 || d.Moves():
		return again, nil
	case w.Phase() == v1alpha1.PhaseRunning && immovable(enforceErr):
		// Trying again and again would change nothing. Most of it is watched; where it is not, it is
		// looked at, less and less often.
		if !obstructed {
			log.FromContext(ctx).Info("Something is in the way of the running session", "reason", d.Reason, "message", d.Message)
			r.Metrics.Erred(s.Namespace, w.Phase(), errorType(enforceErr))
		}
		w.Again = w.NextLook()
		return w.Wake(), nil
	default:
		return w.Wake(), enforceErr
	}
}

// end ends the run of a session that is being deleted. Everything the session has is owned by it and
// goes with it, but somebody's finalizer may keep the session itself for long.
func (r *AgenticSessionReconciler) end(ctx context.Context, seen *seen) error {
	r.Metrics.TokenExpires(client.ObjectKeyFromObject(seen.world.Session), time.Time{})
	return errors.Join(r.removeRuns(ctx, seen), r.release(ctx, seen))
}

// immovable says that nothing but obstacles that waiting does not remove kept a pass from its end.
func immovable(err error) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(many.Unwrap(), func(err error) bool { return !immovable(err) })
	}
	var blocked *apply.Blocked
	return errors.As(err, &blocked) && blocked.Final
}
