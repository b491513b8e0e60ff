package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/project"
)

// terminating is the cause that the API server gives for refusing a new object in a namespace that
// is being deleted.
const terminating = corev1.NamespaceTerminatingCause

// NamespaceReconciler gives every managed namespace its ProjectSettings, from which all else of a
// project follows. What becomes of a namespace whose label is taken off is told by the controller
// of the settings.
type NamespaceReconciler struct {
	// Client reads from caches, or from the API server under --legacy-watch, and writes.
	Client  client.Client
	Config  *config.Config
	Metrics *metrics.Set
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=vteam.ambient-code,resources=projectsettings,verbs=get;list;watch;create

// SetupWithManager adds the controller of namespaces to the manager.
func (r *NamespaceReconciler) SetupWithManager(mgr ctrl.Manager) error {
	from, err := readingFrom(mgr, r.Config)
	if err != nil {
		return err
	}
	r.Client = from.client
	table := watches(&AgenticSessionReconciler{}, &ProjectSettingsReconciler{}, &SharedSecretReconciler{})
	return control(mgr, "namespace", r.Config, from.sources(table, func(w watched) mapping { return w.namespaces }), r)
}

// Reconcile makes the default settings of a namespace that is managed and has none. They are made
// again when they are deleted: without them nobody would be told that the project is not set up.
func (r *NamespaceReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	namespace := partial("v1", "Namespace")
	found, err := lookup(ctx, r.Client, request.NamespacedName, namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !found || namespace.Labels[v1alpha1.LabelManaged] != "true" {
		r.Metrics.Forget(request.Name)
		return ctrl.Result{}, nil
	}
	if namespace.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	r.Metrics.Admit(namespace.Name)
	settings := project.Default(namespace.Name, r.Config.DefaultInactivity)
	found, err = lookup(ctx, r.Client, types.NamespacedName{Namespace: settings.Namespace, Name: settings.Name}, &v1alpha1.ProjectSettings{})
	if err != nil || found {
		return ctrl.Result{}, err
	}
	err = r.Client.Create(ctx, settings)
	switch {
	case err == nil:
		log.FromContext(ctx).Info("Default settings made")
		return ctrl.Result{}, nil
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, terminating):
		return ctrl.Result{}, nil
	default:
		return ctrl.Result{}, fmt.Errorf("making the default settings of the project: %w", err)
	}
}
