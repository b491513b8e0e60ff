package operator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// placeRunners has runners go to the nodes that the administrator has chosen for the operator, for
// instance in the config of OLM's Subscription. It is read once: another choice makes another pod.
func placeRunners(ctx context.Context, mgr ctrl.Manager, settings *config.Config) error {
	if settings.PodName == "" || settings.RunnersAnywhere {
		return nil
	}
	pod := &corev1.Pod{}
	err := mgr.GetAPIReader().Get(ctx, types.NamespacedName{Namespace: settings.Namespace, Name: settings.PodName}, pod)
	if apierrors.IsNotFound(err) {
		ctrl.Log.WithName("setup").Info("Runners are put on any node, as the operator's own pod is not there", "pod", settings.PodName)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the operator's own pod, for the nodes of runners: %w", err)
	}
	settings.Placement = workload.PlacementOf(&pod.Spec)
	return nil
}
