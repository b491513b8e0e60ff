package controllers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// indexParent finds sessions by the one that they continue.
const indexParent = "parent"

func byParent(object client.Object) []string {
	if s, ok := object.(*v1alpha1.AgenticSession); ok {
		if parent := workload.Parent(s); parent != "" {
			return []string{parent}
		}
	}
	return nil
}

// children lists the sessions that continue a session. They are read only.
func (r *AgenticSessionReconciler) children(ctx context.Context, namespace, parent string) ([]*v1alpha1.AgenticSession, error) {
	options := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
	if r.Indexed {
		options = append(options, client.MatchingFields{indexParent: parent})
	}
	list := &v1alpha1.AgenticSessionList{}
	if err := r.Seen.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing the sessions that continue session %s: %w", parent, err)
	}
	var children []*v1alpha1.AgenticSession
	for i := range list.Items {
		if workload.Parent(&list.Items[i]) == parent {
			children = append(children, &list.Items[i])
		}
	}
	return children, nil
}

// bySession wakes a session, and those that may wait for the workspace that it has or uses.
func (r *AgenticSessionReconciler) bySession(ctx context.Context, object client.Object) []reconcile.Request {
	requests := request(object.GetNamespace(), object.GetName())
	if s, ok := object.(*v1alpha1.AgenticSession); ok {
		requests = append(requests, r.family(ctx, s.Namespace, r.eldest(ctx, s), yetToBegin)...)
	}
	return requests
}

// byRunner wakes the session of a pod, and those that may wait until the pod is gone.
func (r *AgenticSessionReconciler) byRunner(ctx context.Context, object client.Object) []reconcile.Request {
	return r.withFamily(ctx, object, yetToBegin)
}

// byWorkspace wakes the session of a volume claim, and those that work in it or wait for it.
func (r *AgenticSessionReconciler) byWorkspace(ctx context.Context, object client.Object) []reconcile.Request {
	return r.withFamily(ctx, object, underWay)
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
// wanted.
func (r *AgenticSessionReconciler) family(ctx context.Context, namespace, eldest string, wanted func(*v1alpha1.AgenticSession) bool) []reconcile.Request {
	var requests []reconcile.Request
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
