// Package wiring is the controller that wires the operator into the monitoring of its cluster, as
// internal/monitoring says. It keeps objects in place by server-side apply under a field manager of
// its own, takes away what others add to their contents (keep.go) without racing with them
// (contest.go), and tells in a ConfigMap, an Event and a metric what came of it.
//
// The kinds that it makes are mostly optional: they come with a CRD and go with it, at any time. So
// nothing of it is in the manager's caches. It follows the CRDs by name, follows objects of a kind
// only as long as there is a CRD, and knows all objects by their metadata alone (watch.go). All of
// that happens on the replica that leads.
package wiring

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

// Reconciler makes passes over all of the wiring; there is one object of it, so to say.
type Reconciler struct {
	Config *config.Config
	Clock  clock.WithDelayedExecution
	Events events.EventRecorder
	// Content is what is shown and watched for.
	Content monitoring.Content
	// Serving tells how metrics are served now, Scrapes whether they are read; Changed is when one of
	// them is another.
	Serving func() monitoring.Serving
	Scrapes func() monitoring.Scrapes
	Changed []<-chan event.GenericEvent
	// Wired tells the metric of a part; it may be nil.
	Wired func(part string, wired bool)

	client   client.Client
	metadata metadata.Interface
	dynamic  dynamic.Interface
	pokes    chan event.GenericEvent

	// mu guards what Start sets up while passes may already run.
	mu           sync.Mutex
	watches      *watches
	installation *monitoring.Installation

	// Passes run one at a time, so these need no guard.
	written      map[monitoring.Place]version
	contests     map[monitoring.Place]*contest
	alarm        clock.Timer
	userWorkload userWorkloadMemory
	minted       mintedToken
	told         string
	trust        followed
}

// In the operator's own namespace:
//
//	deployments, replicasets, pods      finds the Deployment that it belongs to
//	endpoints, endpointslices, pods     handed on to the platform's Prometheus
//
// +kubebuilder:rbac:groups=apps,namespace=system,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,namespace=system,resources=replicasets,verbs=get
// +kubebuilder:rbac:groups="",namespace=system,resources=pods;endpoints,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,namespace=system,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=system,resources=configmaps,resourceNames=agentic-operator-monitoring;grafana-dashboard-agentic-operator,verbs=create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,namespace=system,resources=servicemonitors;prometheusrules,resourceNames=agentic-operator,verbs=list;watch;create;patch;delete
//
// Elsewhere, each object by its name:
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=servicemonitors.monitoring.coreos.com;prometheusrules.monitoring.coreos.com;prometheuses.monitoring.coreos.com;consolequickstarts.console.openshift.io;consoleyamlsamples.console.openshift.io,verbs=list;watch
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=prometheuses,verbs=list;watch
// +kubebuilder:rbac:groups=console.openshift.io,resources=consolequickstarts,resourceNames=agentic-operator-first-session,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=console.openshift.io,resources=consoleyamlsamples,resourceNames=agentic-operator-session,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=grafana-dashboard-agentic-operator;cluster-monitoring-config,verbs=create;patch;delete

// monitoringField is the field manager of all that the wiring writes.
const monitoringField = "agentic-operator-monitoring"

// A pass that failed is tried again, soon at first and then ever more seldom.
const (
	firstRetry   = time.Second
	slowestRetry = time.Minute
	longestPass  = 30 * time.Second
)

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Config.PodName == "" {
		mgr.GetLogger().WithName("monitoring").Info("Monitoring is not wired, as the operator does not know its pod (POD_NAME)")
		return nil
	}
	var err error
	r.client = mgr.GetClient()
	if r.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient()); err != nil {
		return fmt.Errorf("making a client for metadata: %w", err)
	}
	if r.dynamic, err = dynamic.NewForConfigAndClient(dynamic.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient()); err != nil {
		return fmt.Errorf("making a client for objects of any kind: %w", err)
	}
	r.written = map[monitoring.Place]version{}
	r.contests = map[monitoring.Place]*contest{}
	r.pokes = make(chan event.GenericEvent, 1)
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("adding what watches for monitoring: %w", err)
	}
	always := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: r.Config.Namespace, Name: "monitoring"}}}
	})
	anyName := true // several managers may run in one process, as tests do
	builder := ctrl.NewControllerManagedBy(mgr).
		Named("monitoring").
		WithOptions(controller.Options{
			SkipNameValidation:      &anyName,
			ReconciliationTimeout:   longestPass,
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, slowestRetry),
		}).
		WatchesRawSource(source.Channel(r.pokes, always))
	for _, changed := range r.Changed {
		builder = builder.WatchesRawSource(source.Channel(changed, always))
	}
	if err := builder.Complete(r); err != nil {
		return fmt.Errorf("adding the controller of monitoring: %w", err)
	}
	return nil
}

// NeedLeaderElection is for the manager: only the leader watches and writes.
func (r *Reconciler) NeedLeaderElection() bool { return true }

// Start watches until the context ends, and then cleans up if the operator was uninstalled.
func (r *Reconciler) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("monitoring")
	installation := r.awaitInstallation(ctx, log)
	if installation == nil {
		return nil
	}
	watching := newWatches(ctx, r.metadata, r.dynamic, log, r.poke)
	r.mu.Lock()
	r.installation, r.watches = installation, watching
	r.mu.Unlock()
	r.watchAlways(watching, installation) //nolint:contextcheck // watches live as long as the controller
	r.poke()
	<-ctx.Done()
	watching.end()
	return r.farewell(ctx, installation)
}

// poke asks for a pass; one that is asked for already will do.
func (r *Reconciler) poke() {
	select {
	case r.pokes <- event.GenericEvent{Object: &noObject}:
	default:
	}
}

// Reconcile makes one pass.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	watching, installation := r.watches, r.installation
	r.mu.Unlock()
	if watching == nil || !watching.synced() {
		return ctrl.Result{}, nil // the end of the sync asks for a pass
	}
	world, alive := r.observe(watching, *installation) //nolint:contextcheck // watches outlive the pass that begins them
	if !alive {
		return ctrl.Result{}, r.leave(ctx, installation)
	}
	var failures []error
	problems := map[monitoring.Part]monitoring.Condition{}
	note := func(problem *monitoring.Condition, err error) {
		if problem != nil {
			problems[problem.Part] = *problem
		}
		failures = append(failures, err)
	}
	wake := &earliest{}
	note(r.ensureToken(ctx, watching, world, wake))
	note(nil, r.ensureUserWorkload(ctx, watching, world, wake))
	objects := world.Objects()
	for _, object := range objects {
		note(r.keep(ctx, watching, world, object, wake))
	}
	note(nil, r.removeOthers(ctx, watching, world, objects))
	note(nil, r.tell(ctx, watching, world, world.Report(objects, problems)))
	r.setAlarm(wake)
	return ctrl.Result{}, errors.Join(failures...)
}

// earliest is the first of several moments; zero is none.
type earliest struct{ at time.Time }

func (e *earliest) or(at time.Time) {
	if e.at.IsZero() || at.Before(e.at) {
		e.at = at
	}
}

// setAlarm asks for a pass at a moment.
func (r *Reconciler) setAlarm(wake *earliest) {
	if r.alarm != nil {
		r.alarm.Stop()
		r.alarm = nil
	}
	if !wake.at.IsZero() {
		r.alarm = r.Clock.AfterFunc(max(0, wake.at.Sub(r.Clock.Now())), r.poke)
	}
}

// passing says that an error of a write will be mended by an event that is on its way: the kind, or
// the namespace, is going or gone.
func passing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || terminating(err)
}
