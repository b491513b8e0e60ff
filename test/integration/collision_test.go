package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestCase24NameCollision: an object that merely has the name of one of a session's objects is
// refused and left exactly as it is, also when the session is started again, stopped and deleted.
func TestCase24NameCollision(t *testing.T) {
	p := share(t)
	deployment := withoutPods(p)
	p.create(deployment)
	other := p.session("other", "hang")
	owners := map[string][]metav1.OwnerReference{
		"nobody":       nil,
		"othersession": {{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AgenticSession", Name: other.name, UID: other.uid, Controller: ptr(true)}},
		"deployment":   {{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment.Name, UID: deployment.UID, Controller: ptr(true)}},
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
			p.atRest(foreign)
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
	for _, c := range all {
		// Started again it meets the same; what is over already stays as it is when it is stopped.
		c.start()
	}
	for _, c := range all {
		c.requestsConsumed()
		c.eventually("session "+c.name+" was started again", func() error {
			if history := c.history(); len(history) < 4 {
				return fmt.Errorf("it went through %v", history)
			}
			return c.phaseIs(failure)
		})
		c.stop()
	}
	for _, c := range all {
		c.requestsConsumed()
		c.untouched(c.foreign)
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
		c.untouched(c.foreign)
	}
	if err := is(running)(other.latest()); err != nil {
		t.Error(err)
	}
}

// withoutPods is a Deployment that makes none.
func withoutPods(p *project) *appsv1.Deployment {
	labels := map[string]string{"app": "theirs"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "owner"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "theirs"}}},
		},
	}}
}

// atRest waits until the controllers of Kubernetes have written what they write to a new object of
// another's, and takes that over.
func (p *project) atRest(object client.Object) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%T %s is at rest", object, object.GetName()), func() error {
		if err := suite.admin.Get(p.ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		switch object := object.(type) {
		case *corev1.PersistentVolumeClaim:
			if object.Status.Phase != corev1.ClaimBound {
				return fmt.Errorf("it is %s", object.Status.Phase)
			}
		case *batchv1.Job:
			if len(object.Status.Conditions) == 0 {
				return errors.New("it is not said to be suspended")
			}
		}
		return nil
	})
}

// untouched fails unless the object is exactly as it was, by its version: whoever else might write to
// such an object has done so before.
func (s *session) untouched(was client.Object) {
	s.t.Helper()
	now, ok := was.DeepCopyObject().(client.Object)
	if !ok {
		s.t.Fatal("no object")
	}
	if err := suite.admin.Get(s.ctx, client.ObjectKeyFromObject(was), now); err != nil {
		s.t.Errorf("session %s: the foreign object: %v", s.name, err)
		return
	}
	if now.GetUID() != was.GetUID() || now.GetResourceVersion() != was.GetResourceVersion() {
		s.t.Errorf("session %s: the foreign object was changed from %+v to %+v", s.name, was, now)
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
