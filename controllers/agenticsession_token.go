package controllers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// errToken marks an error of minting or storing a runner's token.
var errToken = errors.New("the runner's token")

// ensureToken keeps the token Secret of the run: new for each run, renewed after two thirds of its
// life, minted anew when the identity behind it was made anew.
func (r *AgenticSessionReconciler) ensureToken(ctx context.Context, o *seen) error {
	account := o.objects.serviceAccount
	run := o.world.Session.Status.Run
	if secret := o.objects.token; secret != nil && owned(secret, o.world.Session) && secret.DeletionTimestamp == nil {
		current := o.world.Token != nil && o.world.Token.Run == run &&
			secret.Annotations[v1alpha1.AnnotationTokenIdentity] == string(account.UID)
		if current && o.world.Now.Before(o.world.RenewToken()) {
			return nil
		}
	}
	began := r.Clock.Now()
	desired := o.plan.TokenSecret(run)
	if err := r.mint(ctx, account, desired); err != nil {
		return err
	}
	stored, err := r.storeToken(ctx, o, desired)
	if err != nil {
		return err
	}
	r.Metrics.TokenProvisioned(desired.Namespace, r.Clock.Since(began))
	o.objects.token = partial("v1", "Secret")
	stored.ObjectMeta.DeepCopyInto(&o.objects.token.ObjectMeta)
	return nil
}

// mint asks for a token of the identity and puts it into the Secret. The server may grant another
// lifetime than asked for; its word is recorded.
func (r *AgenticSessionReconciler) mint(ctx context.Context, account *corev1.ServiceAccount, secret *corev1.Secret) error {
	lifetime := int64(r.Config.TokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("%w: asking for a token of ServiceAccount %s: %w", errToken, account.Name, err)
	}
	secret.Annotations[v1alpha1.AnnotationTokenRefreshedAt] = r.Clock.Now().UTC().Format(time.RFC3339)
	secret.Annotations[v1alpha1.AnnotationTokenExpiresAt] = request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339)
	secret.Annotations[v1alpha1.AnnotationTokenIdentity] = string(account.UID)
	secret.Data = map[string][]byte{
		workload.TokenKey:     []byte(request.Status.Token),
		workload.AGUITokenKey: []byte(rand.Text() + rand.Text()),
	}
	return nil
}

// storeToken creates the Secret, or gives the one that is there the new token. Within a run the
// secret of the runner's Service stays: the runner has read it at its start.
func (r *AgenticSessionReconciler) storeToken(ctx context.Context, o *seen, desired *corev1.Secret) (*corev1.Secret, error) {
	if o.objects.token == nil {
		err := r.applier().Create(ctx, desired)
		if err == nil {
			return desired, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("%w: storing it in Secret %s: %w", errToken, desired.Name, err)
		}
	}
	stored := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(desired), stored); err != nil {
		return nil, fmt.Errorf("%w: reading Secret %s: %w", errToken, desired.Name, err)
	}
	if secret := stored.Data[workload.AGUITokenKey]; owned(stored, o.world.Session) && len(secret) > 0 &&
		stored.Labels[v1alpha1.LabelRun] == desired.Labels[v1alpha1.LabelRun] {
		desired.Data[workload.AGUITokenKey] = secret
	}
	return ensure(ctx, r.applier(), desired, stored)
}

// tokenView reads what a token Secret's metadata says. Annotations that do not parse count as
// absent, which makes the token due.
func tokenView(secret *metav1.PartialObjectMetadata) *session.Token {
	view := &session.Token{Name: secret.Name}
	if run, err := strconv.ParseInt(secret.Labels[v1alpha1.LabelRun], 10, 64); err == nil {
		view.Run = run
	}
	if at, err := time.Parse(time.RFC3339, secret.Annotations[v1alpha1.AnnotationTokenRefreshedAt]); err == nil {
		view.Refreshed = at
	}
	if at, err := time.Parse(time.RFC3339, secret.Annotations[v1alpha1.AnnotationTokenExpiresAt]); err == nil {
		view.Expires = at
	}
	return view
}
