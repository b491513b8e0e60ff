package controllers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/upgrade"
)

// UpgradeReconciler tells OLM, in the OperatorCondition that OLM made for the installed version,
// when an upgrade is to wait. OLM gives the right to that one object itself, so none is asked for
// here. There is one request, for the OperatorCondition.
type UpgradeReconciler struct {
	// Sessions lists sessions, from the cache or under --legacy-watch from the API server.
	Sessions client.Reader
	// Live reads the OperatorCondition: nobody may list or watch any.
	Live   client.Reader
	Writer client.Writer
	Config *config.Config
	Clock  clock.PassiveClock

	progress upgrade.Progress
	// next is before when sessions are not looked at again.
	next time.Time
	// asked says that the stored condition has been read, and held what it said.
	asked bool
	held  atomic.Bool
	// absent says that the cluster does not know OperatorConditions.
	absent bool
}

// SetupWithManager adds the controller of upgrades to the manager; nothing where OLM has not named
// an OperatorCondition.
func (r *UpgradeReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Config.OperatorCondition == "" {
		return nil
	}
	if err := operatorsv2.AddToScheme(mgr.GetScheme()); err != nil {
		return fmt.Errorf("adding OLM's kinds: %w", err)
	}
	from, err := readingFrom(mgr, r.Config)
	if err != nil {
		return err
	}
	r.Sessions, r.Live, r.Writer = from.client, from.live, mgr.GetClient()
	key := r.key()
	// A hold that another leader has left behind is seen to at once.
	atOnce := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: key})
		return nil
	})
	sessions := from.source(watched{object: &v1alpha1.AgenticSession{}, list: &v1alpha1.AgenticSessionList{}}, r.bySession)
	return control(mgr, "upgrade", r.Config, append(sessions, atOnce), r)
}

func (r *UpgradeReconciler) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Config.Namespace, Name: r.Config.OperatorCondition}
}

// bySession wakes when a session is on its way, or may have arrived while upgrades are held.
func (r *UpgradeReconciler) bySession(_ context.Context, object client.Object) []reconcile.Request {
	s, ok := object.(*v1alpha1.AgenticSession)
	if !ok || !upgrade.Moving(s) && !r.held.Load() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: r.key()}}
}

// Reconcile looks at the sessions, not more often than once a moment, and stores the condition when
// it is to change.
func (r *UpgradeReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	if wait := r.next.Sub(now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if r.absent {
		return ctrl.Result{}, nil
	}
	sessions, err := listSessions(ctx, r.Sessions, r.Config, metav1.NamespaceAll)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("looking for sessions that an upgrade would wait for: %w", err)
	}
	work := r.progress.Look(sessions, r.Config.UpgradeHoldLimit, now)
	if !r.asked || r.held.Load() || !work.None() {
		if err := r.tell(ctx, work, now); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.next = now.Add(upgrade.Moment)
	if work.Soon || r.held.Load() {
		return ctrl.Result{RequeueAfter: upgrade.Moment}, nil
	}
	return ctrl.Result{}, nil
}

// tell stores the condition where it is to change. Once released it stays, as True: OLM goes on
// heeding a condition that it has once seen and that is then left out.
func (r *UpgradeReconciler) tell(ctx context.Context, work upgrade.Work, now time.Time) error {
	stored := &operatorsv2.OperatorCondition{}
	err := r.Live.Get(ctx, r.key(), stored)
	switch {
	case meta.IsNoMatchError(err):
		r.absent = true
		log.FromContext(ctx).Info("Upgrades are never held: the cluster does not know OperatorConditions")
		return nil
	case apierrors.IsNotFound(err):
		r.asked = true
		r.held.Store(false)
		return nil
	case err != nil:
		return fmt.Errorf("reading OperatorCondition %s, by which OLM learns whether it may upgrade: %w", r.key(), err)
	}
	was := meta.FindStatusCondition(stored.Spec.Conditions, upgrade.Upgradeable)
	is := upgrade.Decide(was, work, r.Config.UpgradeHoldLimit, now)
	if is != nil {
		changed := stored.DeepCopy()
		// Storing it makes the next generation, of which it then speaks.
		is.ObservedGeneration = stored.Generation + 1
		meta.SetStatusCondition(&changed.Spec.Conditions, *is)
		patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
		if err := r.Writer.Patch(ctx, changed, patch, client.DisableReadYourWritesConsistency); err != nil {
			return fmt.Errorf("telling OLM in OperatorCondition %s whether it may upgrade: %w", r.key(), err)
		}
		log.FromContext(ctx).Info("Told OLM whether it may upgrade", "upgradeable", is.Status, "reason", is.Reason, "message", is.Message)
		was = is
	}
	r.asked = true
	r.held.Store(was != nil && was.Status == metav1.ConditionFalse)
	return nil
}
