package histories

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// change is one version in the log of a kind: an object before and after; nil where it was not there.
type change struct {
	version  int64
	key      types.NamespacedName
	was, is  client.Object
	stripped map[bool]client.Object
}

// api is an API server in memory. What it has stored is never changed in place.
type api struct {
	now     func() time.Time
	version int64
	objects map[string]map[types.NamespacedName]client.Object
	log     map[string][]*change
	made    map[string]int
	// refuses says why somebody's object is refused; nil when it is not.
	refuses func(by, kind, name string) error
	// written is told of every write, with who made it.
	written func(by, kind string, was, is client.Object)
}

func newAPI(now func() time.Time) *api {
	return &api{now: now, objects: map[string]map[types.NamespacedName]client.Object{}, log: map[string][]*change{}, made: map[string]int{}}
}

// kindOf is the kind of a typed object, or of one that is known by its metadata alone.
func kindOf(object any) string {
	if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
		return partial.Kind
	}
	if partial, ok := object.(*metav1.PartialObjectMetadataList); ok {
		return strings.TrimSuffix(partial.Kind, "List")
	}
	return strings.TrimSuffix(reflect.TypeOf(object).Elem().Name(), "List")
}

func resource(kind string) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(kind) + "s"}
}

func (a *api) get(kind string, key types.NamespacedName) (client.Object, error) {
	if object := a.objects[kind][key]; object != nil {
		return object, nil
	}
	return nil, apierrors.NewNotFound(resource(kind), key.Name)
}

// list is all objects of a kind, in the order of their names.
func (a *api) list(kind string) []client.Object {
	var all []client.Object
	for _, object := range a.objects[kind] {
		all = append(all, object)
	}
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b client.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// store puts a version of an object, or its end, into the log.
func (a *api) store(by, kind string, was, is client.Object) {
	a.version++
	entry := &change{version: a.version, was: was, is: is}
	if a.objects[kind] == nil {
		a.objects[kind] = map[types.NamespacedName]client.Object{}
	}
	if is != nil {
		entry.key = client.ObjectKeyFromObject(is)
		is.SetResourceVersion(strconv.FormatInt(a.version, 10))
		a.objects[kind][entry.key] = is
	} else {
		entry.key = client.ObjectKeyFromObject(was)
		delete(a.objects[kind], entry.key)
	}
	a.log[kind] = append(a.log[kind], entry)
	a.written(by, kind, was, is)
}

func (a *api) create(by string, object client.Object) error {
	kind, key := kindOf(object), client.ObjectKeyFromObject(object)
	if key.Namespace != "" {
		namespace := a.objects["Namespace"][types.NamespacedName{Name: key.Namespace}]
		if namespace == nil {
			return apierrors.NewNotFound(resource("Namespace"), key.Namespace)
		}
		if namespace.GetDeletionTimestamp() != nil {
			refused := apierrors.NewForbidden(resource(kind), key.Name, errors.New("the namespace is being terminated"))
			refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
			return refused
		}
	}
	if err := a.refuses(by, kind, key.Name); err != nil {
		return err
	}
	if a.objects[kind][key] != nil {
		return apierrors.NewAlreadyExists(resource(kind), key.Name)
	}
	stored := object.DeepCopyObject().(client.Object)
	if kind == "PersistentVolumeClaim" {
		stored.SetFinalizers([]string{claimProtection})
	}
	id := kind + " " + key.String()
	a.made[id]++
	// As in a real one no slash is in it: holds on workspaces are told apart by those.
	stored.SetUID(types.UID(strings.ReplaceAll(fmt.Sprintf("%s#%d", id, a.made[id]), "/", ".")))
	stored.SetCreationTimestamp(metav1.NewTime(a.now().Truncate(time.Second)))
	stored.SetGeneration(1)
	if job, ok := stored.(*batchv1.Job); ok && job.Spec.Suspend == nil {
		job.Spec.Suspend = new(bool)
	}
	a.store(by, kind, nil, stored)
	into(stored, object)
	return nil
}

// into copies an object that is stored into one that a caller gave.
func into(stored, given client.Object) {
	if partial, ok := given.(*metav1.PartialObjectMetadata); ok {
		kind := partial.TypeMeta
		metadataOf(stored).DeepCopyInto(partial)
		partial.TypeMeta = kind
		return
	}
	reflect.ValueOf(given).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
}

func metadataOf(object client.Object) *metav1.PartialObjectMetadata {
	if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
		return partial
	}
	meta := reflect.ValueOf(object).Elem().FieldByName("ObjectMeta").Interface().(metav1.ObjectMeta)
	return &metav1.PartialObjectMetadata{ObjectMeta: meta}
}

