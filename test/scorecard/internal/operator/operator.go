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
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
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

// Restart replaces all pods of the operator one after another, and waits until none of the old ones is
// left. They are evicted, as when their nodes are drained: a change to the Deployment would start them
// anew as well, but OLM takes it back at once, and with it what was started.
func (o *Operator) Restart(ctx context.Context, config *rest.Config) error {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for evictions: %w", err)
	}
	before, err := o.Pods(ctx)
	if err != nil {
		return err
	}
	for i := range before {
		if err := o.evict(ctx, core, &before[i]); err != nil {
			return err
		}
	}
	return o.until(ctx, "the operator has started anew", func(pods []corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == pod.UID })
		})
	})
}

// evict removes a pod once the others are available. It is tried again while a PodDisruptionBudget
// keeps the pod.
func (o *Operator) evict(ctx context.Context, core corev1client.PodsGetter, pod *corev1.Pod) error {
	if err := o.until(ctx, "all replicas are available", func([]corev1.Pod) bool { return true }); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		err := core.Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: metav1.NewPreconditionDeleteOptions(string(pod.UID)),
		})
		if apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return true, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("evicting pod %s of the operator: %w", pod.Name, err)
	}
	return nil
}

// until waits until all replicas are available and something is true of the operator's pods.
func (o *Operator) until(ctx context.Context, what string, is func([]corev1.Pod) bool) error {
	var state string
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		if err := o.client.Get(ctx, client.ObjectKeyFromObject(o.Deployment), o.Deployment); err != nil {
			return false, err
		}
		pods, err := o.Pods(ctx)
		if err != nil {
			return false, err
		}
		state = describe(o.Deployment, pods)
		return is(pods) && rolledOut(o.Deployment), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w; %s", what, err, state)
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
