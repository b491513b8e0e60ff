//go:build e2e

package olm

import (
	"context"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// renewalIn is long enough for an upgrade to be under way by then.
const renewalIn = 10 * time.Second

func tokenSecret(ctx context.Context, project, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: project, Name: "ambient-runner-token-" + name}, secret)
	return secret, err
}

// age has the token of a session be due for renewal in a moment, as if two thirds of its life were
// about to be over, and returns the token.
func age(t *testing.T, project, name string) string {
	t.Helper()
	secret, err := tokenSecret(t.Context(), project, name)
	if err != nil {
		t.Fatal(err)
	}
	minted := time.Now().Add(renewalIn - time.Hour)
	stamp := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q,%q:%q}}}`,
		v1alpha1.AnnotationTokenRefreshedAt, stamp(minted), v1alpha1.AnnotationTokenExpiresAt, stamp(minted.Add(3*time.Hour/2)))
	if err := cluster.Client.Patch(t.Context(), secret, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data["k8s-token"])
}

// renewed waits until a session has another token than it had, and wants the API server to take both:
// the runner goes on with the old one until the kubelet has brought it the new.
func renewed(t *testing.T, project, name, old string) {
	t.Helper()
	fresh := ""
	until(t, soon, "the token of session "+name+" to be renewed", func(ctx context.Context) (bool, string) {
		secret, err := tokenSecret(ctx, project, name)
		fresh = string(secret.Data["k8s-token"])
		return err == nil && fresh != "" && fresh != old, fmt.Sprint(secret.Annotations, err)
	})
	want := "system:serviceaccount:" + project + ":ambient-session-" + name
	for _, token := range []string{old, fresh} {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		if err := cluster.Client.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if !review.Status.Authenticated || review.Status.User.Username != want {
			t.Errorf("a token of session %s is of %q, authenticated %t (%s); want %s", name, review.Status.User.Username, review.Status.Authenticated, review.Status.Error, want)
		}
	}
}