// patch changes an object, or its status alone.
func (a *api) patch(by string, object client.Object, patch client.Patch, status bool) error {
	kind, key := kindOf(object), client.ObjectKeyFromObject(object)
	was, err := a.get(kind, key)
	if err != nil {
		return err
	}
	after, err := patched(was, object, patch)
	if err != nil {
		return err
	}
	is := reflect.New(reflect.TypeOf(was).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(after, is); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := a.replace(by, was, is, status); err != nil {
		return err
	}
	into(a.objects[kind][key], object)
	return nil
}

// patched is an object as JSON after a patch.
func patched(was, object client.Object, patch client.Patch) ([]byte, error) {
	if _, whole := object.(*v1alpha1.AgenticSession); whole && patch.Type() == types.MergePatchType && object.GetResourceVersion() == was.GetResourceVersion() {
		return json.Marshal(object) // the same, and cheaper: the patch was made from what is stored
	}
	data, err := patch.Data(object)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	if patch.Type() == types.JSONPatchType {
		steps, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		after, err := steps.Apply(before)
		if err != nil {
			return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: err.Error()}}
		}
		return after, nil
	}
	after, err := jsonpatch.MergePatch(before, data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return after, nil
}

// update is a full update under the version that was read.
func (a *api) update(by string, is client.Object, status bool) error {
	was, err := a.get(kindOf(is), client.ObjectKeyFromObject(is))
	if err != nil {
		return err
	}
	return a.replace(by, was, is.DeepCopyObject().(client.Object), status)
}

func (a *api) replace(by string, was, is client.Object, status bool) error {
	kind := kindOf(was)
	if is.GetResourceVersion() != was.GetResourceVersion() {
		return apierrors.NewConflict(resource(kind), was.GetName(), errors.New("the object has been modified"))
	}
	if is.GetUID() != was.GetUID() {
		return apierrors.NewConflict(resource(kind), was.GetName(), errors.New("the UID differs"))
	}
	is = apart(was, is, status)
	if equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	if specChanged(was, is) {
		is.SetGeneration(was.GetGeneration() + 1)
	}
	if is.GetDeletionTimestamp() != nil && len(is.GetFinalizers()) == 0 {
		a.store(by, kind, was, nil)
		return nil
	}
	a.store(by, kind, was, is)
	return nil
}

// apart keeps the status out of writes of an object, and all else out of writes of its status.
func apart(was, is client.Object, status bool) client.Object {
	kept := is
	if status {
		kept = was.DeepCopyObject().(client.Object)
	}
	switch w := was.(type) {
	case *v1alpha1.AgenticSession:
		kept.(*v1alpha1.AgenticSession).Status = w.Status
		if status {
			kept.(*v1alpha1.AgenticSession).Status = is.(*v1alpha1.AgenticSession).Status
		}
	case *batchv1.Job:
		kept.(*batchv1.Job).Status = w.Status
		if status {
			kept.(*batchv1.Job).Status = is.(*batchv1.Job).Status
		}
	case *v1alpha1.ProjectSettings:
		kept.(*v1alpha1.ProjectSettings).Status = w.Status
		if status {
			kept.(*v1alpha1.ProjectSettings).Status = is.(*v1alpha1.ProjectSettings).Status
		}
	case *corev1.Pod:
		kept.(*corev1.Pod).Status = w.Status
		if status {
			kept.(*corev1.Pod).Status = is.(*corev1.Pod).Status
		}
	}
	return kept
}

func specChanged(was, is client.Object) bool {
	switch w := was.(type) {
	case *v1alpha1.AgenticSession:
		return !equality.Semantic.DeepEqual(w.Spec, is.(*v1alpha1.AgenticSession).Spec)
	case *v1alpha1.ProjectSettings:
		return !equality.Semantic.DeepEqual(w.Spec, is.(*v1alpha1.ProjectSettings).Spec)
	case *batchv1.Job:
		return !equality.Semantic.DeepEqual(w.Spec, is.(*batchv1.Job).Spec)
	default:
		return false
	}
}

// remove deletes an object as the API server does: at once, or by a deletion timestamp where
// finalizers or a kubelet have to agree.
func (a *api) remove(by, kind string, key types.NamespacedName, options *client.DeleteOptions) error {
	was, err := a.get(kind, key)
	if err != nil {
		return err
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != was.GetUID() {
		return apierrors.NewConflict(resource(kind), key.Name, errors.New("the UID differs"))
	}
	is := was.DeepCopyObject().(client.Object)
	if p := options.PropagationPolicy; p != nil && *p == metav1.DeletePropagationForeground && !slices.Contains(is.GetFinalizers(), metav1.FinalizerDeleteDependents) && is.GetDeletionTimestamp() == nil {
		is.SetFinalizers(append(is.GetFinalizers(), metav1.FinalizerDeleteDependents))
	}
	var grace time.Duration
	if pod, ok := is.(*corev1.Pod); ok && pod.Spec.NodeName != "" && !podEnded(pod) {
		grace = time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
		if options.GracePeriodSeconds != nil {
			grace = time.Duration(*options.GracePeriodSeconds) * time.Second
		}
	}
	if grace == 0 && len(is.GetFinalizers()) == 0 {
		a.store(by, kind, was, nil)
		return nil
	}
	ends := metav1.NewTime(a.now().Add(grace).Truncate(time.Second))
	seconds := int64(grace / time.Second)
	if at := was.GetDeletionTimestamp(); at != nil {
		if seconds >= *was.GetDeletionGracePeriodSeconds() {
			return nil
		}
		if at.Before(&ends) {
			ends = *at
		}
	}
	is.SetDeletionTimestamp(&ends)
	is.SetDeletionGracePeriodSeconds(&seconds)
	a.store(by, kind, was, is)
	return nil
}

func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
