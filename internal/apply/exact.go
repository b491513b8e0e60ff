package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change writes an object as long as it is still as it was read. Otherwise the error is a conflict:
// who decided by what was read has to look again, as it may be somebody else's now.
func (a *Applier) Change(ctx context.Context, object, read client.Object) error {
	var options []client.PatchOption
	if unwaited(object) {
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	err := a.Client.Patch(ctx, object, client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{}), options...)
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return err
	}
	return refused(a.kind(object), object.GetName(), err)
}

// RemoveAsRead deletes an object, known by its metadata, as long as it is still as it was read;
// otherwise the error is a conflict, as for Change.
func (a *Applier) RemoveAsRead(ctx context.Context, read *metav1.PartialObjectMetadata) error {
	uid, version := read.GetUID(), read.GetResourceVersion()
	return client.IgnoreNotFound(a.Client.Delete(ctx, read, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}
