// Package operator finds the operator that is installed on the cluster, has it start anew, and reads
// its metrics.
package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// restartedAt is an annotation of the pods' template. To change it starts all replicas anew as an
	// upgrade does.
	restartedAt = "ambient-code.io/scorecard-restarted-at"
	// targets is where OLM says for which namespaces an operator works; empty for all.
	targets = "olm.targetNamespaces"

	interval = time.Second
)

// Operator is the one that is installed.
type Operator struct {
	Deployment *appsv1.Deployment

	client client.Client
}

// Find finds the Deployment of that name in whatever namespace it is.
func Find(ctx context.Context, c client.Client, name string) (*Operator, error) {
	found := &appsv1.DeploymentList{}
	if err := c.List(ctx, found, client.MatchingFields{"metadata.name": name}); err != nil {
		return nil, fmt.Errorf("looking for the operator: %w", err)
	}
	if len(found.Items) != 1 {
		return nil, fmt.Errorf("the cluster has %d Deployments named %s, want one; install the operator once and run the test again", len(found.Items), name)
	}
	o := &Operator{Deployment: &found.Items[0], client: c}
	if only := o.Deployment.Spec.Template.Annotations[targets]; only != "" {
		return nil, fmt.Errorf("the operator works for namespaces %s alone, the test needs a new one; install it for all namespaces", only)
	}
	return o, nil
}

// Pods are the operator's.
func (o *Operator) Pods(ctx context.Context) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(o.Deployment.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading which pods are the operator's: %w", err)
	}
	pods := &corev1.PodList{}
	if err := o.client.List(ctx, pods, client.InNamespace(o.Deployment.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the operator's pods: %w", err)
	}
	return pods.Items, nil
}

// Restart replaces all pods of the operator, as an upgrade does, and waits until none of the old ones
// is left.
func (o *Operator) Restart(ctx context.Context, now time.Time) error {
	before, err := o.Pods(ctx)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, now.UTC().Format(time.RFC3339Nano))
	if err := o.client.Patch(ctx, o.Deployment, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("starting the operator anew: %w", err)
	}
	var state string
	err = wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		if err := o.client.Get(ctx, client.ObjectKeyFromObject(o.Deployment), o.Deployment); err != nil {
			return false, err
		}
		pods, err := o.Pods(ctx)
		if err != nil {
			return false, err
		}
		old := slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == pod.UID })
		})
		state = describe(o.Deployment, pods)
		return !old && rolledOut(o.Deployment), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the operator has started anew: %w; %s", err, state)
	}
	return nil
}

func rolledOut(d *appsv1.Deployment) bool {
	replicas := int32(1)
	if d.Spec.Replicas != nil {
		replicas = *d.Spec.Replicas
	}
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas && s.Replicas == replicas
}

func describe(d *appsv1.Deployment, pods []corev1.Pod) string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = pods[i].Name + " " + string(pods[i].Status.Phase)
	}
	return fmt.Sprintf("%d of %d replicas are updated, %d available; pods: %s",
		d.Status.UpdatedReplicas, d.Status.Replicas, d.Status.AvailableReplicas, strings.Join(names, ", "))
}
