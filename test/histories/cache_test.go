package histories

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/controllers"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// selection is what the operator caches of a kind: its real options, by kind.
type selection struct {
	options  cache.ByObject
	metadata bool
}

func selections() map[string]selection {
	all := map[string]selection{}
	for object, options := range controllers.CacheOptions(settings).ByObject {
		_, metadata := object.(*metav1.PartialObjectMetadata)
		all[kindOf(object)] = selection{options, metadata}
	}
	return all
}

// seen is an object as a cache has it; nil where the cache does not select it.
func (s *selection) seen(object client.Object) client.Object {
	if object == nil || s.options.Label != nil && !s.options.Label.Matches(labels.Set(object.GetLabels())) {
		return nil
	}
	if s.options.Field != nil {
		known := fields.Set{"metadata.name": object.GetName()}
		if event, ok := object.(*corev1.Event); ok {
			known["involvedObject.kind"], known["reason"] = event.InvolvedObject.Kind, event.Reason
		}
		if !s.options.Field.Matches(known) {
			return nil
		}
	}
	copied := object.DeepCopyObject().(client.Object)
	if s.metadata {
		kind := kindOf(object)
		partial := metadataOf(copied)
		partial.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: kind}
		copied = partial
	}
	stripped, err := s.options.Transform(copied)
	if err != nil {
		return nil
	}
	return stripped.(client.Object)
}

// visible is what a change is in the cache; it is worked out once for all operators.
func (s *selection) visible(c *change) (was, is client.Object) {
	if c.stripped == nil {
		c.stripped = map[bool]client.Object{false: s.seen(c.was), true: s.seen(c.is)}
	}
	return c.stripped[false], c.stripped[true]
}

// caches is what one operator knows of the API server: of each kind the versions up to some moment.
type caches struct {
	api        *api
	selections map[string]selection
	seen       map[string]int
	objects    map[string]map[types.NamespacedName]client.Object
	// written is up to which version reads of an object have to wait: the operator's own writes.
	written map[string]map[types.NamespacedName]int64
	// told is called with what an informer tells its handlers.
	told func(client.Object)
}

func newCaches(a *api, all map[string]selection, told func(client.Object)) *caches {
	return &caches{api: a, selections: all, seen: map[string]int{}, told: told,
		objects: map[string]map[types.NamespacedName]client.Object{}, written: map[string]map[types.NamespacedName]int64{}}
}

// behind is how many changes of a kind the cache has not seen.
func (c *caches) behind(kind string) int { return len(c.api.log[kind]) - c.seen[kind] }

func (c *caches) kinds() []string { return slices.Sorted(maps.Keys(c.selections)) }

// advance lets the cache of a kind see some more changes.
func (c *caches) advance(kind string, changes int) {
	for range min(changes, c.behind(kind)) {
		entry := c.api.log[kind][c.seen[kind]]
		c.seen[kind]++
		if c.objects[kind] == nil {
			c.objects[kind] = map[types.NamespacedName]client.Object{}
		}
		selected := c.selections[kind]
		was, is := selected.visible(entry)
		if is != nil {
			c.objects[kind][entry.key] = is
		} else {
			delete(c.objects[kind], entry.key)
		}
		for _, object := range []client.Object{was, is} {
			if object != nil {
				c.told(object)
			}
		}
	}
}

// reach has the cache of a kind see all changes up to a version.
func (c *caches) reach(kind string, version int64) {
	for c.behind(kind) > 0 && c.api.log[kind][c.seen[kind]].version <= version {
		c.advance(kind, 1)
	}
}

// wrote notes that reads have to see what was written.
func (c *caches) wrote(kind string, key types.NamespacedName) {
	if c.written[kind] == nil {
		c.written[kind] = map[types.NamespacedName]int64{}
	}
	c.written[kind][key] = c.api.version
}

func (c *caches) get(key types.NamespacedName, object client.Object, consistent bool) error {
	kind := kindOf(object)
	if _, cached := c.selections[kind]; !cached {
		return fmt.Errorf("%s is in no cache", kind)
	}
	if consistent {
		c.reach(kind, c.written[kind][key])
	}
	known := c.objects[kind][key]
	if known == nil {
		return apierrors.NewNotFound(resource(kind), key.Name)
	}
	into(known, object)
	return nil
}

// index is a field that the caches find objects by.
func index(object client.Object, field string) string {
	switch o := object.(type) {
	case *v1alpha1.AgenticSession:
		if field == "parent" {
			return workload.Parent(o)
		}
		if ready := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonWorkspaceInUse && orPending(o.Status.Phase) == v1alpha1.PhasePending {
			return "workspace"
		}
		return ""
	case *corev1.Event:
		return string(o.InvolvedObject.UID)
	default:
		if field != "session" {
			return "no such index"
		}
		return object.GetLabels()[v1alpha1.LabelSession]
	}
}

func (c *caches) list(list client.ObjectList, options *client.ListOptions, consistent bool) error {
	kind := kindOf(list)
	if consistent {
		for _, version := range c.written[kind] {
			c.reach(kind, version)
		}
	}
	var found []client.Object
	for _, object := range c.objects[kind] {
		if options.Namespace != "" && object.GetNamespace() != options.Namespace {
			continue
		}
		if options.FieldSelector != nil && !chosen(object, options.FieldSelector) {
			continue
		}
		found = append(found, object)
	}
	slices.SortFunc(found, byName)
	return fill(list, found)
}

func chosen(object client.Object, selector fields.Selector) bool {
	for _, r := range selector.Requirements() {
		if index(object, r.Field) != r.Value {
			return false
		}
	}
	return true
}

// fill puts objects into a list.
func fill(list client.ObjectList, found []client.Object) error {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	all := reflect.MakeSlice(items.Type(), 0, len(found))
	for _, object := range found {
		item := reflect.New(items.Type().Elem())
		into(object, item.Interface().(client.Object))
		all = reflect.Append(all, item.Elem())
	}
	items.Set(all)
	return nil
}
