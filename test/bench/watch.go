package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// times is when each of some objects was created, by the clock of the bench, and when it was seen in
// the state that it is to reach.
type times struct {
	mu               sync.Mutex
	created, reached map[string]time.Time
	done             chan struct{}
	wanted           int
}

// follow watches objects of a namespace; state says by name which of them has reached its state. It goes
// on where a watch ends, as the API server ends those that it cannot serve fast enough.
func (b *bench) follow(ctx context.Context, list client.ObjectList, namespace string, wanted int, state func(client.Object) (name string, reached bool)) *times {
	t := &times{created: map[string]time.Time{}, reached: map[string]time.Time{}, done: make(chan struct{}), wanted: wanted}
	ctx, stop := context.WithCancel(ctx)
	note := func(o any) {
		if object, is := o.(client.Object); is {
			if name, reached := state(object); reached && t.note(name) {
				stop()
			}
		}
	}
	in := func(options metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: namespace, Raw: &options}
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: &toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				found := list.DeepCopyObject().(client.ObjectList)
				return found, b.client.List(ctx, found, in(options))
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return b.client.Watch(ctx, list, in(options))
			},
		},
		Handler: toolscache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, is any) { note(is) }},
	})
	go informer.RunWithContext(ctx)
	return t
}

// note says whether all have reached their state.
func (t *times) note(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.reached[name]; known {
		return false
	}
	t.reached[name] = time.Now()
	if len(t.reached) < t.wanted {
		return false
	}
	close(t.done)
	return true
}

func (t *times) create(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created[name] = time.Now()
}

// wait waits until all have reached their state.
func (t *times) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(patience):
		t.mu.Lock()
		defer t.mu.Unlock()
		return fmt.Errorf("only %d of %d got there within %s", len(t.reached), t.wanted, patience)
	}
}

// each is how long each took, in seconds, and all is from the first creation to the last arrival.
func (t *times) each() (each []float64, all float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first, last time.Time
	for name, at := range t.reached {
		began := t.created[name]
		each = append(each, at.Sub(began).Seconds())
		if first.IsZero() || began.Before(first) {
			first = began
		}
		if at.After(last) {
			last = at
		}
	}
	return each, last.Sub(first).Seconds()
}

// podRuns is the state of the pod of a Job named after it.
func podRuns(object client.Object) (string, bool) {
	pod, is := object.(*corev1.Pod)
	return object.GetLabels()["batch.kubernetes.io/job-name"], is && pod.Status.Phase == corev1.PodRunning
}

// inPhase is the state of a session in one of the phases.
func inPhase(phases ...v1alpha1.Phase) func(client.Object) (string, bool) {
	return func(object client.Object) (string, bool) {
		s, is := object.(*v1alpha1.AgenticSession)
		if !is {
			return "", false
		}
		for _, phase := range phases {
			if s.Status.Phase == phase {
				return s.Name, true
			}
		}
		return s.Name, false
	}
}

// untilRunning makes sessions and waits until all are Running.
func (b *bench) untilRunning(ctx context.Context, namespace string, n int) (*times, error) {
	return b.through(ctx, namespace, n, "hang", v1alpha1.PhaseRunning)
}

// through makes sessions with a prompt and waits until all are in one of the phases.
func (b *bench) through(ctx context.Context, namespace string, n int, prompt string, phases ...v1alpha1.Phase) (*times, error) {
	t := b.follow(ctx, &v1alpha1.AgenticSessionList{}, namespace, n, inPhase(phases...))
	err := each(n, func(i int) error {
		s := session(namespace, fmt.Sprintf("s-%d", i), prompt)
		t.create(s.Name)
		if err := b.client.Create(ctx, s); err != nil {
			return fmt.Errorf("creating session %s: %w", s.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, t.wait(ctx)
}
