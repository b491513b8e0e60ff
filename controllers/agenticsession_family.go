package controllers

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

const (
	// indexParent finds sessions by the one that they continue.
	indexParent = "parent"
	// indexAwaits finds those that wait for a workspace that another uses.
	indexAwaits = "awaits"
)

func byParent(object client.Object) []string {
	if s, ok := object.(*v1alpha1.AgenticSession); ok {
		if parent := workload.Parent(s); parent != "" {
			return []string{parent}
		}
	}
	return nil
}

// aWorkspace is what indexAwaits says of a session that waits for one.
const aWorkspace = "workspace"

func byWait(object client.Object) []string {
	if s, ok := object.(*v1alpha1.AgenticSession); ok && yetToBegin(s) {
		if ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonWorkspaceInUse {
			return []string{aWorkspace}
		}
	}
	return nil
}

// children lists the sessions that continue a session. They are read only.
func (r *AgenticSessionReconciler) children(ctx context.Context, namespace, parent string) ([]*v1alpha1.AgenticSession, error) {
	children, err := r.indexed(ctx, namespace, indexParent, parent, byParent)
	if err != nil {
		return nil, fmt.Errorf("listing the sessions that continue session %s: %w", parent, err)
	}
	return children, nil
}

// indexed lists the sessions that have a value in an index. They are read only.
func (r *AgenticSessionReconciler) indexed(ctx context.Context, namespace, field, value string, by client.IndexerFunc) ([]*v1alpha1.AgenticSession, error) {
	options := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
	if r.Indexed {
		options = append(options, client.MatchingFields{field: value})
	}
	list := &v1alpha1.AgenticSessionList{}
	if err := r.Seen.List(ctx, list, options...); err != nil {
		return nil, err
	}
	var found []*v1alpha1.AgenticSession
	for i := range list.Items {
		if slices.Contains(by(&list.Items[i]), value) {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}

// bySession wakes a session, and those that may wait for the workspace that it has or uses.
func (r *AgenticSessionReconciler) bySession(ctx context.Context, object client.Object) []reconcile.Request {
	requests := request(object.GetNamespace(), object.GetName())
	if s, ok := object.(*v1alpha1.AgenticSession); ok {
		requests = append(requests, r.family(ctx, s.Namespace, r.eldest(ctx, s), yetToBegin)...)
	}
	return requests
}

// byRunner wakes the session of a Job or pod, and those that may wait until that is gone.
func (r *AgenticSessionReconciler) byRunner(ctx context.Context, object client.Object) []reconcile.Request {
	return r.withFamily(ctx, object, yetToBegin)
}

// byWorkspace wakes the session of a volume claim, and those that work in it or wait for it. Its end is told
// of those as well that have worked in it.
func (r *AgenticSessionReconciler) byWorkspace(ctx context.Context, object client.Object) []reconcile.Request {
	wanted := underWay
	if object.GetDeletionTimestamp() != nil {
		wanted = func(*v1alpha1.AgenticSession) bool { return true }
	}
	return r.withFamily(ctx, object, wanted)
}

func (r *AgenticSessionReconciler) withFamily(ctx context.Context, object client.Object, wanted func(*v1alpha1.AgenticSession) bool) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.LabelSession]
	if name == "" {
		return nil
	}
	s := &v1alpha1.AgenticSession{}
	if err := r.Seen.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, s); err != nil {
		s.Namespace, s.Name = object.GetNamespace(), name // it is gone; those that continue it may be there
	}
	return append(request(s.Namespace, s.Name), r.family(ctx, s.Namespace, r.eldest(ctx, s), wanted)...)
}

// eldest is the name of the session that a chain of continued ones began with.
func (r *AgenticSessionReconciler) eldest(ctx context.Context, s *v1alpha1.AgenticSession) string {
	name, passed := s.Name, map[string]bool{s.Name: true}
	for parent := workload.Parent(s); parent != "" && !passed[parent]; {
		name, passed[parent] = parent, true
		next := &v1alpha1.AgenticSession{}
		if err := r.Seen.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: parent}, next); err != nil {
			break
		}
		parent = workload.Parent(next)
	}
	return name
}

// family names the session that a chain began with and all that continue it, as far as they are
// wanted, and all that wait for a workspace: a chain may have been cut since they began to wait.
func (r *AgenticSessionReconciler) family(ctx context.Context, namespace, eldest string, wanted func(*v1alpha1.AgenticSession) bool) []reconcile.Request {
	var requests []reconcile.Request
	waiting, err := r.indexed(ctx, namespace, indexAwaits, aWorkspace, byWait)
	if err != nil {
		return nil
	}
	for _, s := range waiting {
		requests = append(requests, request(namespace, s.Name)...)
	}
	passed := map[string]bool{}
	for names := []string{eldest}; len(names) > 0; names = names[1:] {
		if passed[names[0]] {
			continue
		}
		passed[names[0]] = true
		children, err := r.children(ctx, namespace, names[0])
		if err != nil {
			return requests
		}
		if names[0] == eldest && len(children) > 0 {
			// It may wait for the one of them that goes on in its workspace.
			requests = append(requests, request(namespace, eldest)...)
		}
		for _, child := range children {
			names = append(names, child.Name)
			if wanted(child) {
				requests = append(requests, request(namespace, child.Name)...)
			}
		}
	}
	return requests
}
