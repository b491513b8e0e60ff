package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

func sessionList() *v1alpha1.AgenticSessionList          { return &v1alpha1.AgenticSessionList{} }
func projectSettingsList() *v1alpha1.ProjectSettingsList { return &v1alpha1.ProjectSettingsList{} }

// recorder watches, as the administrator, all sessions and their Jobs and pods and forgets
// nothing. Watches deliver every version in order, so no phase goes unseen however short it was.
type recorder struct {
	mu       sync.Mutex
	sessions map[types.UID][]moment[*v1alpha1.AgenticSession]
	jobs     map[types.NamespacedName][]moment[*batchv1.Job]
	pods     map[types.NamespacedName][]moment[*corev1.Pod]
}

// moment is one version of an object, or its end.
type moment[T client.Object] struct {
	at     time.Time
	object T
	gone   bool
}

func startRecorder(ctx context.Context, c client.WithWatch) (*recorder, error) {
	r := &recorder{
		sessions: map[types.UID][]moment[*v1alpha1.AgenticSession]{},
		jobs:     map[types.NamespacedName][]moment[*batchv1.Job]{},
		pods:     map[types.NamespacedName][]moment[*corev1.Pod]{},
	}
	ours, err := labels.Parse(v1alpha1.LabelSession)
	if err != nil {
		return nil, fmt.Errorf("selecting what is of sessions: %w", err)
	}
	for _, w := range []*recording{
		{client: c, list: sessionList(), selector: labels.Everything()},
		{client: c, list: &batchv1.JobList{}, selector: ours},
		{client: c, list: &corev1.PodList{}, selector: ours},
	} {
		if err := w.start(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// recording is one of the recorder's watches.
type recording struct {
	client   client.WithWatch
	list     client.ObjectList
	selector labels.Selector
}

// start lists, and then follows the changes until the context ends. A watch that breaks off for good
// (a CRD was changed) is begun anew with a list.
func (w *recording) start(ctx context.Context, r *recorder) error {
	watcher, err := w.begin(ctx, r)
	if err != nil {
		return err
	}
	go func() {
		for ctx.Err() == nil {
			for event := range watcher.ResultChan() {
				switch event.Type {
				case watch.Added, watch.Modified, watch.Deleted:
					r.take(event.Object, event.Type == watch.Deleted)
				case watch.Bookmark, watch.Error:
				}
			}
			for ctx.Err() == nil {
				if watcher, err = w.begin(ctx, r); err == nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	return nil
}

func (w *recording) begin(ctx context.Context, r *recorder) (watch.Interface, error) {
	list, ok := w.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", w.list)
	}
	if err := w.client.List(ctx, list, &client.ListOptions{LabelSelector: w.selector}); err != nil {
		return nil, fmt.Errorf("listing for the recorder: %w", err)
	}
	there := map[types.UID]bool{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			there[object.GetUID()] = true
		}
		r.take(item, false)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing for the recorder: %w", err)
	}
	r.missing(w.list, there)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), w)
	if err != nil {
		return nil, fmt.Errorf("watching for the recorder: %w", err)
	}
	return watcher, nil
}

// WatchWithContext makes one watch connection, for the retrying watcher.
func (w *recording) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	list, ok := w.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", w.list)
	}
	return w.client.Watch(ctx, list, &client.ListOptions{LabelSelector: w.selector, Raw: &options})
}

// missing notes the end of what was there before and is no longer, of which no watch told.
func (r *recorder) missing(kind client.ObjectList, there map[types.UID]bool) {
	r.mu.Lock()
	var gone []runtime.Object
	switch kind.(type) {
	case *v1alpha1.AgenticSessionList:
		for _, moments := range r.sessions {
			gone = append(gone, vanished(moments, there)...)
		}
	case *batchv1.JobList:
		for _, moments := range r.jobs {
			gone = append(gone, vanished(moments, there)...)
		}
	case *corev1.PodList:
		for _, moments := range r.pods {
			gone = append(gone, vanished(moments, there)...)
		}
	}
	r.mu.Unlock()
	for _, object := range gone {
		r.take(object, true)
	}
}

func vanished[T client.Object](moments []moment[T], there map[types.UID]bool) (gone []runtime.Object) {
	for _, object := range remaining(moments) {
		if !there[object.GetUID()] {
			gone = append(gone, object)
		}
	}
	return gone
}

func (r *recorder) take(object runtime.Object, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch object := object.(type) {
	case *v1alpha1.AgenticSession:
		r.sessions[object.UID] = append(r.sessions[object.UID], moment[*v1alpha1.AgenticSession]{now, object, gone})
	case *batchv1.Job:
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[v1alpha1.LabelSession]}
		r.jobs[key] = append(r.jobs[key], moment[*batchv1.Job]{now, object, gone})
	case *corev1.Pod:
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[v1alpha1.LabelSession]}
		r.pods[key] = append(r.pods[key], moment[*corev1.Pod]{now, object, gone})
	}
}

// versions returns what is known of a session so far, oldest first.
func (r *recorder) versions(uid types.UID) []moment[*v1alpha1.AgenticSession] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sessions[uid])
}

func (r *recorder) jobsOf(key types.NamespacedName) []moment[*batchv1.Job] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.jobs[key])
}

func (r *recorder) podsOf(key types.NamespacedName) []moment[*corev1.Pod] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.pods[key])
}

// phases lists the phases of a session in order, each once until it changes.
func phases(versions []moment[*v1alpha1.AgenticSession]) []v1alpha1.Phase {
	var all []v1alpha1.Phase
	for _, v := range versions {
		if phase := v.object.Status.Phase; !v.gone && phase != "" && (len(all) == 0 || all[len(all)-1] != phase) {
			all = append(all, phase)
		}
	}
	return all
}

// uids lists the distinct UIDs in order of appearance.
func uids[T client.Object](moments []moment[T]) []types.UID {
	var all []types.UID
	for _, m := range moments {
		if uid := m.object.GetUID(); !slices.Contains(all, uid) {
			all = append(all, uid)
		}
	}
	return all
}

// remaining returns the latest version of every object that is still there.
func remaining[T client.Object](moments []moment[T]) []T {
	latest := map[types.UID]moment[T]{}
	for _, m := range moments {
		latest[m.object.GetUID()] = m
	}
	var all []T
	for _, uid := range uids(moments) {
		if m := latest[uid]; !m.gone {
			all = append(all, m.object)
		}
	}
	return all
}

// mostAtOnce is the largest number of pods that were alive (neither ended nor gone) at a time.
func mostAtOnce(moments []moment[*corev1.Pod]) int {
	alive, most := map[types.UID]bool{}, 0
	for _, m := range moments {
		if m.gone || m.object.Status.Phase == corev1.PodSucceeded || m.object.Status.Phase == corev1.PodFailed {
			delete(alive, m.object.UID)
		} else {
			alive[m.object.UID] = true
		}
		most = max(most, len(alive))
	}
	return most
}

func itemCount(list client.ObjectList) int { return meta.LenList(list) }

func ptr[T any](value T) *T { return &value }
