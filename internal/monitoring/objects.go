package monitoring

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What objects of the wiring carry.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "agentic-operator"
	labelName      = "app.kubernetes.io/name"
	labelComponent = "app.kubernetes.io/component"
	// AnnotationInstallation names the operator that made an object outside of its namespace, as
	// namespace/Deployment.
	AnnotationInstallation = "ambient-code.io/installation"
	// AnnotationRefreshed is when a token was made: on its Secret, and on the ServiceMonitor, for
	// OpenShift's stack reads the Secret anew only when the ServiceMonitor changes. The same goes
	// for the authority of the certificate.
	AnnotationRefreshed = "ambient-code.io/token-refreshed-at"
	annotationTrust     = "ambient-code.io/serving-ca-version"
)

// Object is an object of the wiring as it should be.
type Object struct {
	Place
	Content *unstructured.Unstructured
}

// Objects are what is to be there, in the order in which it is to be made. The token and the state
// are not among them: what they hold is not known from the World.
func (w *World) Objects() []Object {
	if w.Off {
		return nil
	}
	var objects []Object
	for _, place := range Places(w.Installation.Namespace) {
		if body := w.body(place); body != nil {
			objects = append(objects, Object{place, w.Complete(place, body)})
		}
	}
	return objects
}

// body is the content of an object, without what all have in common; nil when it is not wanted.
func (w *World) body(place Place) map[string]any {
	if place.Kind.Optional && !w.Served[place.Kind] {
		return nil
	}
	switch place.Kind {
	case Services:
		return w.service()
	case NetworkPolicies:
		return w.networkPolicy()
	case Roles:
		return w.platformRole()
	case RoleBindings:
		return w.platformRoleBinding()
	case ServiceMonitors:
		return w.serviceMonitor()
	case PrometheusRules:
		return w.prometheusRule()
	case ConfigMaps:
		return w.dashboard(place)
	case QuickStarts:
		return spec(w.Content.QuickStart)
	case YAMLSamples:
		return spec(w.Content.YAMLSample)
	}
	return nil
}

func spec(content map[string]any) map[string]any {
	if content == nil {
		return nil
	}
	return map[string]any{"spec": content}
}

// Complete makes an object of its content: it adds its name, what tells that it is ours and, in the
// operator's namespace, its owner. Objects elsewhere cannot have one: they say whose they are in an
// annotation.
func (w *World) Complete(place Place, body map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: maps.Clone(body)}
	metadata, found := body["metadata"].(map[string]any)
	if found {
		object.Object["metadata"] = maps.Clone(metadata)
	}
	object.SetAPIVersion(place.Kind.APIVersion())
	object.SetKind(place.Kind.Kind)
	object.SetNamespace(place.Namespace)
	object.SetName(place.Name)
	object.SetLabels(merged(map[string]string{labelComponent: "monitoring"}, object.GetLabels(), own()))
	if place.Away(w.Installation.Namespace) {
		object.SetAnnotations(merged(object.GetAnnotations(), map[string]string{AnnotationInstallation: w.Installation.Name()}))
		return object
	}
	object.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"name": w.Installation.Deployment, "uid": w.Installation.UID, "controller": true,
	}}
	return object
}

// merged prefers the later.
func merged(sets ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}

// values makes a map of strings that can stand in an unstructured object.
func values(set map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range set {
		all[key] = value
	}
	return all
}

// dashboard is drawn by OpenShift's Console from a namespace of its own, elsewhere by a Grafana that
// collects ConfigMaps by their label.
func (w *World) dashboard(place Place) map[string]any {
	var label, json string
	labels := map[string]any{}
	switch {
	case place.Name != DashboardObject:
		return nil
	case place.Namespace == ConsoleNamespace:
		if !w.Console {
			return nil
		}
		json = w.Content.ConsoleDashboard
		labels["console.openshift.io/dashboard"] = "true"
		labels["console.openshift.io/odc-dashboard"] = "true"
		label = "agentic-operator.json"
	default:
		if w.Mode() != ModeKubernetes || !w.Served[ServiceMonitors] {
			return nil
		}
		json = w.Content.GrafanaDashboard
		labels["grafana_dashboard"] = "1"
		label = "agentic-operator.json"
	}
	if json == "" {
		return nil
	}
	return map[string]any{
		"metadata": map[string]any{"labels": labels},
		"data":     map[string]any{label: json},
	}
}
