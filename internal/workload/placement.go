package workload

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Placement says which nodes runners are put on.
type Placement struct {
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
}

// notForRunners are prefixes of what says where an operator belongs, or is added to every pod by the
// cluster itself. Nodes for the cluster's own components (node-role.kubernetes.io/infra) are not
// meant for agents, and the operator's image runs on other architectures than theirs.
var notForRunners = []string{"node-role.kubernetes.io/", "node.kubernetes.io/", corev1.LabelArchStable, corev1.LabelOSStable}

// PlacementOf is where runners go when they go where the operator goes.
func PlacementOf(operator *corev1.PodSpec) Placement {
	var p Placement
	for key, value := range operator.NodeSelector {
		if !operatorsOwn(key) {
			if p.NodeSelector == nil {
				p.NodeSelector = map[string]string{}
			}
			p.NodeSelector[key] = value
		}
	}
	for _, toleration := range operator.Tolerations {
		if !operatorsOwn(toleration.Key) {
			p.Tolerations = append(p.Tolerations, toleration)
		}
	}
	return p
}

func operatorsOwn(key string) bool {
	for _, prefix := range notForRunners {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// place puts a runner's pod where it belongs.
func (p Placement) place(pod *corev1.PodSpec) {
	pod.NodeSelector = maps.Clone(p.NodeSelector)
	for i := range p.Tolerations {
		pod.Tolerations = append(pod.Tolerations, *p.Tolerations[i].DeepCopy())
	}
}
