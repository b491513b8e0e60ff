package wiring

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

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
	// read is the version of the configuration that found is of, none where there was no object.
	read  string
	found *monitoring.UserWorkload
	// set says that it was switched on, by this process or one before.
	set bool
	// again is when a change that was refused is tried again.
	again time.Time
}

// ensureUserWorkload learns whether OpenShift's monitoring of user-defined projects is on. It
// switches it on where the operator was asked to, and takes that back when it is no longer asked.
func (r *Reconciler) ensureUserWorkload(ctx context.Context, w *watches, world *monitoring.World, wake *earliest) error {
	memory := &r.userWorkload
	if !world.OpenShift {
		*memory = userWorkloadMemory{}
		return nil
	}
	version := ""
	if have := w.get(userWorkloadConfig); have != nil {
		version = have.ResourceVersion
	}
	if !memory.again.IsZero() && !r.Clock.Now().Before(memory.again) {
		memory.found = nil
	}
	if memory.found == nil || memory.read != version {
		found, err := r.userWorkloadNow(ctx, world)
		if err != nil {
			if memory.found != nil {
				world.UserWorkload = *memory.found
			}
			return err
		}
		memory.read, memory.found, memory.again = version, found, time.Time{}
		if found.Problem != nil {
			memory.again = r.Clock.Now().Add(refusedAgain)
		}
	}
	if !memory.again.IsZero() {
		wake.or(memory.again)
	}
	world.UserWorkload = *memory.found
	return nil
}

// userWorkloadNow reads the configuration, and changes it where that is called for.
func (r *Reconciler) userWorkloadNow(ctx context.Context, world *monitoring.World) (*monitoring.UserWorkload, error) {
	have, err := r.configMaps().Get(ctx, monitoring.UserWorkloadConfig, metav1.GetOptions{})
	found := &monitoring.UserWorkload{}
	switch {
	case apierrors.IsNotFound(err):
		have, found.Setting = nil, monitoring.SettingNoObject
	case err != nil:
		return refused(fmt.Errorf("reading the configuration of the cluster's monitoring: %w", err), world)
	default:
		text, err := configOf(have)
		if err != nil {
			return nil, err
		}
		found.Setting = monitoring.SettingOf(text)
	}
	was, marked := mark(have, world.Installation)
	switch {
	case !world.WantsUserWorkload():
		r.userWorkload.set = false
		if marked {
			err = r.undoUserWorkload(ctx, have, world.Installation)
		}
	case found.Setting == monitoring.SettingOn:
		r.userWorkload.set = marked || r.userWorkload.set
	case found.Setting != monitoring.SettingUnreadable && (marked || r.userWorkload.set):
		found.TakenBack, r.userWorkload.set = true, true
		if marked && was != monitoring.WasTakenBack {
			// From now on all of it is the administrator's, also if he switches it on again.
			err = r.change(ctx, have, nil, world.Installation.Name()+" "+monitoring.WasTakenBack)
		}
	default:
		return r.enableUserWorkload(ctx, have, world, found)
	}
	if err != nil {
		return refused(err, world)
	}
	return found, nil
}

// refused makes a problem of an error that will not go by itself, where somebody asked for what is
// refused.
func refused(err error, world *monitoring.World) (*monitoring.UserWorkload, error) {
	switch {
	case passing(err):
		return &monitoring.UserWorkload{}, nil
	case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
		return nil, err
	case !world.WantsUserWorkload():
		return &monitoring.UserWorkload{}, nil
	}
	return &monitoring.UserWorkload{Problem: &monitoring.Condition{
		Part: monitoring.PartUserWorkload, Reason: "Refused", Missing: true,
		Message: fmt.Sprintf("%v; add the line \"enableUserWorkload: true\" yourself: oc -n %s edit configmap %s", err, monitoring.MonitoringNamespace, monitoring.UserWorkloadConfig),
	}}, nil
}

func (r *Reconciler) configMaps() dynamic.ResourceInterface {
	return r.dynamic.Resource(monitoring.ConfigMaps.GroupVersionResource).Namespace(monitoring.MonitoringNamespace)
}

