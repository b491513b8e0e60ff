package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// observeStorage finds out where the workspace of a run that is to begin is kept, for a type that
// keeps it in S3, and what is missing for that.
func (r *AgenticSessionReconciler) observeStorage(ctx context.Context, o *seen) error {
	if !o.plan.KeptInS3() || !o.beginning() || o.blocked != nil {
		return nil
	}
	s := o.world.Session
	integrations, err := r.secretData(ctx, s.Namespace, workload.IntegrationsSecret)
	if err != nil {
		return err
	}
	shared, err := r.secretData(ctx, r.Config.Namespace, workload.SharedStorageSecret)
	if err != nil {
		return err
	}
	var missing []string
	o.plan.Storage, missing = workload.StorageOf(s.Name, s.Namespace, integrations, shared, &o.plan.Operator)
	o.world.Missing = append(o.world.Missing, missing...)
	if len(missing) > 0 {
		o.blocked = &apply.Blocked{Obstacle: session.Obstacle{
			Object: "Secret " + workload.IntegrationsSecret, Reason: v1alpha1.ReasonPrerequisiteMissing, Message: missing[0],
		}}
	}
	return nil
}

// ensureStorage keeps the session's copy of the shared credentials like their source: a pod can
// refer only to Secrets of its own namespace. The sidecar that uses it may be started again at any
// time of a run.
func (r *AgenticSessionReconciler) ensureStorage(ctx context.Context, o *seen) error {
	if !o.plan.Storage.Shared {
		return nil
	}
	have := o.objects.storage
	key := types.NamespacedName{Namespace: r.Config.Namespace, Name: workload.SharedStorageSecret}
	known := partial("v1", "Secret")
	found, err := r.get(ctx, key, known)
	if err != nil {
		return err
	}
	if have != nil && owned(have, o.world.Session) && have.DeletionTimestamp == nil &&
		(!found || have.Annotations[v1alpha1.AnnotationSourceVersion] == known.ResourceVersion) {
		return nil
	}
	source := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, source); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // said in Missing where a run is to begin; a run in progress has read it
		}
		return fmt.Errorf("reading the credentials of the shared storage: %w", err)
	}
	stored, err := r.applier().Ensure(ctx, o.plan.StorageSecret(source), nil)
	if err != nil {
		return err
	}
	o.objects.storage = partial("v1", "Secret")
	stored.(*corev1.Secret).ObjectMeta.DeepCopyInto(&o.objects.storage.ObjectMeta)
	return nil
}
