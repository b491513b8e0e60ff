package controllers

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// errWatchEnded says that a watch ended without an error of its own.
var errWatchEnded = errors.New("the watch ended")

// plainWatch is the event source of --legacy-watch: it lists and watches one kind with nothing in
// between and calls the same Reconcile as the shared caches do. It is for debugging: every read of
// a pass goes to the API server, so it costs that far more.
type plainWatch struct {
	client client.WithWatch
	kind   watched
	wakes  mapping
	// namespace limits the watch; empty is all.
	namespace string
	// busy has an entry for each change that is being mapped.
	busy chan struct{}
}

// mappedAtOnce bounds the changes of a kind that are mapped to what they concern at the same time. Each may
// take several reads from the API server, which must not hold up the changes that follow.
const mappedAtOnce = 10

// plainWatches watches a kind in each of its namespaces.
func plainWatches(from client.WithWatch, kind watched, wakes mapping) []source.Source {
	if kind.in == nil {
		return []source.Source{newPlainWatch(from, kind, wakes, "")}
	}
	var all []source.Source
	for _, namespace := range kind.in {
		all = append(all, newPlainWatch(from, kind, wakes, namespace))
	}
	return all
}

func newPlainWatch(from client.WithWatch, kind watched, wakes mapping, namespace string) *plainWatch {
	return &plainWatch{client: from, kind: kind, wakes: wakes, namespace: namespace, busy: make(chan struct{}, mappedAtOnce)}
}

// Start begins to watch and returns. The watch ends with the context.
func (p *plainWatch) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	known := seenObjects{}
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.follow(ctx, queue, known); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("Listing anew", "kind", p.String(), "reason", err.Error())
		}
	}, time.Second)
	return nil
}

// seenObjects are those that were there when the server last told. Who lists anew learns from them
// what has gone meanwhile, of which no event tells.
type seenObjects map[types.NamespacedName]client.Object

// String names the kind that is watched.
func (p *plainWatch) String() string {
	gvk, err := p.client.GroupVersionKindFor(p.kind.object)
	if err != nil {
		return err.Error()
	}
	return gvk.Kind
}

// follow lists everything, then follows the changes. Closed connections are taken up again where
// they broke off; it returns when the server no longer knows that place, to begin anew.
func (p *plainWatch) follow(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], known seenObjects) error {
	list := p.kind.list.DeepCopyObject().(client.ObjectList)
	if err := p.client.List(ctx, list, p.options(nil)); err != nil {
		return err
	}
	gone := maps.Clone(known)
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			delete(gone, client.ObjectKeyFromObject(object))
			p.take(ctx, queue, known, object, false)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, object := range gone {
		p.take(ctx, queue, known, object, true)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), p)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch event.Type {
		case apiwatch.Added, apiwatch.Modified, apiwatch.Deleted:
			if object, ok := event.Object.(client.Object); ok {
				p.take(ctx, queue, known, object, event.Type == apiwatch.Deleted)
			}
		case apiwatch.Error:
			return apierrors.FromObject(event.Object)
		case apiwatch.Bookmark:
		}
	}
	return errWatchEnded
}

// take wakes what an object concerns, and what it concerned before it changed: a label may have been taken
// off. It remembers the object, as small as caches do.
func (p *plainWatch) take(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], known seenObjects, object client.Object, gone bool) {
	if p.kind.strip != nil {
		if stripped, err := p.kind.strip(object); err == nil {
			object = stripped.(client.Object)
		}
	}
	key := client.ObjectKeyFromObject(object)
	versions := []client.Object{object}
	if before := known[key]; before != nil && concernsOthers(before, object) {
		versions = append(versions, before)
	}
	p.wake(ctx, queue, versions)
	if gone {
		delete(known, key)
	} else {
		known[key] = object
	}
}

// concernsOthers says that a change may be one of what an object concerns, other than that of a status.
func concernsOthers(was, is client.Object) bool {
	return was.GetGeneration() != is.GetGeneration() || !maps.Equal(was.GetLabels(), is.GetLabels()) || !maps.Equal(was.GetAnnotations(), is.GetAnnotations())
}

// wake queues what the versions of an object concern.
func (p *plainWatch) wake(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], versions []client.Object) {
	select {
	case p.busy <- struct{}{}:
	case <-ctx.Done():
		return
	}
	go func() {
		defer func() { <-p.busy }()
		for _, object := range versions {
			for _, request := range p.wakes(ctx, object) {
				queue.Add(request)
			}
		}
	}()
}

// WatchWithContext makes one watch connection, for the retrying watcher. That one goes on asking for
// ever where the answer itself, not an event, says that the place is no longer known; so the answer
// is made an event.
func (p *plainWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
	list := p.kind.list.DeepCopyObject().(client.ObjectList)
	connection, err := p.client.Watch(ctx, list, p.options(&options))
	var status apierrors.APIStatus
	if errors.As(err, &status) && (apierrors.IsGone(err) || apierrors.IsResourceExpired(err)) {
		answer := status.Status()
		answer.Code = http.StatusGone
		events := make(chan apiwatch.Event, 1)
		events <- apiwatch.Event{Type: apiwatch.Error, Object: &answer}
		return apiwatch.NewProxyWatcher(events), nil
	}
	return connection, err
}

func (p *plainWatch) options(raw *metav1.ListOptions) *client.ListOptions {
	return &client.ListOptions{Namespace: p.namespace, LabelSelector: p.kind.labels, FieldSelector: p.kind.fields, Raw: raw}
}

// patientReader reads for what maps the events of plain watches. An event that could not be mapped is lost,
// and nothing else would wake what it concerns: so a read that fails is tried again until it is answered.
type patientReader struct{ client.Reader }

// Get reads an object. The error is that there is none, or the end of the context.
func (p patientReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return insist(ctx, func(ctx context.Context) error { return p.Reader.Get(ctx, key, object, options...) })
}

// List reads objects of a kind. The error is that there is no such kind, or the end of the context.
func (p patientReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return insist(ctx, func(ctx context.Context) error { return p.Reader.List(ctx, list, options...) })
}

func insist(ctx context.Context, read func(context.Context) error) error {
	var answer error
	again := wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 0.1, Cap: slowestRetry, Steps: math.MaxInt}
	err := again.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		answer = read(ctx)
		return answer == nil || apierrors.IsNotFound(answer) || meta.IsNoMatchError(answer), nil
	})
	if err != nil {
		return errors.Join(answer, err)
	}
	return answer
}
