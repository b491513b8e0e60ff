package operator

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/monitoring"
	"github.com/ambient-code/agentic-operator/test/policy"
)

// shipped reads an object of config/, by its kind.
func shipped[T any](t *testing.T, file, kind string) *T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", file))
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var document runtime.RawExtension
		if err := decoder.Decode(&document); err != nil {
			if errors.Is(err, io.EOF) {
				t.Fatalf("config/%s has no %s", file, kind)
			}
			t.Fatal(err)
		}
		var object struct{ Kind string }
		if err := yaml.Unmarshal(document.Raw, &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind == kind {
			found := new(T)
			if err := yaml.UnmarshalStrict(document.Raw, found); err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
}

// installed is the operator as the manifests install it, and the policy that it makes for itself.
func installed(t *testing.T, openShift bool) (*corev1.PodTemplateSpec, *networkingv1.NetworkPolicy) {
	t.Helper()
	deployment := shipped[appsv1.Deployment](t, "manager/manager.yaml", "Deployment")
	pod := &deployment.Spec.Template
	settings, err := config.Load(pod.Spec.Containers[0].Args, func(name string) string {
		return map[string]string{"NAMESPACE": "operators"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := &Endpoint{}
	endpoint.options(settings)
	world := &monitoring.World{
		Installation: monitoring.Installation{Namespace: "operators", Deployment: deployment.Name, UID: "uid", PodLabels: deployment.Spec.Selector.MatchLabels},
		Serving:      served(settings, endpoint.Certificates),
		OpenShift:    openShift,
	}
	for _, object := range world.Objects() {
		if object.Kind == monitoring.NetworkPolicies {
			made := &networkingv1.NetworkPolicy{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Content.Object, made, true); err != nil {
				t.Fatal(err)
			}
			return pod, made
		}
	}
	t.Fatal("the operator makes no NetworkPolicy")
	return nil, nil
}

// TestCase66ThePolicyLetsTheMonitoringIn: of the pods that the manifests install, on the ports on which
// they serve, from the namespaces as OpenShift labels them; and it is about no other pods.
func TestCase66ThePolicyLetsTheMonitoringIn(t *testing.T) {
	group := func(name string) map[string]string {
		return map[string]string{"network.openshift.io/policy-group": name, "openshift.io/cluster-monitoring": "true"}
	}
	callers := map[string]struct {
		labels map[string]string
		// reads says that it may read metrics on OpenShift. Elsewhere all may ask.
		reads bool
	}{
		"openshift-monitoring":               {group("monitoring"), true},
		"openshift-user-workload-monitoring": {group("monitoring"), true},
		"openshift-ingress":                  {group("ingress"), false},
		"operators":                          {nil, false},
		"project":                            {map[string]string{v1alpha1.LabelManaged: "true"}, false},
	}
	for _, openShift := range []bool{true, false} {
		pod, made := installed(t, openShift)
		if guards, err := policy.Guards(made, pod.Labels); !guards || err != nil {
			t.Errorf("the policy is not about the operator's pods with the labels %v: %v", pod.Labels, err)
		}
		for _, other := range []map[string]string{nil, {v1alpha1.LabelApp: v1alpha1.AppRunner}, {"app.kubernetes.io/name": "agentic-operator"},
			{"app.kubernetes.io/name": "agentic-operator", "app.kubernetes.io/component": "scorecard"}} {
			if guards, err := policy.Guards(made, other); guards || err != nil {
				t.Errorf("the policy is about pods with the labels %v: %v", other, err)
			}
		}
		container := &pod.Spec.Containers[0]
		for namespace, c := range callers {
			from := policy.Caller{Namespace: namespace, NamespaceLabels: c.labels}
			for port, want := range map[string]bool{"metrics": c.reads || !openShift, "health": true} {
				if got, err := policy.Admits(made, from, container, numbered(t, container, port)); got != want || err != nil {
					t.Errorf("OpenShift %t: namespace %s reaches port %s: %t, want %t, %v", openShift, namespace, port, got, want, err)
				}
			}
			if got, err := policy.Admits(made, from, container, 6060); got || err != nil {
				t.Errorf("OpenShift %t: namespace %s reaches a port on which nothing is to be served: %v", openShift, namespace, err)
			}
		}
	}
}

// TestTheServiceLeadsToWhereMetricsAreServed: the Service that is installed leads to a port that the
// Deployment names, and that is the one of its flags.
func TestTheServiceLeadsToWhereMetricsAreServed(t *testing.T) {
	service := shipped[corev1.Service](t, "metrics/service.yaml", "Service")
	deployment := shipped[appsv1.Deployment](t, "manager/manager.yaml", "Deployment")
	container := &deployment.Spec.Template.Spec.Containers[0]
	settings, err := config.Load(container.Args, func(name string) string { return map[string]string{"NAMESPACE": "operators"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	now := served(settings, nil)
	if led := numbered(t, container, service.Spec.Ports[0].TargetPort.StrVal); led != now.Port || service.Spec.Ports[0].Port != now.Port {
		t.Errorf("the Service leads to %d, metrics are served on %d", led, now.Port)
	}
	if health := numbered(t, container, "health"); health != now.HealthPort {
		t.Errorf("the probes ask %d, health is served on %d", health, now.HealthPort)
	}
	for key, value := range service.Spec.Selector {
		if deployment.Spec.Template.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, the pods have %v", key, value, deployment.Spec.Template.Labels)
		}
	}
}

// numbered is a port of a container by its name.
func numbered(t *testing.T, container *corev1.Container, name string) int32 {
	t.Helper()
	for _, port := range container.Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	t.Fatalf("the container has no port %s", name)
	return 0
}
