package apply

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

func plan() *workload.Plan {
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "project", UID: "session-uid"}}
	return &workload.Plan{Session: s, Runtime: runtimes.Default("example.com/runner:1")}
}

func token(run int64) *corev1.Secret {
	secret := plan().TokenSecret(run)
	secret.Data = map[string][]byte{"k8s-token": []byte("token")}
	return secret
}

// mended is what would be written of an object that was found.
func mended(desired, observed client.Object) (now client.Object, replace bool) {
	now, ok := observed.DeepCopyObject().(client.Object)
	if !ok {
		return nil, false
	}
	copyMetadata(desired, now)
	return now, copySpec(desired, now)
}

// served is an object as the API server keeps it: with its defaults and what others added.
func served[T client.Object](object T, more func(T)) T {
	object.SetUID("uid")
	object.SetResourceVersion("7")
	object.SetLabels(merge(object.GetLabels(), map[string]string{"team": "x"}))
	object.SetAnnotations(merge(object.GetAnnotations(), map[string]string{"note": "y"}))
	object.SetFinalizers([]string{"example.com/audit"})
	more(object)
	return object
}

// sound is every kind as it should be; nothing of it may be written, or our own write would wake us
// again and again.
var sound = map[string]struct{ desired, observed client.Object }{
	"ServiceAccount": {plan().ServiceAccount(), served(plan().ServiceAccount(), func(o *corev1.ServiceAccount) {
		o.Secrets = []corev1.ObjectReference{{Name: "made-by-openshift"}}
		o.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	})},
	"Role":        {plan().Role(), served(plan().Role(), func(*rbacv1.Role) {})},
	"RoleBinding": {plan().RoleBinding(), served(plan().RoleBinding(), func(*rbacv1.RoleBinding) {})},
	"PersistentVolumeClaim": {plan().Workspace(), served(plan().Workspace(), func(o *corev1.PersistentVolumeClaim) {
		class := "fast"
		o.Spec.StorageClassName, o.Spec.VolumeName = &class, "pv-1"
		o.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("20Gi")
		o.Status.Phase = corev1.ClaimBound
	})},
	"Service": {plan().Service(), served(plan().Service(), func(o *corev1.Service) {
		o.Spec.ClusterIP, o.Spec.Type, o.Spec.SessionAffinity = "10.0.0.1", corev1.ServiceTypeClusterIP, corev1.ServiceAffinityNone
	})},
	"Secret": {token(1), served(token(1), func(*corev1.Secret) {})},
	"Job": {plan().Job(1), served(plan().Job(1), func(o *batchv1.Job) {
		suspend, mode := false, batchv1.NonIndexedCompletion
		o.Spec.Suspend, o.Spec.CompletionMode = &suspend, &mode
		o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": "uid"}}
		o.Spec.Template.Labels["batch.kubernetes.io/job-name"] = o.Name
		o.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
		o.Status.Active = 1
	})},
}

func TestCase40WhatIsAsItShouldBeIsNotWritten(t *testing.T) {
	for kind, c := range sound {
		now, replace := mended(c.desired, c.observed)
		if replace || !equality.Semantic.DeepEqual(c.observed, now) {
			t.Errorf("%s would be written (replaced: %t):\nwas %+v\nis  %+v", kind, replace, c.observed, now)
		}
		if blocked := standing(kind, c.desired, c.observed); blocked != nil {
			t.Errorf("%s: %s", kind, blocked.Message)
		}
	}
}

func TestCase28WhatWasChangedIsMended(t *testing.T) {
	change := func(kind string, change func(client.Object)) client.Object {
		changed, ok := sound[kind].observed.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%s is no object", kind)
		}
		change(changed)
		return changed
	}
	yes := true
	deadline := int64(5)
	for _, c := range []struct {
		name, kind string
		changed    func(client.Object)
	}{
		{"label taken off", "Role", func(o client.Object) { o.SetLabels(map[string]string{"team": "x"}) }},
		{"label changed", "Job", func(o client.Object) { o.GetLabels()[v1alpha1.LabelSession] = "b" }},
		{"annotation taken off", "Service", func(o client.Object) { delete(o.GetAnnotations(), v1alpha1.AnnotationSessionUID) }},
		{"owner taken off", "Secret", func(o client.Object) { o.SetOwnerReferences(nil) }},
		{"owner no longer the controller", "RoleBinding", func(o client.Object) {
			owners := o.GetOwnerReferences()
			owners[0].Controller = nil
			o.SetOwnerReferences(owners)
		}},
		{"rules", "Role", func(o client.Object) {
			if role, ok := o.(*rbacv1.Role); ok {
				role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
			}
		}},
		{"subjects", "RoleBinding", func(o client.Object) {
			if binding, ok := o.(*rbacv1.RoleBinding); ok {
				binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: "Group", Name: "system:authenticated"})
			}
		}},
		{"selector", "Service", func(o client.Object) {
			if service, ok := o.(*corev1.Service); ok {
				service.Spec.Selector[v1alpha1.LabelSession] = "b"
			}
		}},
		{"another host", "Service", func(o client.Object) {
			if service, ok := o.(*corev1.Service); ok {
				service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "elsewhere.example.com"
			}
		}},
		{"port", "Service", func(o client.Object) {
			if service, ok := o.(*corev1.Service); ok {
				service.Spec.Ports[0].TargetPort = intstr.FromInt32(22)
			}
		}},
		{"automount", "ServiceAccount", func(o client.Object) {
			if account, ok := o.(*corev1.ServiceAccount); ok {
				account.AutomountServiceAccountToken = &yes
			}
		}},
		{"data", "Secret", func(o client.Object) {
			if secret, ok := o.(*corev1.Secret); ok {
				secret.Data["k8s-token"] = []byte("another")
			}
		}},
		{"deadline", "Job", func(o client.Object) {
			if job, ok := o.(*batchv1.Job); ok {
				job.Spec.ActiveDeadlineSeconds = &deadline
			}
		}},
	} {
		t.Run(c.kind+"/"+c.name, func(t *testing.T) {
			changed := change(c.kind, c.changed)
			if equality.Semantic.DeepEqual(changed, sound[c.kind].observed) {
				t.Fatal("the case changes nothing")
			}
			now, replace := mended(sound[c.kind].desired, changed)
			if want := sound[c.kind].observed; replace || !equality.Semantic.DeepEqual(now, want) {
				t.Errorf("mended it is (replace: %t)\n%+v, want\n%+v", replace, now, want)
			}
		})
	}
}

