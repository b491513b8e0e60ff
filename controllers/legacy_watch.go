package controllers

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
}

// Start begins to watch and returns. The watch ends with the context.
func (p *plainWatch) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.follow(ctx, queue); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("Listing anew", "kind", p.String(), "reason", err.Error())
		}
	}, time.Second)
	return nil
}

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
func (p *plainWatch) follow(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	list := p.kind.list.DeepCopyObject().(client.ObjectList)
	if err := p.client.List(ctx, list, p.options(nil)); err != nil {
		return err
	}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		p.enqueue(ctx, queue, item)
		return nil
	})
	if err != nil {
		return err
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), p)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch event.Type {
		case apiwatch.Added, apiwatch.Modified, apiwatch.Deleted:
			p.enqueue(ctx, queue, event.Object)
		case apiwatch.Error:
			return apierrors.FromObject(event.Object)
		case apiwatch.Bookmark:
		}
	}
	return errWatchEnded
}

func (p *plainWatch) enqueue(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], item runtime.Object) {
	object, ok := item.(client.Object)
	if !ok {
		return
	}
	for _, request := range p.wakes(ctx, object) {
		queue.Add(request)
	}
}

// WatchWithContext makes one watch connection, for the retrying watcher.
func (p *plainWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
	list := p.kind.list.DeepCopyObject().(client.ObjectList)
	return p.client.Watch(ctx, list, p.options(&options))
}

func (p *plainWatch) options(raw *metav1.ListOptions) *client.ListOptions {
	return &client.ListOptions{Namespace: p.kind.namespace, LabelSelector: p.kind.labels, FieldSelector: p.kind.fields, Raw: raw}
}
