package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestCase24NameCollision: an object that merely has the name of one of a session's objects is
// refused and left exactly as it is, also when the session is stopped and deleted.
func TestCase24NameCollision(t *testing.T) {
	p := share(t)
	deployment := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "owner"}}
	p.create(deployment)
	other := p.session("other", "hang")
	owners := map[string][]metav1.OwnerReference{
		"nobody":       nil,
		"othersession": {{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AgenticSession", Name: other.name, UID: other.uid, Controller: ptr(true)}},
		"configmap":    {{APIVersion: "v1", Kind: "ConfigMap", Name: deployment.Name, UID: deployment.UID, Controller: ptr(true)}},
	}
	type collision struct {
		*session
		foreign client.Object
	}
	var all []collision
	for _, f := range foreigners(p) {
		for owner, references := range owners {
			name := f.kind + "-" + owner
			foreign := f.named(name)
			foreign.SetNamespace(p.name)
			foreign.SetOwnerReferences(references)
			p.create(foreign)
			all = append(all, collision{p.session(name, "hang"), foreign})
		}
	}
	for _, c := range all {
		object := c.tells(failure, v1alpha1.ReasonNameCollision)
		message := condition(object, v1alpha1.ConditionFailed).Message
		if !strings.Contains(message, c.foreign.GetName()) || !strings.Contains(message, "left alone") {
			t.Errorf("session %s: the message does not name the object or what to do: %s", c.name, message)
		}
		if pods := c.pods(); len(pods) > 0 {
			t.Errorf("session %s: a pod was made", c.name)
		}
	}
	p.settles(0)
	for _, c := range all {
		c.remove()
	}
	for _, c := range all {
		c.eventually("session "+c.name+" is gone", func() error { return p.absent(c.name, c.object()) })
	}
	time.Sleep(2 * time.Second) // garbage collection would act now
	for _, c := range all {
		now, ok := c.foreign.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatal("no object")
		}
		if err := suite.admin.Get(p.ctx, client.ObjectKeyFromObject(c.foreign), now); err != nil {
			t.Errorf("session %s: the foreign object: %v", c.name, err)
			continue
		}
		if !sameForeign(c.foreign, now) {
			t.Errorf("session %s: the foreign object was changed from %+v to %+v", c.name, c.foreign, now)
		}
	}
	if err := is(running)(other.latest()); err != nil {
		t.Error(err)
	}
}

// sameForeign compares what the operator could have changed. Controllers of Kubernetes write to
// some of the kinds themselves, so the resource version says too much.
func sameForeign(was, is client.Object) bool {
	if was.GetUID() != is.GetUID() || !maps.Equal(was.GetLabels(), is.GetLabels()) || is.GetDeletionTimestamp() != nil {
		return false
	}
	annotations := maps.Clone(is.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.Contains(key, "kubernetes.io/") })
	sameOwners := slices.EqualFunc(was.GetOwnerReferences(), is.GetOwnerReferences(), func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
	return len(annotations) == 0 && sameOwners && fmt.Sprint(contents(was)) == fmt.Sprint(contents(is))
}

// contents is what an object holds besides its metadata.
func contents(object client.Object) any {
	switch object := object.(type) {
	case *corev1.Secret:
		return object.Data
	case *rbacv1.Role:
		return object.Rules
	case *rbacv1.RoleBinding:
		return []any{object.Subjects, object.RoleRef}
	case *corev1.Service:
		return []any{object.Spec.Selector, object.Spec.Type, object.Spec.ExternalName}
	case *batchv1.Job:
		return []any{object.Spec.ActiveDeadlineSeconds, object.Spec.TTLSecondsAfterFinished}
	default:
		return nil
	}
}

// foreigner makes an object that stands where one of a session's would.
type foreigner struct {
	kind  string
	named func(session string) client.Object
}

// foreigners are one for each kind.
func foreigners(p *project) []foreigner {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: p.name, Name: name} }
	return []foreigner{
		{"serviceaccount", func(s string) client.Object {
			return &corev1.ServiceAccount{ObjectMeta: meta("ambient-session-" + s)}
		}},
		{"role", func(s string) client.Object {
			return &rbacv1.Role{ObjectMeta: meta("ambient-session-" + s + "-role"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}}
		}},
		{"rolebinding", func(s string) client.Object {
			return &rbacv1.RoleBinding{ObjectMeta: meta("ambient-session-" + s + "-rb"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}
		}},
		{"secret", func(s string) client.Object {
			return &corev1.Secret{ObjectMeta: meta("ambient-runner-token-" + s), StringData: map[string]string{"k8s-token": "theirs", "agui-token": "theirs"}}
		}},
		{"claim", func(s string) client.Object {
			return &corev1.PersistentVolumeClaim{ObjectMeta: meta("ambient-workspace-" + s), Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: oneGi}},
			}}
		}},
		{"service", func(s string) client.Object {
			return &corev1.Service{ObjectMeta: meta("session-" + s), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "theirs"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}}}
		}},
		{"job", func(s string) client.Object {
			return &batchv1.Job{ObjectMeta: meta(s + "-run-1"), Spec: batchv1.JobSpec{Suspend: ptr(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "theirs", Image: "theirs"}},
			}}}}
		}},
	}
}
