package integration

import (
	"context"
	"fmt"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/monitoring"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// TestCase66OneServiceIsScraped: of all Services of the cluster, with those of fifty runners among them,
// in a project and beside the operator, the ServiceMonitor selects the one of the metrics, with one port;
// and that leads to the operator's pods and to no runner's.
func TestCase66OneServiceIsScraped(t *testing.T) {
	rig := newWiring(t)
	plans := rig.runnerServices(emptyProject(t, nil, nil).name)
	rig.brings(monitoring.ServiceMonitors)
	rig.start(nil)
	monitor := &monitoringv1.ServiceMonitor{}
	made := rig.appears(monitoring.ServiceMonitors, monitorName)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(made.Object, monitor, true); err != nil {
		t.Fatal(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	services := &corev1.ServiceList{}
	if err := suite.admin.List(rig.ctx, services); err != nil {
		t.Fatal(err)
	}
	if len(services.Items) < len(plans) {
		t.Fatalf("there are only %d Services", len(services.Items))
	}
	var selected []*corev1.Service
	for i := range services.Items {
		if selector.Matches(labels.Set(services.Items[i].Labels)) {
			selected = append(selected, &services.Items[i])
		}
	}
	if len(selected) != 1 || selected[0].Namespace != rig.name || selected[0].Name != monitoring.MetricsService {
		var names []string
		for _, service := range selected {
			names = append(names, service.Namespace+"/"+service.Name)
		}
		t.Fatalf("%s selects %v", selector, names)
	}
	ports := 0
	for _, port := range selected[0].Spec.Ports {
		if port.Name == monitor.Spec.Endpoints[0].Port {
			ports++
		}
	}
	if ports != 1 || len(monitor.Spec.Endpoints) != 1 {
		t.Errorf("%d ports of the Service are scraped by %d endpoints", ports, len(monitor.Spec.Endpoints))
	}
	rig.leadsTo(selected[0], plans)
	rig.shippedIsSelected(selector)
}

// runnerServices makes the Services of fifty runners as the operator makes them, but that nobody owns
// them: half in a project, half in the operator's own namespace. They go with the test.
func (w *wiringRig) runnerServices(project string) []*workload.Plan {
	w.t.Helper()
	plans := make([]*workload.Plan, 0, 50)
	for i := range cap(plans) {
		name := fmt.Sprintf("runner-%d", i)
		switch i {
		case 0, 1: // named as what is looked for
			name = "metrics"
		case 2, 3:
			name = "agentic-operator"
		}
		plans = append(plans, &workload.Plan{
			Session: &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: []string{w.name, project}[i%2], Name: name, UID: "none"}},
			Runtime: runtimes.Default("registry.example/runner"),
		})
		service := plans[i].Service()
		service.OwnerReferences = nil
		w.create(service)
		w.t.Cleanup(func() {
			if err := suite.admin.Delete(context.Background(), service); client.IgnoreNotFound(err) != nil {
				w.t.Error(err)
			}
		})
	}
	return plans
}

// leadsTo fails unless a Service leads to the operator's pod and to none of the runners'.
func (w *wiringRig) leadsTo(service *corev1.Service, plans []*workload.Plan) {
	w.t.Helper()
	selector := labels.SelectorFromSet(service.Spec.Selector)
	pod := &corev1.Pod{}
	w.get(w.pod, pod)
	if selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
		w.t.Errorf("the Service leads to pods with %s, the operator's has %v", selector, pod.Labels)
	}
	for _, plan := range plans {
		if runner := plan.Job(1).Spec.Template.Labels; selector.Matches(labels.Set(runner)) {
			w.t.Errorf("the Service leads to a runner with %v", runner)
		}
	}
}

// shippedIsSelected fails unless the Service that the manifests install is selected as the one that the
// operator makes where there is none.
func (w *wiringRig) shippedIsSelected(selector labels.Selector) {
	w.t.Helper()
	objects, err := listed("metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() != "Service" {
			continue
		}
		if object.GetName() != monitoring.MetricsService || !selector.Matches(labels.Set(object.GetLabels())) {
			w.t.Errorf("%s does not select the Service %s of the manifests with %v", selector, object.GetName(), object.GetLabels())
		}
		return
	}
	w.t.Error("the manifests have no Service for metrics")
}
