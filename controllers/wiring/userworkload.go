package wiring

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

const (
	// annotationUserWorkload stands on the cluster's monitoring configuration as long as a change of
	// the operator's is in it: whose it is and what was there before.
	annotationUserWorkload = "ambient-code.io/user-workload-monitoring-was"
	configKey              = "config.yaml"
)

// userWorkloadMemory keeps the operator from reading what it has read, and from setting again what
// somebody has taken back: the configuration is the administrator's.
type userWorkloadMemory struct {
	seen    string
	set     bool
	problem *monitoring.Condition
}

// ensureUserWorkload switches on OpenShift's monitoring of user-defined projects where the operator
// was asked to, and takes that back when it is no longer asked.
func (r *Reconciler) ensureUserWorkload(ctx context.Context, w *watches, world *monitoring.World) (*monitoring.Condition, error) {
	have := w.get(userWorkloadConfig)
	if !world.WantsUserWorkload() {
		r.userWorkload = userWorkloadMemory{}
		if have == nil {
			return nil, nil
		}
		return nil, r.undoUserWorkload(ctx, have, world.Installation)
	}
	memory := &r.userWorkload
	if have != nil && have.ResourceVersion == memory.seen {
		return memory.problem, nil
	}
	if _, marked := mark(have, world.Installation); marked || memory.set {
		memory.set, memory.problem = true, nil
		return nil, nil
	}
	problem, err := r.enableUserWorkload(ctx, world.Installation)
	if err != nil {
		return nil, err
	}
	memory.problem = problem
	if have != nil {
		memory.seen = have.ResourceVersion
	}
	return problem, nil
}

// mark reads what this installation has noted on the configuration.
func mark(have *metav1.PartialObjectMetadata, installation monitoring.Installation) (was string, marked bool) {
	if have == nil {
		return "", false
	}
	return strings.CutPrefix(have.Annotations[annotationUserWorkload], installation.Name()+" ")
}

func (r *Reconciler) enableUserWorkload(ctx context.Context, installation monitoring.Installation) (*monitoring.Condition, error) {
	configMaps := r.dynamic.Resource(monitoring.ConfigMaps.GroupVersionResource).Namespace(monitoring.MonitoringNamespace)
	have, err := configMaps.Get(ctx, monitoring.UserWorkloadConfig, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the configuration of the cluster's monitoring: %w", err)
	}
	absent := apierrors.IsNotFound(err)
	text := ""
	if !absent {
		text, _, err = unstructured.NestedString(have.Object, "data", configKey)
		if err != nil {
			return nil, fmt.Errorf("reading the configuration of the cluster's monitoring: %w", err)
		}
	}
	changed, was, err := monitoring.EnableUserWorkload(text)
	switch {
	case err != nil:
		return &monitoring.Condition{Part: monitoring.PartUserWorkload, Reason: "ConfigurationUnreadable", Message: err.Error(), Missing: true}, nil
	case was == "":
		return nil, nil
	case absent:
		fresh := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{configKey: changed}}}
		fresh.SetAPIVersion("v1")
		fresh.SetKind("ConfigMap")
		fresh.SetName(monitoring.UserWorkloadConfig)
		fresh.SetNamespace(monitoring.MonitoringNamespace)
		fresh.SetAnnotations(map[string]string{annotationUserWorkload: installation.Name() + " " + monitoring.WasNoObject})
		_, err = configMaps.Apply(ctx, fresh.GetName(), fresh, metav1.ApplyOptions{FieldManager: monitoringField})
	default:
		err = r.change(ctx, have.GetResourceVersion(), changed, installation.Name()+" "+was)
	}
	if err != nil {
		return nil, fmt.Errorf("switching on the monitoring of user-defined projects: %w", err)
	}
	r.userWorkload.set = true
	return nil, nil
}

// change writes the text of the configuration and the note on it, as long as nobody else has written
// since it was read. An empty note is removed.
func (r *Reconciler) change(ctx context.Context, read, text, note string) error {
	annotations := map[string]any{annotationUserWorkload: nil}
	if note != "" {
		annotations[annotationUserWorkload] = note
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": read, "annotations": annotations},
		"data":     map[string]any{configKey: text},
	})
	if err != nil {
		return fmt.Errorf("encoding the change: %w", err)
	}
	_, err = r.dynamic.Resource(monitoring.ConfigMaps.GroupVersionResource).Namespace(monitoring.MonitoringNamespace).
		Patch(ctx, monitoring.UserWorkloadConfig, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: monitoringField})
	return err
}

// undoUserWorkload takes back what this installation has set, and nothing else.
func (r *Reconciler) undoUserWorkload(ctx context.Context, have *metav1.PartialObjectMetadata, installation monitoring.Installation) error {
	was, marked := mark(have, installation)
	if !marked || have.DeletionTimestamp != nil {
		return nil
	}
	configMaps := r.dynamic.Resource(monitoring.ConfigMaps.GroupVersionResource).Namespace(monitoring.MonitoringNamespace)
	now, err := configMaps.Get(ctx, monitoring.UserWorkloadConfig, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the configuration of the cluster's monitoring: %w", err)
	}
	data, _, err := unstructured.NestedStringMap(now.Object, "data")
	if err != nil {
		return fmt.Errorf("reading the configuration of the cluster's monitoring: %w", err)
	}
	text, err := monitoring.UndoUserWorkload(data[configKey], was)
	if err != nil {
		text = data[configKey] // better kept than broken; the note goes, as it is the administrator's now
	}
	if was == monitoring.WasNoObject && text == "" && len(data) == 1 {
		uid, version := now.GetUID(), now.GetResourceVersion()
		err = configMaps.Delete(ctx, monitoring.UserWorkloadConfig, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	} else {
		err = r.change(ctx, now.GetResourceVersion(), text, "")
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking back the switching on of the monitoring of user-defined projects: %w", err)
	}
	return nil
}