func TestCase27AJobsTemplateIsLeft(t *testing.T) {
	desired := plan().Job(1)
	desired.Spec.Template.Spec.Containers[0].Image = "example.com/runner:2"
	now, replace := mended(desired, sound["Job"].observed)
	if replace || !equality.Semantic.DeepEqual(now, sound["Job"].observed) {
		t.Errorf("a new image of the next run changes the Job of this one (replace: %t)", replace)
	}
}

func TestCase9AJobsTTLIsOnlyEverSet(t *testing.T) {
	ttl := int32(60)
	desired := plan().Job(1)
	desired.Spec.TTLSecondsAfterFinished = &ttl
	now, _ := mended(desired, sound["Job"].observed)
	if job, ok := now.(*batchv1.Job); !ok || job.Spec.TTLSecondsAfterFinished == nil || *job.Spec.TTLSecondsAfterFinished != ttl {
		t.Error("the TTL is not set")
	}
	if again, _ := mended(plan().Job(1), now); !equality.Semantic.DeepEqual(again, now) {
		t.Error("the TTL is taken off again")
	}
}

func TestAnImmutableSecretIsReplaced(t *testing.T) {
	yes, stored := true, token(1)
	stored.Immutable = &yes
	if _, replace := mended(token(1), stored); replace {
		t.Error("a Secret that is as it should be is replaced")
	}
	stored.Data["k8s-token"] = []byte("another")
	if _, replace := mended(token(1), stored); !replace {
		t.Error("an immutable Secret with other data is not replaced; it cannot be changed")
	}
}

func TestARoleBindingToAnotherRoleIsReplaced(t *testing.T) {
	changed := plan().RoleBinding()
	changed.RoleRef.Name = "cluster-admin"
	if _, replace := mended(plan().RoleBinding(), changed); !replace {
		t.Error("a binding to another Role is not replaced; its roleRef cannot be changed")
	}
}

func TestNodePortsAreKept(t *testing.T) {
	have := []corev1.ServicePort{{Name: "agui", Port: 1, NodePort: 30001}, {Name: "extra", Port: 2, NodePort: 30002}}
	want := []corev1.ServicePort{{Name: "agui", Port: 8001}}
	got := withPorts(have, want)
	if len(got) != 1 || got[0].Port != 8001 || got[0].NodePort != 30001 {
		t.Errorf("the ports are %+v", got)
	}
	if want[0].NodePort != 0 {
		t.Error("the desired object was changed")
	}
}

func TestMetadataOfOthersIsKept(t *testing.T) {
	desired, onto := plan().Service(), plan().Service()
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c-uid"}
	block := true
	ours := desired.OwnerReferences[0]
	ours.BlockOwnerDeletion = &block
	onto.Labels = map[string]string{"team": "x"}
	onto.Annotations = nil
	onto.OwnerReferences = []metav1.OwnerReference{other, ours}
	copyMetadata(desired, onto)
	if onto.Labels["team"] != "x" || onto.Labels[v1alpha1.LabelSession] != "a" || onto.Annotations[v1alpha1.AnnotationSessionUID] != "session-uid" {
		t.Errorf("labels %v, annotations %v", onto.Labels, onto.Annotations)
	}
	if !equality.Semantic.DeepEqual(onto.OwnerReferences, []metav1.OwnerReference{other, ours}) {
		t.Errorf("owners %+v", onto.OwnerReferences)
	}
	if desired.Labels["team"] != "" || desired.OwnerReferences[0].BlockOwnerDeletion != nil {
		t.Error("the desired object was changed")
	}
}
