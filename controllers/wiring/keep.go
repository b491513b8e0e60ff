package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

// refusedAgain is how long an object that was refused is left before it is tried again.
const refusedAgain = 5 * time.Minute

// version is what was last written to a place: what was meant, which version of the object that made
// and what it then held. As long as the first two are the same there is nothing to write.
type version struct{ meant, resource, holds string }

func digest(content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encoding an object: %w", err)
	}
	return fingerprint(string(text)), nil
}

// keep makes an object be as it should. What it cannot be is a condition of its part.
func (r *Reconciler) keep(ctx context.Context, w *watches, world *monitoring.World, object monitoring.Object, wake *earliest) (*monitoring.Condition, error) {
	have := w.get(at(object.Place))
	meant, err := digest(object.Content.Object)
	if err != nil {
		return nil, err
	}
	written, known := r.written[object.Place]
	again := known && written.meant == meant
	if have != nil && again && !newer(have.ResourceVersion, written.resource) {
		return r.contested(object.Place, wake), nil
	}
	if have != nil {
		theirs, err := r.theirs(ctx, world, object.Place, have)
		if err != nil || theirs != nil {
			return theirs, err
		}
	}
	if again {
		if contested, wait := r.mayPutBack(object.Place, have, wake); wait {
			return contested, nil
		}
	}
	resource, err := r.write(ctx, object, meant)
	switch {
	case err == nil:
		if again && newer(resource, written.resource) && (have == nil || newer(resource, have.ResourceVersion)) {
			r.putBack(object.Place, have)
		}
		return r.contested(object.Place, wake), nil
	case passing(err), apierrors.IsConflict(err): // what else was written asks for a pass
		return nil, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		wake.or(r.Clock.Now().Add(refusedAgain))
		return &monitoring.Condition{Part: object.Part, Reason: "Refused", Missing: true,
			Message: fmt.Sprintf("%s %s is refused: %v", object.Kind.Kind, object.Name, err)}, nil
	default:
		return nil, fmt.Errorf("applying %s %s: %w", object.Kind.Kind, object.Name, err)
	}
}

// write makes an object hold what is meant and nothing else. An apply leaves what others have added,
// so where the result holds more, its contents are replaced. They may hold more after that, too: what
// the API server puts in by itself. That is remembered, so as not to be taken for an addition again.
func (r *Reconciler) write(ctx context.Context, object monitoring.Object, meant string) (resource string, err error) {
	objects := r.place(object.Place)
	now, err := objects.Apply(ctx, object.Name, object.Content, metav1.ApplyOptions{FieldManager: monitoringField, Force: true})
	if err != nil {
		return "", err
	}
	holds, err := contents(now)
	if err != nil {
		return "", err
	}
	written := r.written[object.Place]
	want, err := contents(object.Content)
	if err != nil {
		return "", err
	}
	if holds != want && (written.meant != meant || written.holds != holds) {
		patch, err := replacement(object.Content, now)
		if err != nil {
			return "", err
		}
		now, err = objects.Patch(ctx, object.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: monitoringField})
		if err != nil {
			return "", err
		}
		if holds, err = contents(now); err != nil {
			return "", err
		}
	}
	r.written[object.Place] = version{meant, now.GetResourceVersion(), holds}
	return now.GetResourceVersion(), nil
}

// shared are the fields of an object that are not the wiring's alone: people add labels, and the API
// server and controllers write the rest.
var shared = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "status": true}

// contents tells apart what objects hold, whatever their metadata and status.
func contents(object *unstructured.Unstructured) (string, error) {
	held := map[string]any{}
	for field, value := range object.Object {
		if !shared[field] {
			held[field] = value
		}
	}
	return digest(held)
}

// pointer writes the name of a field as part of a path (RFC 6901): people may have put any in.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// replacement is a patch of an object as it is that makes it hold what is meant and nothing else. It
// fails if somebody has written it meanwhile.
func replacement(meant, now *unstructured.Unstructured) ([]byte, error) {
	patch := []map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": now.GetResourceVersion()}}
	for field := range now.Object {
		if _, wanted := meant.Object[field]; !wanted && !shared[field] {
			patch = append(patch, map[string]any{"op": "remove", "path": "/" + pointer.Replace(field)})
		}
	}
	for field, value := range meant.Object {
		if !shared[field] {
			patch = append(patch, map[string]any{"op": "add", "path": "/" + pointer.Replace(field), "value": value})
		}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding an object: %w", err)
	}
	return text, nil
}

