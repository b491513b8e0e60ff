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
	sources, err := r.sources(ctx, mgr)
	if err != nil {
		return err
	}
	// Several managers may run in one process, as tests do. A replica that does not lead keeps its
	// caches filled, so that it can take over at once.
	anyName, warm := true, true
	builder := ctrl.NewControllerManagedBy(mgr).
		Named("agenticsession").
		WithOptions(controller.Options{
			SkipNameValidation:      &anyName,
			EnableWarmup:            &warm,
			ReconciliationTimeout:   longestPass,
			MaxConcurrentReconciles: r.Config.MaxConcurrentReconciles,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, slowestRetry),
		})
	for _, s := range sources {
		builder = builder.WatchesRawSource(s)
	}
	if err := builder.Complete(r); err != nil {
		return fmt.Errorf("adding the controller of sessions: %w", err)
	}
	return nil
}

// sources are the caches' events, or under --legacy-watch plain watches and a client without
// caches: events of the one and reads of the other would not fit together.
func (r *AgenticSessionReconciler) sources(ctx context.Context, mgr ctrl.Manager) ([]source.Source, error) {
	var sources []source.Source
	if r.Config.LegacyWatch {
		direct, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
		if err != nil {
			return nil, fmt.Errorf("making a client without caches: %w", err)
		}
		r.Client, r.Live, r.Own, r.Indexed = direct, direct, direct, false
		for _, kind := range append(r.watches(), r.registryWatch()) {
			sources = append(sources, &plainWatch{client: direct, kind: kind})
		}
		return sources, nil
	}
	if err := r.index(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	r.Client, r.Live, r.Indexed = mgr.GetClient(), mgr.GetAPIReader(), true
	for _, kind := range r.watches() {
		sources = append(sources, source.Kind(mgr.GetCache(), kind.object,
			handler.EnqueueRequestsFromMapFunc(kind.sessions)))
	}
	registry := r.registryWatch()
	own, err := ownCache(mgr, registry)
	if err != nil {
		return nil, err
	}
	r.Own = own
	return append(sources, source.Kind(own.Cache, registry.object, handler.EnqueueRequestsFromMapFunc(registry.sessions))), nil
}

// apart is a cache beside the manager's that is started and filled together with it, on every
// replica: the manager knows such a one by its method GetCache.
type apart struct{ cache.Cache }

// GetCache is for the manager.
func (a apart) GetCache() cache.Cache { return a.Cache }

// ownCache makes the cache of one kind and adds it to the manager.
func ownCache(mgr ctrl.Manager, kind watched) (apart, error) {
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:                  mgr.GetHTTPClient(),
		Scheme:                      mgr.GetScheme(),
		Mapper:                      mgr.GetRESTMapper(),
		DefaultNamespaces:           map[string]cache.Config{kind.namespace: {FieldSelector: kind.fields}},
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return apart{}, fmt.Errorf("making the cache of the registry of runner types: %w", err)
	}
	if err := mgr.Add(apart{made}); err != nil {
		return apart{}, fmt.Errorf("adding the cache of the registry of runner types: %w", err)
	}
	return apart{made}, nil
}

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
		{&corev1.Event{}, indexInvolvedUID, byInvolved},
	} {
		if err := indexer.IndexField(ctx, i.object, i.field, i.by); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.object, i.field, err)
		}
	}
	return nil
}
