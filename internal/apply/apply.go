// Package apply makes the objects of a session or of a project be as they should be: it creates
// what is missing, mends what was changed and removes what must go. It touches only what their
// owner controls, the session or the ProjectSettings; anything else that stands in the way becomes
// an Obstacle, with its bytes unchanged.
package apply

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// Applier writes objects. Live reads past any cache; it is used only when the cache and the API
// server disagree.
type Applier struct {
	Client client.Client
	Live   client.Reader
	// LookFirst has it read an object that the cache does not have before it tries to create it:
	// for when a foreign object is known to stand in the way.
	LookFirst bool
}

// unwaited keeps a write from being waited for by reads. For a Secret the client would start a cache of all
// Secrets, data and all, to know when it has arrived; and what lacks the label by which caches select its
// kind never arrives, so that the next read would wait for ever.
func unwaited(object client.Object) bool {
	labels := object.GetLabels()
	switch object.(type) {
	case *corev1.Secret:
		return true
	case *batchv1.Job, *corev1.Pod, *corev1.Service, *corev1.PersistentVolumeClaim:
		_, selected := labels[v1alpha1.LabelSession]
		return !selected
	case *corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding, *corev1.LimitRange, *networkingv1.NetworkPolicy:
		return labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator
	default:
		return false
	}
}

