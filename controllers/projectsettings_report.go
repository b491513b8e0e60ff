package controllers

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/project"
)

// reports remembers what was last reported of settings, and of which version of them. Another
// definition of ProjectSettings, as the platform's own, drops part of a status or has no place for one.
// The same report of the same version is then neither made again nor forgotten.
type reports struct {
	last sync.Map
}

// report is what was told of one version of settings.
type report struct {
	version string
	status  v1alpha1.ProjectSettingsStatus
}

func versionOf(settings *v1alpha1.ProjectSettings) string {
	return string(settings.UID) + "/" + settings.ResourceVersion
}

// restore gives settings the status that was reported of this very version of them.
func (r *reports) restore(settings *v1alpha1.ProjectSettings) {
	if last, ok := r.last.Load(client.ObjectKeyFromObject(settings)); ok {
		if told, ok := last.(report); ok && told.version == versionOf(settings) {
			settings.Status = *told.status.DeepCopy()
		}
	}
}

func (r *reports) keep(settings *v1alpha1.ProjectSettings, status *v1alpha1.ProjectSettingsStatus) {
	r.last.Store(client.ObjectKeyFromObject(settings), report{versionOf(settings), *status.DeepCopy()})
}

func (r *reports) forget(key types.NamespacedName) { r.last.Delete(key) }

// report writes the status where it differs. A conflict means that newer settings are on their way
// here: their event makes the next pass.
func (r *ProjectSettingsReconciler) report(ctx context.Context, settings *v1alpha1.ProjectSettings, outcome *project.Outcome) error {
	was := settings.DeepCopy()
	settings.Status = project.Status(settings, outcome, r.Clock.Now())
	if equality.Semantic.DeepEqual(was.Status, settings.Status) {
		return nil
	}
	// What is not in the answer was dropped, so nothing of what was meant may stay in what it is read into.
	stored := &v1alpha1.ProjectSettings{ObjectMeta: metav1.ObjectMeta{Namespace: was.Namespace, Name: was.Name}}
	data, err := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}).Data(settings)
	if err != nil {
		return fmt.Errorf("encoding the status of the project's settings: %w", err)
	}
	err = r.Client.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, data))
	switch {
	case err == nil:
		if !equality.Semantic.DeepEqual(stored.Status, settings.Status) {
			r.reported.keep(stored, &settings.Status)
			r.degraded(ctx, &settings.Status, "drops part of the status")
		}
		return nil
	case apierrors.IsNotFound(err):
		return r.placeless(ctx, was, &settings.Status)
	case apierrors.IsConflict(err):
		return nil
	default:
		return fmt.Errorf("writing the status of the project's settings: %w", err)
	}
}

// placeless finds out whether settings are gone or have no status subresource: the API server answers
// both alike.
func (r *ProjectSettingsReconciler) placeless(ctx context.Context, settings *v1alpha1.ProjectSettings, status *v1alpha1.ProjectSettingsStatus) error {
	now := &v1alpha1.ProjectSettings{}
	found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(settings), now)
	if err != nil || !found || now.UID != settings.UID {
		return err
	}
	r.reported.keep(settings, status)
	r.degraded(ctx, status, "has no place for a status")
	return nil
}

// degraded tells in the log what the status cannot.
func (r *ProjectSettingsReconciler) degraded(ctx context.Context, status *v1alpha1.ProjectSettingsStatus, how string) {
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	log.FromContext(ctx).Info("The CustomResourceDefinition of ProjectSettings in this cluster is not this operator's and "+how+", so it is told here; to see it there, apply the operator's own",
		"ready", ready.Status, "reason", ready.Reason, "message", ready.Message)
}
