package controllers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// errToken marks an error of minting or storing a runner's token.
var errToken = errors.New("the runner's token")

// ensureToken keeps the token Secret of the run: new for each run, renewed after two thirds of its
// life, minted anew when the identity behind it was made anew or somebody changed the Secret.
func (r *AgenticSessionReconciler) ensureToken(ctx context.Context, o *seen) error {
	fine, err := r.tokenFine(ctx, o)
	if err == nil && !fine {
		err = r.renewToken(ctx, o)
	}
	switch {
	case errors.Is(err, errToken):
		o.world.TokenTrouble = err.Error()
	case err == nil && o.serviceSecretLost():
		o.world.TokenTrouble = "the key " + workload.AGUITokenKey + " of Secret " + o.objects.token.Name + " was changed or deleted after the runner had read it: nobody can call the runner; to mend it, stop the session and start it again"
	}
	return err
}

// serviceSecretLost says that the runner was started with another secret of its Service than the
// Secret holds now.
func (o *seen) serviceSecretLost() bool {
	job := o.world.Job
	if job == nil || o.objects.token == nil {
		return false
	}
	began := job.Annotations[v1alpha1.AnnotationServiceSecret]
	return began != "" && began != serviceDigest(o.objects.token.Annotations)
}

// serviceDigest is the part of a token Secret's digest that stands for the secret of the Service.
func serviceDigest(annotations map[string]string) string {
	_, service, _ := strings.Cut(annotations[v1alpha1.AnnotationTokenDigest], ".")
	return service
}

// tokenFine says whether the token of the run is there, not due, and as it was stored. The content
// is read only when the Secret has changed since it was last looked at.
func (r *AgenticSessionReconciler) tokenFine(ctx context.Context, o *seen) (bool, error) {
	if !o.tokenFits() && r.verified.other(o.objects.token) {
		// The cache may not have yet what was stored a moment ago, and another token is not needed.
		stored := partial("v1", "Secret")
		found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(o.objects.token), stored)
		if err != nil {
			return false, fmt.Errorf("%w: %w", errToken, err)
		}
		if found {
			o.objects.token = stored
			o.refresh()
		}
	}
	if !o.tokenFits() {
		return false, nil
	}
	secret := o.objects.token
	if r.verified.is(secret) {
		return true, nil
	}
	stored := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(secret), stored); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("%w: reading Secret %s: %w", errToken, secret.Name, err)
	}
	if stored.Annotations[v1alpha1.AnnotationTokenDigest] != digest(stored) {
		return false, nil
	}
	r.verified.set(stored)
	return true, nil
}

// tokenFits says that there is a token of this run and its identity that is not due.
func (o *seen) tokenFits() bool {
	secret, token := o.objects.token, o.world.Token
	return token != nil && secret.DeletionTimestamp == nil && token.Run == o.world.Session.Status.Run &&
		secret.Annotations[v1alpha1.AnnotationTokenIdentity] == string(o.objects.serviceAccount.UID) &&
		o.world.Now.Before(o.world.RenewToken())
}

// digest tells contents of a token Secret apart, without giving them away. Two digests stand side by
// side: a token can be minted anew, the secret of the runner's Service cannot, as the runner has read it
// at its start. What somebody made of it is therefore kept, and told.
func digest(secret *corev1.Secret) string {
	short := func(key string) string {
		sum := sha256.Sum256(secret.Data[key])
		return hex.EncodeToString(sum[:8])
	}
	return short(workload.TokenKey) + "." + short(workload.AGUITokenKey)
}

// renewToken mints a token and stores it.
func (r *AgenticSessionReconciler) renewToken(ctx context.Context, o *seen) error {
	began := r.Clock.Now()
	stored, err := r.newToken(ctx, o)
	r.Metrics.TokenProvisioned(o.world.Session.Namespace, r.Clock.Since(began), err)
	if err != nil {
		return err
	}
	r.verified.set(stored)
	o.objects.token = partial("v1", "Secret")
	stored.ObjectMeta.DeepCopyInto(&o.objects.token.ObjectMeta)
	return nil
}

func (r *AgenticSessionReconciler) newToken(ctx context.Context, o *seen) (*corev1.Secret, error) {
	desired := o.plan.TokenSecret(o.world.Session.Status.Run)
	if err := r.tokenRefused(ctx, o, desired); err != nil {
		return nil, err
	}
	if err := r.mint(ctx, o.objects.serviceAccount, desired); err != nil {
		return nil, err
	}
	return r.storeToken(ctx, o, desired)
}

