// Package policy evaluates NetworkPolicies as the plugin of a cluster's network does, so that tests can
// ask who reaches whom where no such plugin runs.
package policy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Caller is a pod that opens a connection: in which namespace it is and what both are labelled with.
type Caller struct {
	Namespace string
	// NamespaceLabels are those of its namespace, PodLabels its own.
	NamespaceLabels, PodLabels map[string]string
}

// Guards says that a policy is about a pod of its namespace with these labels.
func Guards(policy *networkingv1.NetworkPolicy, pod map[string]string) (bool, error) {
	if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
		return false, nil
	}
	return selects(&policy.Spec.PodSelector, pod)
}

// Admits says that a policy lets a caller connect to a TCP port of the pods that it guards. Their ports
// may be named in the policy; container is one of theirs.
func Admits(policy *networkingv1.NetworkPolicy, from Caller, container *corev1.Container, port int32) (bool, error) {
	for i := range policy.Spec.Ingress {
		rule := &policy.Spec.Ingress[i]
		if len(rule.Ports) > 0 && !slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return opens(p, container, port) }) {
			continue
		}
		if len(rule.From) == 0 {
			return true, nil
		}
		for _, peer := range rule.From {
			if is, err := isPeer(policy.Namespace, peer, from); is || err != nil {
				return is, err
			}
		}
	}
	return false, nil
}

// opens says that a port of a rule is this one, or one of several of which this is one.
func opens(p networkingv1.NetworkPolicyPort, container *corev1.Container, port int32) bool {
	switch {
	case p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP:
		return false
	case p.Port == nil:
		return true
	case p.Port.Type == intstr.String:
		return slices.ContainsFunc(container.Ports, func(c corev1.ContainerPort) bool { return c.Name == p.Port.StrVal && c.ContainerPort == port })
	case p.EndPort != nil:
		return p.Port.IntVal <= port && port <= *p.EndPort
	default:
		return p.Port.IntVal == port
	}
}

// isPeer says that a caller is among those of whom a rule speaks. A caller is a pod, so no address of
// outside of the cluster is one.
func isPeer(namespace string, peer networkingv1.NetworkPolicyPeer, from Caller) (bool, error) {
	switch {
	case peer.IPBlock != nil:
		return false, nil
	case peer.NamespaceSelector == nil && from.Namespace != namespace:
		return false, nil
	}
	for selector, set := range map[*metav1.LabelSelector]map[string]string{peer.NamespaceSelector: from.NamespaceLabels, peer.PodSelector: from.PodLabels} {
		if selector == nil {
			continue
		}
		if is, err := selects(selector, set); !is || err != nil {
			return false, err
		}
	}
	return true, nil
}

func selects(selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, fmt.Errorf("reading a selector of a policy: %w", err)
	}
	return s.Matches(labels.Set(set)), nil
}
