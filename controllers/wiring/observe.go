package wiring

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

var (
	podResource        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaceResource  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	accountResource    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	replicaSetResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	deploymentResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	crdResource        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

var errNoDeployment = errors.New("the operator's pod does not belong to a Deployment")

// awaitInstallation finds the operator's Deployment, however often that fails: sessions do not depend
// on monitoring, so no error of it may end the operator. It is nil where there is none.
func (r *Reconciler) awaitInstallation(ctx context.Context, log logr.Logger) *monitoring.Installation {
	for told := false; ; told = true {
		installation, err := r.findInstallation(ctx)
		switch {
		case err == nil:
			return installation
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errNoDeployment):
			log.Info("Monitoring is not wired", "cause", err.Error())
			return nil
		case !told:
			log.Info("Monitoring is not wired yet; this is tried again", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.Clock.After(slowestRetry):
		}
	}
}

// findInstallation goes from the operator's pod to its Deployment, which is to own what is made.
func (r *Reconciler) findInstallation(ctx context.Context) (*monitoring.Installation, error) {
	namespace := r.Config.Namespace
	name := r.Config.PodName
	for _, step := range []struct {
		resource schema.GroupVersionResource
		owner    string
	}{{podResource, "ReplicaSet"}, {replicaSetResource, "Deployment"}} {
		object, err := r.metadata.Resource(step.resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%w: %s %s/%s does not exist", errNoDeployment, step.resource.Resource, namespace, name)
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the operator's own Deployment: %w", err)
		}
		owner := metav1.GetControllerOf(object)
		if owner == nil || owner.Kind != step.owner {
			return nil, fmt.Errorf("%w: %s %s/%s has no %s", errNoDeployment, step.resource.Resource, namespace, name, step.owner)
		}
		name = owner.Name
	}
	deployment, err := r.dynamic.Resource(deploymentResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: deployments %s/%s does not exist", errNoDeployment, namespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the operator's own Deployment: %w", err)
	}
	podLabels, _, err := unstructured.NestedStringMap(deployment.Object, "spec", "selector", "matchLabels")
	if err != nil {
		return nil, fmt.Errorf("reading the selector of the operator's own Deployment: %w", err)
	}
	return &monitoring.Installation{Namespace: namespace, Deployment: name, UID: string(deployment.GetUID()), PodLabels: podLabels, OLM: r.Config.OperatorCondition != ""}, nil
}

func at(place monitoring.Place) followed {
	return followed{place.Kind.GroupVersionResource, place.Namespace, place.Name}
}

func crdOf(kind monitoring.Kind) followed { return followed{resource: crdResource, name: kind.CRD()} }

func namespaced(name string) followed { return followed{resource: namespaceResource, name: name} }

var (
	allPrometheuses    = followed{resource: monitoring.Prometheuses.GroupVersionResource}
	userWorkloadConfig = followed{monitoring.ConfigMaps.GroupVersionResource, monitoring.MonitoringNamespace, monitoring.UserWorkloadConfig}
)

func (r *Reconciler) readerAccount() followed {
	return followed{accountResource, r.Config.Namespace, monitoring.ReaderAccount}
}

// watchAlways watches what every cluster can have.
func (r *Reconciler) watchAlways(w *watches, installation *monitoring.Installation) {
	always := []followed{
		{deploymentResource, installation.Namespace, installation.Deployment},
		namespaced(installation.Namespace), namespaced(monitoring.MonitoringNamespace), namespaced(monitoring.ConsoleNamespace),
		r.readerAccount(), userWorkloadConfig,
	}
	for _, kind := range monitoring.OptionalKinds {
		always = append(always, crdOf(kind))
	}
	for _, place := range monitoring.Places(installation.Namespace) {
		if !place.Kind.Optional {
			always = append(always, at(place))
		}
	}
	w.require(always...)
}

// ofKind is what is watched of an optional kind while there is a CRD.
func (r *Reconciler) ofKind(kind monitoring.Kind) followed {
	if kind == monitoring.Prometheuses {
		return allPrometheuses
	}
	for _, place := range monitoring.Places(r.Config.Namespace) {
		if place.Kind == kind {
			return at(place)
		}
	}
	return followed{}
}

// observe makes the world of one pass, and follows optional kinds or forgets them. It also says
// whether the operator is still installed.
func (r *Reconciler) observe(w *watches, installation monitoring.Installation) (*monitoring.World, bool) {
	deployment := w.get(followed{deploymentResource, installation.Namespace, installation.Deployment})
	own := w.get(namespaced(installation.Namespace))
	if deployment == nil || deployment.DeletionTimestamp != nil || own == nil || own.DeletionTimestamp != nil {
		return nil, false
	}
	installation.UID = string(deployment.UID)
	world := &monitoring.World{
		Installation:       installation,
		Off:                r.Config.MonitoringOff,
		EnableUserWorkload: r.Config.EnableUserWorkload,
		Labels:             r.Config.MonitoringLabels,
		NamespaceLabels:    labels.Set(own.Labels),
		OpenShift:          present(w.get(namespaced(monitoring.MonitoringNamespace))),
		Console:            present(w.get(namespaced(monitoring.ConsoleNamespace))),
		Served:             map[monitoring.Kind]bool{},
		Serving:            r.Serving(),
		Scrapes:            r.Scrapes(),
		Content:            r.Content,
	}
	for _, kind := range monitoring.OptionalKinds {
		what := r.ofKind(kind)
		if !present(w.get(crdOf(kind))) {
			w.forget(what)
			continue
		}
		w.follow(what)
		world.Served[kind] = w.ready(what)
	}
	if world.TrustVersion = r.trusted(w, world.Serving.Trust); world.Serving.Authority != "" {
		world.TrustVersion = fingerprint(world.Serving.Authority)
	}
	if monitor := w.get(r.ofKind(monitoring.ServiceMonitors)); monitor != nil {
		world.MonitorLabels = monitor.Labels
	}
	for _, object := range w.list(allPrometheuses) {
		world.Prometheuses = append(world.Prometheuses, monitoring.Prometheus{
			Namespace:      object.GetNamespace(),
			Name:           object.GetName(),
			Namespaces:     selectorOf(object, "serviceMonitorNamespaceSelector"),
			Monitors:       selectorOf(object, "serviceMonitorSelector"),
			RuleNamespaces: selectorOf(object, "ruleNamespaceSelector"),
			Rules:          selectorOf(object, "ruleSelector"),
		})
	}
	return world, true
}

// trusted follows what verifies the certificate of the metrics, and is its version now.
func (r *Reconciler) trusted(w *watches, trust monitoring.Trust) string {
	what := followed{}
	switch {
	case trust.ConfigMap != "":
		what = followed{monitoring.ConfigMaps.GroupVersionResource, r.Config.Namespace, trust.ConfigMap}
	case trust.Secret != "":
		what = followed{monitoring.Secrets.GroupVersionResource, r.Config.Namespace, trust.Secret}
	}
	if what != r.trust {
		w.forget(r.trust)
		r.trust = what
	}
	if what == (followed{}) {
		return ""
	}
	w.follow(what)
	if object := w.get(what); object != nil {
		return object.ResourceVersion
	}
	return ""
}

// present says that an object is there to stay.
func present(object *metav1.PartialObjectMetadata) bool {
	return object != nil && object.DeletionTimestamp == nil
}

func selectorOf(prometheus *unstructured.Unstructured, field string) *metav1.LabelSelector {
	content, found, err := unstructured.NestedMap(prometheus.Object, "spec", field)
	if !found || err != nil {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector); err != nil {
		return nil
	}
	return selector
}
