package project

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Names of the objects that hold for all pods of a project; source: the contract.
const (
	LimitRangeName    = "ambient-default-limits"
	NetworkPolicyName = "runner-allow-backend-only"
)

// LimitRange gives every container of the project that asks for nothing a modest request, so that
// the scheduler can count with it, and a limit; source of the figures: the contract.
func (p *Plan) LimitRange() *corev1.LimitRange {
	return &corev1.LimitRange{
		ObjectMeta: p.objectMeta(LimitRangeName),
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer,
			DefaultRequest: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("250m"),
				corev1.ResourceMemory: resource.MustParse("256Mi"),
			},
			Default: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("2"),
				corev1.ResourceMemory: resource.MustParse("4Gi"),
			},
		}}},
	}
}

// NetworkPolicy keeps everybody from the runners of the project but those who call them: the
// platform's backend and the operator. What runners themselves reach is not limited.
func (p *Plan) NetworkPolicy() *networkingv1.NetworkPolicy {
	tcp := corev1.ProtocolTCP
	var callers []networkingv1.NetworkPolicyPeer
	for _, namespace := range distinct(p.Callers) {
		callers = append(callers, networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
		}})
	}
	var ports []networkingv1.NetworkPolicyPort
	for _, number := range distinct(p.RunnerPorts) {
		port := intstr.FromInt32(number)
		ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: &tcp, Port: &port})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: p.objectMeta(NetworkPolicyName),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelApp: v1alpha1.AppRunner}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: callers, Ports: ports}},
		},
	}
}

// distinct is the values in order, each once.
func distinct[T string | int32](values []T) []T {
	sorted := slices.Sorted(slices.Values(values))
	return slices.Compact(sorted)
}
