package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// runnerPorts are the ports that runners of a project serve on: those of the runner types as they
// are now, and those of runs that began with another one.
func (r *ProjectSettingsReconciler) runnerPorts(ctx context.Context, namespace string) ([]int32, error) {
	registry, err := readRegistry(ctx, r.Own, r.Config)
	if err != nil {
		return nil, err
	}
	ports := append(registry.Ports(), runtimes.Default(r.Config.RunnerImage).Port)
	services := &corev1.ServiceList{}
	of := []client.ListOption{client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelSession}, client.DisableReadYourWritesConsistency}
	if err := r.Client.List(ctx, services, of...); err != nil {
		return nil, fmt.Errorf("listing the Services of runners: %w", err)
	}
	for i := range services.Items {
		for _, port := range services.Items[i].Spec.Ports {
			if port.Name == workload.PortName {
				ports = append(ports, port.Port)
			}
		}
	}
	return ports, nil
}

// byRegistry wakes the settings of every project, as runner types may serve on other ports now.
func (r *ProjectSettingsReconciler) byRegistry(ctx context.Context, _ client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, namespace := range r.Config.Scope() {
		all := &v1alpha1.ProjectSettingsList{}
		if err := r.seen.List(ctx, all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
		for i := range all.Items {
			requests = append(requests, request(all.Items[i].Namespace, all.Items[i].Name)...)
		}
	}
	return requests
}
