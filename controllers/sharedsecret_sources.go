package controllers

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// bySecret wakes a copy, or when its source changes all copies.
func (r *SharedSecretReconciler) bySecret(ctx context.Context, object client.Object) []reconcile.Request {
	switch {
	case !slices.Contains(workload.SharedSecrets, object.GetName()):
		return nil
	case object.GetNamespace() != r.Config.Namespace:
		return itself(ctx, object)
	case !slices.Contains(r.Config.SharedSecrets(), object.GetName()):
		return nil
	}
	managed := partialList("v1", "NamespaceList")
	if err := r.seen.List(ctx, managed, client.MatchingLabels{v1alpha1.LabelManaged: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // namespaces that are seen later wake their copies themselves
	}
	var requests []reconcile.Request
	for i := range managed.Items {
		requests = append(requests, request(managed.Items[i].Name, object.GetName())...)
	}
	return requests
}

// byNamespace wakes the copies of a namespace that is managed now, or no longer.
func (r *SharedSecretReconciler) byNamespace(_ context.Context, object client.Object) []reconcile.Request {
	return r.copies(object.GetName())
}

// byProject wakes the copies that belong to the settings of a project.
func (r *SharedSecretReconciler) byProject(_ context.Context, object client.Object) []reconcile.Request {
	return r.copies(object.GetNamespace())
}

func (r *SharedSecretReconciler) copies(namespace string) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range r.Config.SharedSecrets() {
		requests = append(requests, request(namespace, name)...)
	}
	return requests
}

// byRun wakes the copies that are kept only for runs, when a session or its Job changes.
func (r *SharedSecretReconciler) byRun(_ context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range workload.SharedSecrets {
		if r.memory.kept(types.NamespacedName{Namespace: object.GetNamespace(), Name: name}) {
			requests = append(requests, request(object.GetNamespace(), name)...)
		}
	}
	return requests
}

// copyMemory is what is known of copies beside what the caches have. It holds no content, and all
// of it is found again after a restart.
type copyMemory struct {
	mu     sync.Mutex
	copies map[types.NamespacedName]copyState
	gone   map[string]bool
}

// copyState is a comparable account of a copy.
type copyState struct {
	// copied, source and settings are the versions that were found to agree.
	copied, source, settings string
	// owned is the version of a Secret that is not ours.
	owned string
	// kept says that the copy is removed when no run uses it any more.
	kept bool
}

func version(object client.Object) string {
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}

// versions tells a state in which a copy is as it should be. Of the settings only the identity
// matters, as they are the owner.
func versions(copied, source client.Object, settings *v1alpha1.ProjectSettings) copyState {
	state := copyState{copied: version(copied), source: version(source)}
	if settings != nil {
		state.settings = string(settings.UID)
	}
	return state
}

func (m *copyMemory) agreed(key types.NamespacedName, copied, source client.Object, settings *v1alpha1.ProjectSettings) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.copies[key] == versions(copied, source, settings)
}

func (m *copyMemory) agree(key types.NamespacedName, copied, source client.Object, settings *v1alpha1.ProjectSettings) {
	m.set(key, versions(copied, source, settings))
}

// foreign notes a Secret that is not ours and says whether that is news.
func (m *copyMemory) foreign(key types.NamespacedName, secret client.Object) bool {
	return m.set(key, copyState{owned: string(secret.GetUID())})
}

func (m *copyMemory) keep(key types.NamespacedName) { m.set(key, copyState{kept: true}) }

func (m *copyMemory) kept(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.copies[key].kept
}

func (m *copyMemory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.copies, key)
}

// set notes a state and says whether it is another than before.
func (m *copyMemory) set(key types.NamespacedName, state copyState) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.copies == nil {
		m.copies = map[types.NamespacedName]copyState{}
	}
	changed := m.copies[key] != state
	m.copies[key] = state
	return changed
}

// missing notes whether a source is missing and says whether it is, newly.
func (m *copyMemory) missing(name string, is bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone == nil {
		m.gone = map[string]bool{}
	}
	was := m.gone[name]
	m.gone[name] = is
	return is && !was
}
