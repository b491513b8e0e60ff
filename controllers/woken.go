package controllers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambient-code/agentic-operator/internal/config"
)

// Woken says which sessions a change of an object wakes a pass over. It is for whoever tells of changes
// without a manager: both the old and the new version of an object are to be given to it.
func (r *AgenticSessionReconciler) Woken() func(context.Context, client.Object) []reconcile.Request {
	table := watches(r, &ProjectSettingsReconciler{}, &SharedSecretReconciler{})
	return woken(r.Config, table, func(w watched) mapping { return w.sessions })
}

// Woken says the same of settings; seen is what maps events.
func (r *ProjectSettingsReconciler) Woken(seen client.Reader) func(context.Context, client.Object) []reconcile.Request {
	table := watches(&AgenticSessionReconciler{}, &ProjectSettingsReconciler{seen: seen, Config: r.Config}, &SharedSecretReconciler{})
	return woken(r.Config, table, func(w watched) mapping { return w.projects })
}

// Woken says the same of namespaces.
func (r *NamespaceReconciler) Woken() func(context.Context, client.Object) []reconcile.Request {
	table := watches(&AgenticSessionReconciler{}, &ProjectSettingsReconciler{}, &SharedSecretReconciler{})
	return woken(r.Config, table, func(w watched) mapping { return w.namespaces })
}

func woken(settings *config.Config, table []watched, column func(watched) mapping) func(context.Context, client.Object) []reconcile.Request {
	wakes := map[string]mapping{}
	for _, w := range table {
		if mapped := column(w); mapped != nil {
			wakes[kindOf(w.object)] = served(settings, mapped)
		}
	}
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		if mapped := wakes[kindOf(object)]; mapped != nil {
			return mapped(ctx, object)
		}
		return nil
	}
}

// kindOf tells the watched kinds apart, those that are known by their metadata alone among them.
func kindOf(object client.Object) string {
	if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
		return partial.Kind
	}
	return fmt.Sprintf("%T", object)
}
