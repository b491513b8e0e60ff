package wiring

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// noObject stands for "something changed" where it does not matter what.
var noObject = metav1.PartialObjectMetadata{}

// followed is what a watch is about: one object by its name, or with an empty name all of a kind.
type followed struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// watches are the watches of the monitoring controller. Each stands for itself and can be ended
// while the others go on, as a watch on a kind that has gone would fail for ever.
type watches struct {
	ctx      context.Context
	metadata metadata.Interface
	dynamic  dynamic.Interface
	log      logr.Logger
	poke     func()
	running  sync.WaitGroup

	mu  sync.Mutex
	all map[followed]*watch
	// required are those without which a pass would not see the whole world.
	required []followed
}

type watch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

func newWatches(ctx context.Context, meta metadata.Interface, dyn dynamic.Interface, log logr.Logger, poke func()) *watches {
	return &watches{ctx: ctx, metadata: meta, dynamic: dyn, log: log, poke: poke, all: map[followed]*watch{}}
}

// follow begins to watch, unless that is done already.
func (w *watches) follow(what followed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, found := w.all[what]; found || w.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(logr.NewContext(w.ctx, logr.Discard()))
	made := &watch{informer: w.informer(what), stop: stop}
	// An informer that has not started refuses neither of these.
	err := errors.Join(
		made.informer.SetWatchErrorHandlerWithContext(w.trouble(what)),
		made.informer.SetTransform(stripSelectors))
	if _, handling := made.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.poke() },
		UpdateFunc: func(any, any) { w.poke() },
		DeleteFunc: func(any) { w.poke() },
	}); handling != nil || err != nil {
		w.log.Error(errors.Join(err, handling), "Watching", "resource", what.resource.String())
	}
	w.all[what] = made
	w.running.Go(func() { made.informer.RunWithContext(ctx) })
	w.running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), made.informer.HasSynced) {
			w.poke()
		}
	})
}

func (w *watches) informer(what followed) cache.SharedIndexInformer {
	if what.name == "" {
		return dynamicinformer.NewFilteredDynamicInformer(w.dynamic, what.resource, what.namespace, 0, cache.Indexers{}, nil).Informer()
	}
	byName := fields.OneTermEqualSelector(metav1.ObjectNameField, what.name).String()
	return metadatainformer.NewFilteredMetadataInformer(w.metadata, what.resource, what.namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.FieldSelector = byName }).Informer()
}

// trouble tells of a watch that fails, once until the next success would be told by its effects.
// That the kind is not there is none: its CRD is on its way in or out.
func (w *watches) trouble(what followed) cache.WatchErrorHandlerWithContext {
	var told sync.Once
	return func(_ context.Context, _ *cache.Reflector, err error) {
		switch {
		case apierrors.IsNotFound(err), apierrors.IsResourceExpired(err), apierrors.IsGone(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		default:
			told.Do(func() {
				w.log.Info("A watch fails and is tried again", "resource", what.resource.String(), "namespace", what.namespace, "name", what.name, "error", err.Error())
			})
		}
	}
}

// forget ends a watch.
func (w *watches) forget(what followed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, found := w.all[what]; found {
		old.stop()
		delete(w.all, what)
	}
}

// end waits until all watches have ended with their context.
func (w *watches) end() {
	w.running.Wait()
}

// ready says that a watch has what there is.
func (w *watches) ready(what followed) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.all[what]
	return found != nil && found.informer.HasSynced()
}

// require follows and has synced wait for it.
func (w *watches) require(what ...followed) {
	for _, one := range what {
		w.follow(one)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.required = append(w.required, what...)
}

// synced says that all that is required is ready.
func (w *watches) synced() bool {
	w.mu.Lock()
	required := w.required
	w.mu.Unlock()
	for _, what := range required {
		if !w.ready(what) {
			return false
		}
	}
	return len(required) > 0
}

// get is the metadata of an object; nil when there is none.
func (w *watches) get(what followed) *metav1.PartialObjectMetadata {
	w.mu.Lock()
	found := w.all[what]
	w.mu.Unlock()
	if found == nil {
		return nil
	}
	for _, object := range found.informer.GetStore().List() {
		if object, ok := object.(*metav1.PartialObjectMetadata); ok {
			return object
		}
	}
	return nil
}

// list is all objects of a kind that is watched as a whole.
func (w *watches) list(what followed) []*unstructured.Unstructured {
	w.mu.Lock()
	found := w.all[what]
	w.mu.Unlock()
	if found == nil {
		return nil
	}
	var all []*unstructured.Unstructured
	for _, object := range found.informer.GetStore().List() {
		if object, ok := object.(*unstructured.Unstructured); ok {
			all = append(all, object)
		}
	}
	return all
}

// stripSelectors drops all of a Prometheus object but what it selects.
func stripSelectors(object any) (any, error) {
	whole, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"apiVersion": whole.GetAPIVersion(), "kind": whole.GetKind()}}
	kept.SetNamespace(whole.GetNamespace())
	kept.SetName(whole.GetName())
	kept.SetUID(whole.GetUID())
	kept.SetResourceVersion(whole.GetResourceVersion())
	for _, field := range []string{"serviceMonitorSelector", "serviceMonitorNamespaceSelector", "ruleSelector", "ruleNamespaceSelector"} {
		if selector, found, err := unstructured.NestedMap(whole.Object, "spec", field); found && err == nil {
			if err := unstructured.SetNestedMap(kept.Object, selector, "spec", field); err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}
