package wiring

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

const (
	stateKey        = "status.yaml"
	annotationState = "ambient-code.io/state"
	// longestNote is what an Event may hold.
	longestNote = 1000
	// longestFarewell is how long the clean-up after an uninstallation may take, within the time that
	// a manager gives its parts to end.
	longestFarewell = 10 * time.Second
)

// tell sets the metric, and where the state has changed writes the ConfigMap, an Event on the
// Deployment and a line to the log. A cluster without monitoring is nothing to have an Event about.
func (r *Reconciler) tell(ctx context.Context, w *watches, world *monitoring.World, state monitoring.State) error {
	if r.Wired != nil {
		for _, c := range state.Conditions {
			if !c.Part.Told() {
				r.Wired(string(c.Part), c.Wired && !world.Off)
			}
		}
	}
	if world.Off {
		return nil
	}
	text, err := state.YAML()
	if err != nil {
		return err
	}
	sum, err := digest(text)
	if err != nil {
		return err
	}
	place := statePlace(world)
	content := world.Complete(place, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotationState: sum}},
		"data":     map[string]any{stateKey: text},
	})
	have := w.get(at(place))
	told := have != nil && have.Annotations[annotationState] == sum || r.told == sum
	problem, err := r.keep(ctx, w, world, monitoring.Object{Place: place, Content: content}, &earliest{})
	if err != nil || told {
		return err
	}
	log := ctrl.LoggerFrom(ctx)
	if problem != nil && problem.Missing {
		log.Info("The state of the monitoring cannot be written", "cause", problem.Message)
	}
	r.told = sum
	log.Info("Monitoring", "mode", state.Mode, "summary", state.Summary())
	r.event(world, &state)
	return nil
}

func statePlace(world *monitoring.World) monitoring.Place {
	return monitoring.Place{Kind: monitoring.ConfigMaps, Namespace: world.Installation.Namespace, Name: monitoring.StateConfigMap, Part: monitoring.PartState}
}

func (r *Reconciler) event(world *monitoring.World, state *monitoring.State) {
	kind, reason := corev1.EventTypeNormal, "MonitoringWired"
	switch {
	case len(state.Missing()) > 0:
		kind, reason = corev1.EventTypeWarning, "MonitoringIncomplete"
	case !state.Wired():
		return
	}
	note := state.Summary()
	if len(note) > longestNote {
		note = note[:longestNote] + "..."
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: world.Installation.Namespace, Name: world.Installation.Deployment, UID: types.UID(world.Installation.UID),
	}}
	r.Events.Eventf(deployment, nil, kind, reason, "WireMonitoring", "%s", note)
}

// farewell cleans up when the operator ends because it was uninstalled; an update or a restart ends
// it too, and takes nothing away.
func (r *Reconciler) farewell(ctx context.Context, installation *monitoring.Installation) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestFarewell)
	defer cancel()
	deployment, err := r.metadata.Resource(deploymentResource).Namespace(installation.Namespace).Get(ctx, installation.Deployment, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		ctrl.LoggerFrom(ctx).Info("Whether the operator is being uninstalled cannot be found out; nothing is removed", "error", err.Error())
		return nil
	case deployment.DeletionTimestamp == nil:
		return nil
	}
	if err := r.leave(ctx, installation); err != nil {
		ctrl.LoggerFrom(ctx).Info("What monitoring has outside of the operator's namespace is not all removed; "+
			"remove it with: kubectl delete configmap,consolequickstart,consoleyamlsample -A -l app.kubernetes.io/managed-by=agentic-operator", "error", err.Error())
	}
	return nil
}

// leave removes what the garbage collector will not: the objects outside of the operator's
// namespace. All others are owned by its Deployment.
func (r *Reconciler) leave(ctx context.Context, installation *monitoring.Installation) error {
	var failures []error
	for _, place := range monitoring.Places(installation.Namespace) {
		if !place.Away(installation.Namespace) {
			continue
		}
		have, err := r.metadataOf(ctx, place)
		if err == nil {
			err = r.remove(ctx, *installation, place, have)
		}
		if !apierrors.IsNotFound(err) {
			failures = append(failures, err)
		}
	}
	config, err := r.configMaps().Get(ctx, monitoring.UserWorkloadConfig, metav1.GetOptions{})
	if err == nil {
		err = r.undoUserWorkload(ctx, config, *installation)
	}
	if !apierrors.IsNotFound(err) {
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func (r *Reconciler) metadataOf(ctx context.Context, place monitoring.Place) (*metav1.PartialObjectMetadata, error) {
	if place.Namespace == "" {
		return r.metadata.Resource(place.Kind.GroupVersionResource).Get(ctx, place.Name, metav1.GetOptions{})
	}
	return r.metadata.Resource(place.Kind.GroupVersionResource).Namespace(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
}