// tokenRefused says that the Secret for a token is not the session's, so that none is minted in
// vain. The cache has only the names of others' Secrets, and of one whose label was taken off.
func (r *AgenticSessionReconciler) tokenRefused(ctx context.Context, o *seen, desired *corev1.Secret) error {
	known := o.objects.token
	if known == nil {
		return nil
	}
	if known.Labels[v1alpha1.LabelSession] == "" {
		known = partial("v1", "Secret")
		found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(desired), known)
		if err != nil || !found {
			return err
		}
	}
	return r.applier().Refuses(desired, known)
}

// verified remembers which version of a session's token Secret was found to be as it was stored.
type verified struct {
	versions sync.Map
}

func (v *verified) is(secret client.Object) bool {
	version, ok := v.versions.Load(client.ObjectKeyFromObject(secret))
	return ok && version == string(secret.GetUID())+secret.GetResourceVersion()
}

// other says that another version of a Secret was stored or looked at than this one; false where there is
// none to compare.
func (v *verified) other(secret *metav1.PartialObjectMetadata) bool {
	if secret == nil {
		return false
	}
	_, known := v.versions.Load(client.ObjectKeyFromObject(secret))
	return known && !v.is(secret)
}

func (v *verified) set(secret client.Object) {
	v.versions.Store(client.ObjectKeyFromObject(secret), string(secret.GetUID())+secret.GetResourceVersion())
}

// forget drops what is known of a session that is gone.
func (v *verified) forget(session types.NamespacedName) {
	v.versions.Delete(client.ObjectKey{Namespace: session.Namespace, Name: workload.TokenSecretName(session.Name)})
}

// mint asks for a token of the identity and puts it into the Secret. The server may grant another
// lifetime than asked for; its word is recorded.
func (r *AgenticSessionReconciler) mint(ctx context.Context, account *corev1.ServiceAccount, secret *corev1.Secret) error {
	lifetime := int64(r.Config.TokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("%w: asking for a token of ServiceAccount %s: %w", errToken, account.Name, err)
	}
	now := r.Clock.Now()
	secret.Annotations[v1alpha1.AnnotationTokenRefreshedAt] = now.UTC().Format(time.RFC3339)
	secret.Annotations[v1alpha1.AnnotationTokenExpiresAt] = expiry(request, now).UTC().Format(time.RFC3339)
	secret.Annotations[v1alpha1.AnnotationTokenIdentity] = string(account.UID)
	secret.Data = map[string][]byte{
		workload.TokenKey:     []byte(request.Status.Token),
		workload.AGUITokenKey: []byte(rand.Text() + rand.Text()),
	}
	secret.Annotations[v1alpha1.AnnotationTokenDigest] = digest(secret)
	return nil
}

// expiry is when a token that was asked for now ends, by our clock. The server tells by its own when it
// made the token and when it ends; with a clock that differs from ours by more than the token's life,
// the token would never be due, or always.
func expiry(request *authenticationv1.TokenRequest, now time.Time) time.Time {
	made, ends := request.CreationTimestamp, request.Status.ExpirationTimestamp
	if made.IsZero() {
		return ends.Time
	}
	return now.Add(ends.Sub(made.Time))
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
		(o.world.Job != nil || stored.Labels[v1alpha1.LabelRun] == desired.Labels[v1alpha1.LabelRun]) {
		desired.Data[workload.AGUITokenKey] = secret
		desired.Annotations[v1alpha1.AnnotationTokenDigest] = digest(desired)
	}
	if stored.Immutable != nil && *stored.Immutable && owned(stored, o.world.Session) {
		// Made anew at once, so that the secret of the runner's Service is not lost.
		if err := r.applier().Remove(ctx, stored); err != nil {
			return nil, fmt.Errorf("%w: making Secret %s, which somebody made immutable, anew: %w", errToken, desired.Name, err)
		}
		if err := r.applier().Create(ctx, desired); err != nil {
			return nil, fmt.Errorf("%w: making Secret %s, which somebody made immutable, anew: %w", errToken, desired.Name, err)
		}
		return desired, nil
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
