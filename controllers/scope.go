package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
)

// An administrator may limit the operator to some namespaces (OLM does, by its install modes). Then
// nothing of others is watched or cached, and what wakes a pass is checked again, as the operator's
// own namespace is looked at for what it shares even where it is not to be served.

// scoped limits a kind to the namespaces that are to be served. Namespaces themselves are in none:
// they are chosen by the label that the API server gives each with its name.
func scoped(w watched, settings *config.Config) watched {
	targets := settings.TargetNamespaces
	if len(targets) == 0 || w.in != nil {
		return w
	}
	if w.clusterWide {
		if named, err := labels.NewRequirement(corev1.LabelMetadataName, selection.In, targets); err == nil {
			w.labels = w.labels.Add(*named)
		}
		return w
	}
	w.in = targets
	if w.shared && !settings.Serves(settings.Namespace) {
		w.in = append(slices.Clone(targets), settings.Namespace)
	}
	return w
}

// configs is how a cache is told the namespaces of a kind.
func (w watched) configs() map[string]cache.Config {
	if w.in == nil {
		return nil
	}
	configs := map[string]cache.Config{}
	for _, namespace := range w.in {
		configs[namespace] = cache.Config{}
	}
	return configs
}

// served keeps of what a mapping wakes what is in a namespace, or is one, that is to be served.
func served(settings *config.Config, wakes mapping) mapping {
	if len(settings.TargetNamespaces) == 0 {
		return wakes
	}
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		return slices.DeleteFunc(wakes(ctx, object), func(r reconcile.Request) bool {
			return !settings.Serves(cmp.Or(r.Namespace, r.Name))
		})
	}
}

// listSessions lists the sessions of a namespace, or of all that are to be served. They are those of
// the cache themselves: nobody may change them.
func listSessions(ctx context.Context, from client.Reader, settings *config.Config, namespace string) ([]v1alpha1.AgenticSession, error) {
	namespaces := []string{namespace}
	if namespace == corev1.NamespaceAll {
		namespaces = settings.Scope()
	}
	var all []v1alpha1.AgenticSession
	for _, namespace := range namespaces {
		sessions := &v1alpha1.AgenticSessionList{}
		if err := from.List(ctx, sessions, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing sessions: %w", err)
		}
		if len(namespaces) == 1 {
			return sessions.Items, nil
		}
		all = append(all, sessions.Items...)
	}
	return all, nil
}
