// Package record keeps every version of every session, Job and pod of a cluster while tests run, and
// judges the whole of it: what must hold at every moment is not seen by looking now and then.
//
// Start begins (this file); Step (judge.go) says what is wrong with a change of a session.
package record

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

// Recorder watches, as the administrator, all sessions and their Jobs and pods and forgets
// nothing. Watches deliver every version in order, so no phase goes unseen however short it was.
type Recorder struct {
	mu       sync.Mutex
	sessions map[types.UID][]Moment[*v1alpha1.AgenticSession]
	jobs     map[types.NamespacedName][]Moment[*batchv1.Job]
	pods     map[types.NamespacedName][]Moment[*corev1.Pod]
}

// Moment is one version of an object, or its end.
type Moment[T client.Object] struct {
	At     time.Time
	Object T
	Gone   bool
	// Listed says that it was read in a list, so that versions before it may be missing.
	Listed bool
}

// Start begins to record, and records until the context ends.
func Start(ctx context.Context, c client.WithWatch) (*Recorder, error) {
	r := &Recorder{
		sessions: map[types.UID][]Moment[*v1alpha1.AgenticSession]{},
		jobs:     map[types.NamespacedName][]Moment[*batchv1.Job]{},
		pods:     map[types.NamespacedName][]Moment[*corev1.Pod]{},
	}
	ours, err := labels.Parse(v1alpha1.LabelSession)
	if err != nil {
		return nil, fmt.Errorf("selecting what is of sessions: %w", err)
	}
	for _, w := range []*recording{
		{client: c, list: &v1alpha1.AgenticSessionList{}, selector: labels.Everything()},
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
func (w *recording) start(ctx context.Context, r *Recorder) error {
	watcher, err := w.begin(ctx, r)
	if err != nil {
		return err
	}
	go func() {
		for ctx.Err() == nil {
			for event := range watcher.ResultChan() {
				switch event.Type {
				case watch.Added, watch.Modified, watch.Deleted:
					r.take(event.Object, event.Type == watch.Deleted, false)
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

func (w *recording) begin(ctx context.Context, r *Recorder) (watch.Interface, error) {
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
		r.take(item, false, true)
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
func (r *Recorder) missing(kind client.ObjectList, there map[types.UID]bool) {
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
		r.take(object, true, true)
	}
}

func vanished[T client.Object](moments []Moment[T], there map[types.UID]bool) (gone []runtime.Object) {
	for _, object := range Remaining(moments) {
		if !there[object.GetUID()] {
			gone = append(gone, object)
		}
	}
	return gone
}

func (r *Recorder) take(object runtime.Object, gone, listed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch object := object.(type) {
	case *v1alpha1.AgenticSession:
		r.sessions[object.UID] = append(r.sessions[object.UID], Moment[*v1alpha1.AgenticSession]{now, object, gone, listed})
	case *batchv1.Job:
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[v1alpha1.LabelSession]}
		r.jobs[key] = append(r.jobs[key], Moment[*batchv1.Job]{now, object, gone, listed})
	case *corev1.Pod:
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[v1alpha1.LabelSession]}
		r.pods[key] = append(r.pods[key], Moment[*corev1.Pod]{now, object, gone, listed})
	}
}

// Versions returns what is known of a session so far, oldest first.
func (r *Recorder) Versions(uid types.UID) []Moment[*v1alpha1.AgenticSession] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sessions[uid])
}

// JobsOf returns what is known of the Jobs of a session, oldest first.
func (r *Recorder) JobsOf(key types.NamespacedName) []Moment[*batchv1.Job] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.jobs[key])
}

// PodsOf returns what is known of the pods of a session, oldest first.
func (r *Recorder) PodsOf(key types.NamespacedName) []Moment[*corev1.Pod] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.pods[key])
}

// Phases lists the phases of a session in order, each once until it changes.
func Phases(versions []Moment[*v1alpha1.AgenticSession]) []v1alpha1.Phase {
	var all []v1alpha1.Phase
	for _, v := range versions {
		if phase := v.Object.Status.Phase; !v.Gone && phase != "" && (len(all) == 0 || all[len(all)-1] != phase) {
			all = append(all, phase)
		}
	}
	return all
}

// UIDs lists the distinct UIDs in order of appearance.
func UIDs[T client.Object](moments []Moment[T]) []types.UID {
	var all []types.UID
	for _, m := range moments {
		if uid := m.Object.GetUID(); !slices.Contains(all, uid) {
			all = append(all, uid)
		}
	}
	return all
}

// Remaining returns the latest version of every object that is still there.
func Remaining[T client.Object](moments []Moment[T]) []T {
	latest := map[types.UID]Moment[T]{}
	for _, m := range moments {
		latest[m.Object.GetUID()] = m
	}
	var all []T
	for _, uid := range UIDs(moments) {
		if m := latest[uid]; !m.Gone {
			all = append(all, m.Object)
		}
	}
	return all
}

// MostAtOnce is the largest number of pods that were alive (neither ended nor gone) at a time.
func MostAtOnce(moments []Moment[*corev1.Pod]) int {
	alive, most := map[types.UID]bool{}, 0
	for _, m := range moments {
		if m.Gone || m.Object.Status.Phase == corev1.PodSucceeded || m.Object.Status.Phase == corev1.PodFailed {
			delete(alive, m.Object.UID)
		} else {
			alive[m.Object.UID] = true
		}
		most = max(most, len(alive))
	}
	return most
}

// Sessions returns what is known of all sessions, each oldest first.
func (r *Recorder) Sessions() map[types.UID][]Moment[*v1alpha1.AgenticSession] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cloned(r.sessions)
}

// Pods returns what is known of all pods, by session and oldest first.
func (r *Recorder) Pods() map[types.NamespacedName][]Moment[*corev1.Pod] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cloned(r.pods)
}

func cloned[K comparable, T client.Object](known map[K][]Moment[T]) map[K][]Moment[T] {
	all := make(map[K][]Moment[T], len(known))
	for key, moments := range known {
		all[key] = slices.Clone(moments)
	}
	return all
}
