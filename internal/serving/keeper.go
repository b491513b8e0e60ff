package serving

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// slowestRetry is how long the keeper waits at most after a failure.
const slowestRetry = 30 * time.Second

// keeper makes the operator's own certificate, renews it and puts it back, on the leader. Its
// writes name the version that was read: one that comes late, from a leader that is none any more,
// is refused.
type keeper struct {
	certificates *Certificates
	client       client.Client
	live         client.Reader
	own          cache.Cache
	wake         chan struct{}
}

// NeedLeaderElection is for the manager: replicas would overwrite each other's.
func (k *keeper) NeedLeaderElection() bool { return true }

func (k *keeper) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Start is for the manager.
func (k *keeper) Start(ctx context.Context) error {
	if !k.own.WaitForCacheSync(ctx) {
		return nil
	}
	retry := time.Second
	for {
		next, err := k.keep(ctx)
		wait := next.Sub(k.certificates.options.Clock.Now())
		if err != nil && ctx.Err() == nil {
			log.Error(err, "The operator's own certificate for its metrics endpoint cannot be kept; trying again", "after", retry.String())
			wait = retry
			retry = min(2*retry, slowestRetry)
		} else {
			retry = time.Second
		}
		timer := k.certificates.options.Clock.NewTimer(max(wait, 0))
		select {
		case <-ctx.Done():
		case <-k.wake:
		case <-timer.C():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// keep makes the Secret be as it is to be, and says when to look again. What others write wakes the
// keeper before that.
func (k *keeper) keep(ctx context.Context) (time.Time, error) {
	c := k.certificates
	now := c.options.Clock.Now()
	have := &corev1.Secret{}
	err := k.own.Get(ctx, client.ObjectKey{Namespace: c.options.Namespace, Name: OwnSecret}, have)
	if apierrors.IsNotFound(err) {
		return k.create(ctx, now)
	}
	if err != nil {
		return now, fmt.Errorf("reading Secret %s: %w", OwnSecret, err)
	}
	if have.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator {
		c.tell(OwnSecret, have, &problem{reason: "NameCollision", says: "it is not the operator's own, which cannot be kept as long as it is there"})
		return now.Add(caLife), nil
	}
	data, next, err := issue(have.Data, c.names, now)
	if err != nil || maps.EqualFunc(data, have.Data, func(a, b []byte) bool { return string(a) == string(b) }) {
		return next, err
	}
	want := have.DeepCopy()
	want.Data = data
	patch := client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{})
	err = k.client.Patch(ctx, want, patch, client.DisableReadYourWritesConsistency)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return now.Add(caLife), nil // the watch wakes us with what is there now
	}
	if err != nil {
		return now, fmt.Errorf("renewing Secret %s: %w", OwnSecret, err)
	}
	log.Info("The operator's own certificate for its metrics endpoint was renewed", "secret", OwnSecret)
	return next, nil
}

func (k *keeper) create(ctx context.Context, now time.Time) (time.Time, error) {
	c := k.certificates
	data, next, err := issue(nil, c.names, now)
	if err != nil {
		return now, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.options.Namespace, Name: OwnSecret,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, "app.kubernetes.io/name": "agentic-operator"},
		},
		Type: corev1.SecretTypeTLS,
		Data: data,
	}
	if err := k.belongs(ctx, secret); err != nil {
		return now, err
	}
	err = k.client.Create(ctx, secret, client.DisableReadYourWritesConsistency)
	if apierrors.IsAlreadyExists(err) {
		return now.Add(caLife), nil // the watch wakes us with it
	}
	if err != nil {
		return now, fmt.Errorf("making Secret %s: %w", OwnSecret, err)
	}
	log.Info("The operator made a certificate of its own for its metrics endpoint", "secret", OwnSecret)
	return next, nil
}

// belongs has the Secret go with the Service that it is for, where there is one.
func (k *keeper) belongs(ctx context.Context, secret *corev1.Secret) error {
	service := &corev1.Service{}
	err := k.live.Get(ctx, client.ObjectKey{Namespace: secret.Namespace, Name: ServiceName}, service)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Service %s: %w", ServiceName, err)
	}
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID}}
	return nil
}
