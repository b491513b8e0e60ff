package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// TestTokenIsNotRenewedTwice has a cache that does not have yet what was stored: another token would be
// asked for in vain, and be counted.
func TestTokenIsNotRenewedTwice(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: "p", Name: "a", UID: "session"}}
	s.Status.Phase, s.Status.Run = v1alpha1.PhaseRunning, 1
	secret := func(version string, refreshed time.Time) *corev1.Secret {
		stored := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "p", Name: workload.TokenSecretName("a"), UID: "secret", ResourceVersion: version,
				Labels:          map[string]string{v1alpha1.LabelRun: "1"},
				OwnerReferences: []metav1.OwnerReference{workload.Owner("a", "session")},
				Annotations: map[string]string{
					v1alpha1.AnnotationTokenRefreshedAt: refreshed.Format(time.RFC3339),
					v1alpha1.AnnotationTokenExpiresAt:   refreshed.Add(time.Hour).Format(time.RFC3339),
					v1alpha1.AnnotationTokenIdentity:    "account",
				},
			},
			Data: map[string][]byte{workload.TokenKey: []byte("token"), workload.AGUITokenKey: []byte("secret")},
		}
		stored.Annotations[v1alpha1.AnnotationTokenDigest] = digest(stored)
		return stored
	}
	old, renewed := secret("1", now.Add(-50*time.Minute)), secret("2", now.Add(-time.Second))
	for _, test := range []struct {
		name  string
		known *corev1.Secret
		fine  bool
	}{
		{"renewed a moment ago", renewed, true},
		{"renewed by nobody", old, false},
		{"stored by another operator", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &AgenticSessionReconciler{Live: fake.NewClientBuilder().WithObjects(renewed.DeepCopy()).Build()}
			if test.known != nil {
				r.verified.set(test.known)
			}
			o := &seen{world: session.World{Now: now, Session: s}}
			o.objects.serviceAccount = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{UID: "account"}}
			o.objects.token = partial("v1", "Secret")
			old.ObjectMeta.DeepCopyInto(&o.objects.token.ObjectMeta)
			o.refresh()
			fine, err := r.tokenFine(t.Context(), o)
			if err != nil || fine != test.fine {
				t.Errorf("the token is fine: %v, %v, want %v", fine, err, test.fine)
			}
		})
	}
}