// newer says that an object was written by somebody since.
func newer(have, written string) bool {
	order, err := resourceversion.CompareResourceVersion(have, written)
	if err != nil {
		return have != written
	}
	return order > 0
}

func (r *Reconciler) place(place monitoring.Place) dynamic.ResourceInterface {
	if place.Namespace == "" {
		return r.dynamic.Resource(place.Kind.GroupVersionResource)
	}
	return r.dynamic.Resource(place.Kind.GroupVersionResource).Namespace(place.Namespace)
}

// ours says that the object was made by this field manager. That cannot get lost as a label can.
func ours(object *metav1.PartialObjectMetadata) bool {
	return managed(object) != nil
}

func managed(object *metav1.PartialObjectMetadata) *metav1.ManagedFieldsEntry {
	for i := range object.ManagedFields {
		entry := &object.ManagedFields[i]
		if entry.Manager == monitoringField && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return entry
		}
	}
	return nil
}

// theirs says why an object that stands in a place is not to be touched; nil when it is ours. A
// Service that was installed with the operator is as good as ours.
func (r *Reconciler) theirs(ctx context.Context, world *monitoring.World, place monitoring.Place, have *metav1.PartialObjectMetadata) (*monitoring.Condition, error) {
	full := strings.TrimPrefix(place.Namespace+"/"+place.Name, "/")
	switch installed := have.Annotations[monitoring.AnnotationInstallation]; {
	case !ours(have) && place.Kind == monitoring.Services:
		return &monitoring.Condition{}, nil
	case !ours(have):
		return &monitoring.Condition{Part: place.Part, Reason: "NameTaken", Missing: true,
			Message: fmt.Sprintf("%s %s was not made by the operator and is left alone; rename or remove it", place.Kind.Kind, full)}, nil
	case !place.Away(world.Installation.Namespace) || installed == world.Installation.Name() || installed == "":
		return nil, nil
	default:
		namespace, _, _ := strings.Cut(installed, "/")
		_, err := r.metadata.Resource(namespaceResource).Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil // that operator is gone
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the namespace of the operator %s: %w", installed, err)
		}
		return &monitoring.Condition{Part: place.Part, Wired: true, Reason: "KeptByAnother",
			Message: fmt.Sprintf("%s %s is kept in place by the operator %s", place.Kind.Kind, full, installed)}, nil
	}
}

// removeOthers removes what is ours and not wanted, the last made first.
func (r *Reconciler) removeOthers(ctx context.Context, w *watches, world *monitoring.World, objects []monitoring.Object) error {
	wanted := map[monitoring.Place]bool{}
	for _, object := range objects {
		wanted[object.Place] = true
	}
	var failures []error
	places := monitoring.Places(world.Installation.Namespace)
	for i := len(places) - 1; i >= 0; i-- {
		place := places[i]
		if wanted[place] || place.Part == monitoring.PartState && !world.Off || place.Part == monitoring.PartScrapeToken && world.WantsToken() {
			continue
		}
		delete(r.written, place)
		if have := w.get(at(place)); have != nil {
			failures = append(failures, r.remove(ctx, world.Installation, place, have))
		}
	}
	return errors.Join(failures...)
}

// remove deletes an object if it is this installation's.
func (r *Reconciler) remove(ctx context.Context, installation monitoring.Installation, place monitoring.Place, have *metav1.PartialObjectMetadata) error {
	if !ours(have) || have.DeletionTimestamp != nil {
		return nil
	}
	installed := have.Annotations[monitoring.AnnotationInstallation]
	if place.Away(installation.Namespace) && installed != "" && installed != installation.Name() {
		return nil
	}
	background := metav1.DeletePropagationBackground
	err := r.place(place).Delete(ctx, place.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &have.UID},
		PropagationPolicy: &background,
	})
	if err != nil && !passing(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s %s: %w", place.Kind.Kind, place.Name, err)
	}
	return nil
}

func terminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
