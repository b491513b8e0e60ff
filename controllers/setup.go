package controllers

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
)

// A failed pass is tried again after 200 ms, then after twice as long each time, up to 30 s. A pass
// that takes longer than the last waits for an API server that does not answer: it is given up, so
// that the worker is free for others, and tried again.
const (
	firstRetry   = 200 * time.Millisecond
	slowestRetry = 30 * time.Second
	longestPass  = 30 * time.Second
)

// SetupWithManager adds the controller of sessions to the manager, with the event source that the
// configuration asks for.
func (r *AgenticSessionReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	from, err := readingFrom(mgr, r.Config)
	if err != nil {
		return err
	}
	r.Client, r.Seen, r.Live, r.Indexed = from.client, from.seen, from.live, from.cached
	if r.Indexed {
		if err := r.index(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
	}
	sources := from.sources(watches(r, &ProjectSettingsReconciler{}, &SharedSecretReconciler{}), func(w watched) mapping { return w.sessions })
	var registry []source.Source
	if r.Own, registry, err = from.apart(mgr, registryWatch(r.Config.Namespace), r.byRegistry); err != nil {
		return err
	}
	if err := r.showSessions(ctx, mgr); err != nil {
		return err
	}
	return control(mgr, "agenticsession", r.Config, append(sources, registry...), r)
}

// control adds a controller to the manager. All controllers retry and wait alike.
func control(mgr ctrl.Manager, name string, settings *config.Config, sources []source.Source, r reconcile.Reconciler) error {
	// Several managers may run in one process, as tests do. A replica that does not lead keeps its
	// caches filled, so that it can take over at once.
	anyName, warm := true, true
	builder := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(controller.Options{
			SkipNameValidation:      &anyName,
			EnableWarmup:            &warm,
			ReconciliationTimeout:   longestPass,
			MaxConcurrentReconciles: settings.MaxConcurrentReconciles,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, slowestRetry),
		})
	for _, s := range sources {
		builder = builder.WatchesRawSource(s)
	}
	if err := builder.Complete(r); err != nil {
		return fmt.Errorf("adding the controller %s: %w", name, err)
	}
	return nil
}

// reading is where a controller reads, and what wakes it: the caches and their events, or under
// --legacy-watch plain watches and a client without caches. Events of the one and reads of the
// other would not fit together.
type reading struct {
	client client.Client
	// seen is for what maps events: it has what caches have by now, and waits for no write, as the client
	// does. A write that hangs would otherwise keep back the events of all. Without caches it asks until it is
	// answered.
	seen client.Reader
	// live reads from the API server.
	live client.Reader
	// cached says that client reads from caches.
	cached   bool
	settings *config.Config
	source   func(watched, mapping) []source.Source
}

func readingFrom(mgr ctrl.Manager, settings *config.Config) (*reading, error) {
	if !settings.LegacyWatch {
		return &reading{client: mgr.GetClient(), seen: mgr.GetCache(), live: mgr.GetAPIReader(), cached: true, settings: settings, source: func(w watched, wakes mapping) []source.Source {
			return []source.Source{source.Kind(mgr.GetCache(), w.object, handler.EnqueueRequestsFromMapFunc(handler.MapFunc(wakes)))}
		}}, nil
	}
	direct, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("making a client without caches: %w", err)
	}
	return &reading{client: direct, seen: patientReader{direct}, live: direct, settings: settings, source: func(w watched, wakes mapping) []source.Source {
		return plainWatches(direct, scoped(w, settings), wakes)
	}}, nil
}

// sources picks from the table of all kinds those that concern a controller. It is woken for what is
// to be served alone.
func (from *reading) sources(table []watched, column func(watched) mapping) []source.Source {
	var sources []source.Source
	for _, w := range table {
		if wakes := column(w); wakes != nil {
			sources = append(sources, from.source(w, served(from.settings, wakes))...)
		}
	}
	return sources
}

// apart reads and watches one kind in one namespace, beside what the table selects of that kind.
func (from *reading) apart(mgr ctrl.Manager, kind watched, wakes mapping) (client.Reader, []source.Source, error) {
	if !from.cached {
		return from.live, from.source(kind, wakes), nil
	}
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:                  mgr.GetHTTPClient(),
		Scheme:                      mgr.GetScheme(),
		Mapper:                      mgr.GetRESTMapper(),
		DefaultNamespaces:           kind.configs(),
		DefaultFieldSelector:        kind.fields,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making a cache of one namespace: %w", err)
	}
	if err := mgr.Add(beside{made}); err != nil {
		return nil, nil, fmt.Errorf("adding a cache of one namespace: %w", err)
	}
	return made, []source.Source{source.Kind(made, kind.object, handler.EnqueueRequestsFromMapFunc(handler.MapFunc(wakes)))}, nil
}

// beside is a cache that is started and filled together with the manager's own, on every replica:
// the manager knows such a one by its method GetCache.
type beside struct{ cache.Cache }

// GetCache is for the manager.
func (b beside) GetCache() cache.Cache { return b.Cache }

// index lets a pass find the Jobs and pods of its session, and the Events about its Job, without
// going through those of all others.
func (r *AgenticSessionReconciler) index(ctx context.Context, indexer client.FieldIndexer) error {
	bySession := func(object client.Object) []string {
		return []string{object.GetLabels()[v1alpha1.LabelSession]}
	}
	byInvolved := func(object client.Object) []string {
		if event, ok := object.(*corev1.Event); ok {
			return []string{string(event.InvolvedObject.UID)}
		}
		return nil
	}
	for _, i := range []struct {
		object client.Object
		field  string
		by     client.IndexerFunc
	}{
		{&batchv1.Job{}, indexSession, bySession},
		{&corev1.Pod{}, indexSession, bySession},
		{&v1alpha1.AgenticSession{}, indexParent, byParent},
		{&v1alpha1.AgenticSession{}, indexAwaits, byWait},
		{&corev1.Event{}, indexInvolvedUID, byInvolved},
	} {
		if err := indexer.IndexField(ctx, i.object, i.field, i.by); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.object, i.field, err)
		}
	}
	return nil
}
