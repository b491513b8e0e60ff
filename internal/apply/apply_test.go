package apply

import (
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

func TestCase24WhoseAnObjectIs(t *testing.T) {
	yes := true
	by := func(kind, name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: kind, Name: name, UID: uid, Controller: &yes}}
	}
	ourMark := map[string]string{v1alpha1.AnnotationSessionUID: "session-uid"}
	for _, c := range []struct {
		name    string
		meta    metav1.ObjectMeta
		reason  string
		isFinal bool
	}{
		{"ours", metav1.ObjectMeta{OwnerReferences: by("AgenticSession", "a", "session-uid")}, "", false},
		{"ours, owner reference taken off", metav1.ObjectMeta{Annotations: ourMark}, "", false},
		{"ours, being deleted", metav1.ObjectMeta{OwnerReferences: by("AgenticSession", "a", "session-uid"), DeletionTimestamp: &metav1.Time{}}, v1alpha1.ReasonBeingDeleted, false},
		{"ours, owner reference taken off, being deleted", metav1.ObjectMeta{Annotations: ourMark, DeletionTimestamp: &metav1.Time{}}, v1alpha1.ReasonBeingDeleted, false},
		{"case 22: of a deleted session of this name", metav1.ObjectMeta{OwnerReferences: by("AgenticSession", "a", "old-uid")}, v1alpha1.ReasonBeingDeleted, false},
		{"of another session", metav1.ObjectMeta{OwnerReferences: by("AgenticSession", "b", "b-uid")}, v1alpha1.ReasonNameCollision, true},
		{"of a Deployment", metav1.ObjectMeta{OwnerReferences: by("Deployment", "a", "d-uid")}, v1alpha1.ReasonNameCollision, true},
		{"of a Deployment, with our mark", metav1.ObjectMeta{OwnerReferences: by("Deployment", "a", "d-uid"), Annotations: ourMark}, v1alpha1.ReasonNameCollision, true},
		{"of nobody", metav1.ObjectMeta{}, v1alpha1.ReasonNameCollision, true},
		{"of nobody, with our labels", metav1.ObjectMeta{Labels: workload.Labels("a")}, v1alpha1.ReasonNameCollision, true},
		{"of nobody, with the mark of another session", metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationSessionUID: "b-uid"}}, v1alpha1.ReasonNameCollision, true},
		{"of nobody, being deleted", metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, v1alpha1.ReasonNameCollision, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.meta.Name = "session-a"
			blocked := standing("Service", plan().Service(), &corev1.Service{ObjectMeta: c.meta})
			switch {
			case blocked == nil:
				if c.reason != "" {
					t.Errorf("it counts as the session's; want %s", c.reason)
				}
			case blocked.Reason != c.reason || blocked.Final != c.isFinal || blocked.Object != "Service session-a" || !strings.Contains(blocked.Message, "Service session-a"):
				t.Errorf("the obstacle is %+v; want %s, final: %t", blocked.Obstacle, c.reason, c.isFinal)
			}
		})
	}
}

func TestCase11Refusals(t *testing.T) {
	services := schema.GroupResource{Resource: "services"}
	terminating := apierrors.NewForbidden(services, "session-a", errors.New("unable to create new content in namespace project because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, c := range []struct {
		name    string
		err     error
		reason  string
		isFinal bool
	}{
		{"quota", apierrors.NewForbidden(services, "session-a", errors.New("exceeded quota: few, requested: services=1")), v1alpha1.ReasonQuotaExceeded, false},
		{"admission", apierrors.NewForbidden(services, "session-a", errors.New("denied by policy")), v1alpha1.ReasonCreateRefused, false},
		{"namespace terminating", terminating, v1alpha1.ReasonNamespaceTerminating, false},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "session-a", nil), v1alpha1.ReasonCreateRefused, true},
		{"bad request", apierrors.NewBadRequest("no"), v1alpha1.ReasonCreateRefused, true},
		{"conflict", apierrors.NewConflict(services, "session-a", errors.New("changed")), "", false},
		{"server error", apierrors.NewInternalError(errors.New("broken")), "", false},
		{"no connection", errors.New("connection refused"), "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := refused("Service", "session-a", c.err)
			if !errors.Is(got, c.err) || !strings.Contains(got.Error(), "session-a") {
				t.Errorf("the error %v hides its cause or its object", got)
			}
			var blocked *Blocked
			if !errors.As(got, &blocked) {
				if c.reason != "" {
					t.Errorf("%v is no obstacle; want %s", got, c.reason)
				}
				return
			}
			if blocked.Reason != c.reason || blocked.Final != c.isFinal || blocked.Object != "Service session-a" || blocked.Message == "" {
				t.Errorf("the obstacle is %+v; want %s, final: %t", blocked.Obstacle, c.reason, c.isFinal)
			}
		})
	}
}

// TestNobodyWaitsForWhatNoCacheHas: a read that waits for a write to arrive in a cache that selects by a label
// would wait for ever where the label was taken off.
func TestNobodyWaitsForWhatNoCacheHas(t *testing.T) {
	labelled := metav1.ObjectMeta{Labels: workload.Labels("a")}
	for _, kind := range []func(metav1.ObjectMeta) client.Object{
		func(m metav1.ObjectMeta) client.Object { return &batchv1.Job{ObjectMeta: m} },
		func(m metav1.ObjectMeta) client.Object { return &corev1.Service{ObjectMeta: m} },
		func(m metav1.ObjectMeta) client.Object { return &corev1.PersistentVolumeClaim{ObjectMeta: m} },
		func(m metav1.ObjectMeta) client.Object { return &corev1.ServiceAccount{ObjectMeta: m} },
		func(m metav1.ObjectMeta) client.Object { return &rbacv1.Role{ObjectMeta: m} },
		func(m metav1.ObjectMeta) client.Object { return &rbacv1.RoleBinding{ObjectMeta: m} },
	} {
		if object := kind(labelled); unwaited(object) {
			t.Errorf("nobody waits for %T, which caches have", object)
		}
		if object := kind(metav1.ObjectMeta{}); !unwaited(object) {
			t.Errorf("who reads waits for %T, which no cache has", object)
		}
	}
}