// Create creates an object. That it exists already is returned as the API server says it; where
// the API server refuses it for another reason, the error is a *Blocked.
func (a *Applier) Create(ctx context.Context, object client.Object) error {
	var options []client.CreateOption
	if unwaited(object) {
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	err := a.Client.Create(ctx, object, options...)
	if err == nil || apierrors.IsAlreadyExists(err) {
		return err
	}
	return refused(a.kind(object), object.GetName(), err)
}

func (a *Applier) patch(ctx context.Context, object, from client.Object) error {
	var options []client.PatchOption
	if unwaited(object) {
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	return a.Client.Patch(ctx, object, client.MergeFrom(from), options...)
}

// Blocked is an error that is told to the user as an obstacle. The pass is tried again, unless
// the obstacle is final.
type Blocked struct {
	session.Obstacle
	cause error
}

func (b *Blocked) Error() string { return b.Object + ": " + b.Message }

func (b *Blocked) Unwrap() error { return b.cause }

// Ensure makes an object exist as desired; observed is what the cache has of it, nil for nothing.
// It returns the object as the API server now has it. The error is a *Blocked where the object is
// not its owner's, is being deleted, or is refused by the API server.
func (a *Applier) Ensure(ctx context.Context, desired, observed client.Object) (client.Object, error) {
	if observed != nil {
		return a.mend(ctx, desired, observed)
	}
	fresh := desired.DeepCopyObject().(client.Object)
	if a.LookFirst {
		found := desired.DeepCopyObject().(client.Object)
		err := a.Live.Get(ctx, client.ObjectKeyFromObject(desired), found)
		if err == nil {
			return a.mend(ctx, desired, found)
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("looking for %s %s: %w", a.kind(desired), desired.GetName(), err)
		}
	}
	err := a.Create(ctx, fresh)
	switch {
	case err == nil:
		return fresh, nil
	case !apierrors.IsAlreadyExists(err):
		return nil, err
	}
	// The cache lags behind, or the object lacks the label that the cache selects by.
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(desired), fresh); err != nil {
		return nil, fmt.Errorf("reading %s %s, which exists already: %w", a.kind(desired), desired.GetName(), err)
	}
	return a.mend(ctx, desired, fresh)
}

// mend changes an object of the owner's back to what is desired.
func (a *Applier) mend(ctx context.Context, desired, observed client.Object) (client.Object, error) {
	kind := a.kind(desired)
	if blocked := standing(kind, desired, observed); blocked != nil {
		return nil, blocked
	}
	mended := observed.DeepCopyObject().(client.Object)
	copyMetadata(desired, mended)
	if replace := copySpec(desired, mended); replace {
		return nil, a.replace(ctx, kind, observed)
	}
	if equality.Semantic.DeepEqual(observed, mended) {
		return observed, nil
	}
	if err := a.patch(ctx, mended, observed); err != nil {
		return nil, refused(kind, desired.GetName(), err)
	}
	return mended, nil
}

// replace removes an object of ours whose wrong part cannot be changed; the next pass makes it
// anew.
func (a *Applier) replace(ctx context.Context, kind string, observed client.Object) error {
	if err := a.Remove(ctx, observed); err != nil {
		return err
	}
	return fmt.Errorf("%s %s was changed in a part that cannot be changed back; it was removed and is made anew", kind, observed.GetName())
}

// Remove deletes exactly this object, with its dependents in the background; a Job only after them,
// so that it tells when the last of its pods is gone, whatever labels somebody left on that. An
// object that is gone or being deleted already is no error. A conflict is one: mostly another object has the name
// by now, which the next pass sees, but if not, nothing would remind of what was to be deleted.
func (a *Applier) Remove(ctx context.Context, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	uid, dependents := object.GetUID(), metav1.DeletePropagationBackground
	if _, job := object.(*batchv1.Job); job {
		dependents = metav1.DeletePropagationForeground
	}
	options := []client.DeleteOption{client.PropagationPolicy(dependents), client.Preconditions{UID: &uid}}
	if unwaited(object) {
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	err := a.Client.Delete(ctx, object, options...)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s: %w", a.kind(object), object.GetName(), err)
	}
	return nil
}

// Refuses is a *Blocked where an object that exists cannot be used as the desired one.
func (a *Applier) Refuses(desired, observed client.Object) error {
	if blocked := standing(a.kind(desired), desired, observed); blocked != nil {
		return blocked
	}
	return nil
}

// standing says why an object that exists cannot be used as the desired one; nil when it can.
func standing(kind string, desired, observed client.Object) *Blocked {
	name := kind + " " + observed.GetName()
	owner := desired.GetOwnerReferences()[0]
	controller := metav1.GetControllerOf(observed)
	namesake := controller != nil && controller.Kind == owner.Kind && controller.Name == owner.Name
	ours := controller != nil && controller.UID == owner.UID || controller == nil && madeByUs(desired, observed) ||
		namesake && inherits(owner)
	switch {
	case ours && observed.GetDeletionTimestamp() == nil:
		return nil
	case ours, namesake:
		return &Blocked{Obstacle: session.Obstacle{Object: name, Reason: v1alpha1.ReasonBeingDeleted,
			Message: name + " is being deleted, or belongs to a deleted " + ownerNoun(owner) + " of the same name; waits until it is gone"}}
	default:
		return &Blocked{Obstacle: session.Obstacle{Object: name, Reason: v1alpha1.ReasonNameCollision, Final: true,
			Message: name + " exists and is not this " + ownerNoun(owner) + "'s; it is left alone: " + wayOut(owner)}}
	}
}

func ownerNoun(owner metav1.OwnerReference) string {
	if owner.Kind == kindProjectSettings {
		return "project"
	}
	return "session"
}

// wayOut says what to do about an object that has a name that ours needs. A session's name can be
// chosen, the names of a project's objects cannot.
func wayOut(owner metav1.OwnerReference) string {
	if owner.Kind == kindProjectSettings {
		return "rename or remove it; the operator looks again every minute"
	}
	return "rename or remove it, or choose another name for the session, then start the session again"
}

// inherits says that an owner takes over what belonged to a deleted one of its name. The settings
// of a project are made again when they are deleted, and its runners are not to be without their
// network policy until the garbage collector has been there. A session begins with nothing.
func inherits(owner metav1.OwnerReference) bool { return owner.Kind == kindProjectSettings }

const kindProjectSettings = "ProjectSettings"

// madeByUs recognizes an object of ours whose owner reference was taken off: an object of a session
// still says in an annotation whose it is, one of a project in a label. Somebody who may write
// objects in the namespace can forge that, but gains nothing: an object that they let us have.
func madeByUs(desired, observed client.Object) bool {
	owner := desired.GetOwnerReferences()[0]
	if owner.Kind == kindProjectSettings {
		return observed.GetLabels()[v1alpha1.LabelProjectSettings] == owner.Name
	}
	return observed.GetAnnotations()[v1alpha1.AnnotationSessionUID] == string(owner.UID)
}

// kind is the kind of a typed object, for messages.
func (a *Applier) kind(object client.Object) string {
	gvk, err := apiutil.GVKForObject(object, a.Client.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return gvk.Kind
}

// refused makes an obstacle of an answer that the user can do something about.
func refused(kind, name string, err error) error {
	blocked := &Blocked{cause: err, Obstacle: session.Obstacle{Object: kind + " " + name}}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		blocked.Reason = v1alpha1.ReasonNamespaceTerminating
		blocked.Message = "the namespace is being deleted"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		blocked.Reason = v1alpha1.ReasonQuotaExceeded
		blocked.Message = fmt.Sprintf("%s %s is refused: %v", kind, name, err)
	case apierrors.IsForbidden(err):
		blocked.Reason = v1alpha1.ReasonCreateRefused
		blocked.Message = fmt.Sprintf("%s %s is refused: %v", kind, name, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		blocked.Reason = v1alpha1.ReasonCreateRefused
		blocked.Message = fmt.Sprintf("%s %s is not valid: %v", kind, name, err)
		blocked.Final = true
	default:
		return fmt.Errorf("writing %s %s: %w", kind, name, err)
	}
	return blocked
}
