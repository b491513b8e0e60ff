package apply

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// copyMetadata puts the desired labels, annotations and owner onto an object, beside what others
// put there.
func copyMetadata(desired, onto client.Object) {
	onto.SetLabels(merge(onto.GetLabels(), desired.GetLabels()))
	onto.SetAnnotations(merge(onto.GetAnnotations(), desired.GetAnnotations()))
	for _, owner := range desired.GetOwnerReferences() {
		onto.SetOwnerReferences(withOwner(onto.GetOwnerReferences(), owner))
	}
}

func merge(have, want map[string]string) map[string]string {
	if len(want) == 0 {
		return have
	}
	merged := maps.Clone(have)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, want)
	return merged
}

func withOwner(owners []metav1.OwnerReference, want metav1.OwnerReference) []metav1.OwnerReference {
	for i := range owners {
		predecessor := inherits(want) && owners[i].Kind == want.Kind && owners[i].Name == want.Name
		if owners[i].UID == want.UID || predecessor {
			kept := append([]metav1.OwnerReference{}, owners...)
			want.BlockOwnerDeletion = owners[i].BlockOwnerDeletion
			kept[i] = want
			return kept
		}
	}
	return append(append([]metav1.OwnerReference{}, owners...), want)
}

// copySpec puts the parts that we set, and that may change, onto an object; the server's defaults
// and other people's additions stay. It says whether a part differs that can only be had by a new
// object. What is immutable by design is left: a Job's template changes with the next run, a
// claim's size never.
func copySpec(desired, onto client.Object) (replace bool) {
	switch want := desired.(type) {
	case *rbacv1.Role:
		onto.(*rbacv1.Role).Rules = want.Rules
	case *rbacv1.RoleBinding:
		have := onto.(*rbacv1.RoleBinding)
		have.Subjects = want.Subjects
		return !equality.Semantic.DeepEqual(have.RoleRef, want.RoleRef)
	case *corev1.Service:
		have := onto.(*corev1.Service)
		have.Spec.Selector = want.Spec.Selector
		if have.Spec.Type == corev1.ServiceTypeExternalName {
			have.Spec.Type, have.Spec.ExternalName = corev1.ServiceTypeClusterIP, "" // it would lead elsewhere
		}
		have.Spec.Ports = withPorts(have.Spec.Ports, want.Spec.Ports)
	case *corev1.ServiceAccount:
		onto.(*corev1.ServiceAccount).AutomountServiceAccountToken = want.AutomountServiceAccountToken
	case *corev1.Secret:
		have := onto.(*corev1.Secret)
		if have.Immutable != nil && *have.Immutable {
			return !equality.Semantic.DeepEqual(have.Data, want.Data)
		}
		have.Data = want.Data
	case *corev1.LimitRange:
		onto.(*corev1.LimitRange).Spec.Limits = want.Spec.Limits
	case *networkingv1.NetworkPolicy:
		onto.(*networkingv1.NetworkPolicy).Spec = want.Spec
	case *batchv1.Job:
		have := onto.(*batchv1.Job)
		have.Spec.ActiveDeadlineSeconds = want.Spec.ActiveDeadlineSeconds
		if want.Spec.Suspend != nil {
			have.Spec.Parallelism, have.Spec.Suspend = want.Spec.Parallelism, want.Spec.Suspend
		}
		if want.Spec.TTLSecondsAfterFinished != nil {
			have.Spec.TTLSecondsAfterFinished = want.Spec.TTLSecondsAfterFinished
		}
	}
	return false
}

// withPorts is the desired ports, keeping the node ports that the server has assigned.
func withPorts(have, want []corev1.ServicePort) []corev1.ServicePort {
	ports := append([]corev1.ServicePort{}, want...)
	for i := range ports {
		for j := range have {
			if have[j].Name == ports[i].Name && ports[i].NodePort == 0 {
				ports[i].NodePort = have[j].NodePort
			}
		}
	}
	return ports
}