func configOf(have *unstructured.Unstructured) (string, error) {
	text, _, err := unstructured.NestedString(have.Object, "data", configKey)
	if err != nil {
		return "", fmt.Errorf("reading the configuration of the cluster's monitoring: %w", err)
	}
	return text, nil
}

// mark reads what this installation has noted on the configuration.
func mark(have metav1.Object, installation monitoring.Installation) (was string, marked bool) {
	if object, ok := have.(*unstructured.Unstructured); ok && object == nil {
		return "", false
	}
	return strings.CutPrefix(have.GetAnnotations()[annotationUserWorkload], installation.Name()+" ")
}

// enableUserWorkload sets the one key in the configuration as it was read, nil for none.
func (r *Reconciler) enableUserWorkload(ctx context.Context, have *unstructured.Unstructured, world *monitoring.World, found *monitoring.UserWorkload) (*monitoring.UserWorkload, error) {
	text := ""
	if have != nil {
		var err error
		if text, err = configOf(have); err != nil {
			return nil, err
		}
	}
	changed, was, err := monitoring.EnableUserWorkload(text)
	switch {
	case err != nil:
		found.Problem = &monitoring.Condition{Part: monitoring.PartUserWorkload, Reason: "ConfigurationUnreadable", Message: err.Error(), Missing: true}
		return found, nil
	case have == nil:
		fresh := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{configKey: changed}}}
		fresh.SetAPIVersion("v1")
		fresh.SetKind("ConfigMap")
		fresh.SetName(monitoring.UserWorkloadConfig)
		fresh.SetNamespace(monitoring.MonitoringNamespace)
		fresh.SetAnnotations(map[string]string{annotationUserWorkload: world.Installation.Name() + " " + monitoring.WasNoObject})
		_, err = r.configMaps().Apply(ctx, fresh.GetName(), fresh, metav1.ApplyOptions{FieldManager: monitoringField})
	case was != "":
		err = r.change(ctx, have, &changed, world.Installation.Name()+" "+was)
	}
	if err != nil {
		return refused(fmt.Errorf("switching on the monitoring of user-defined projects: %w", err), world)
	}
	r.userWorkload.set = true
	return &monitoring.UserWorkload{Setting: monitoring.SettingOn}, nil
}

// change writes the text of the configuration and the note on it, as long as nobody else has written
// since it was read. Without a text that stays as it is; an empty note is removed.
func (r *Reconciler) change(ctx context.Context, read *unstructured.Unstructured, text *string, note string) error {
	annotations := map[string]any{annotationUserWorkload: nil}
	if note != "" {
		annotations[annotationUserWorkload] = note
	}
	content := map[string]any{"metadata": map[string]any{"resourceVersion": read.GetResourceVersion(), "annotations": annotations}}
	if text != nil {
		content["data"] = map[string]any{configKey: *text}
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding the change: %w", err)
	}
	_, err = r.configMaps().Patch(ctx, monitoring.UserWorkloadConfig, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: monitoringField})
	return err
}

// undoUserWorkload takes back what this installation has set, and nothing else.
func (r *Reconciler) undoUserWorkload(ctx context.Context, now *unstructured.Unstructured, installation monitoring.Installation) error {
	was, marked := mark(now, installation)
	if !marked || now.GetDeletionTimestamp() != nil {
		return nil
	}
	before, err := configOf(now)
	if err != nil {
		return err
	}
	text, err := monitoring.UndoUserWorkload(before, was)
	if err != nil {
		text = before // better kept than broken; the note goes, as it is the administrator's now
	}
	data, _, err := unstructured.NestedMap(now.Object, "data")
	if err != nil {
		return fmt.Errorf("reading the configuration of the cluster's monitoring: %w", err)
	}
	if was == monitoring.WasNoObject && text == "" && len(data) == 1 {
		uid, version := now.GetUID(), now.GetResourceVersion()
		err = r.configMaps().Delete(ctx, monitoring.UserWorkloadConfig, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	} else {
		err = r.change(ctx, now, &text, "")
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking back the switching on of the monitoring of user-defined projects: %w", err)
	}
	return nil
}
