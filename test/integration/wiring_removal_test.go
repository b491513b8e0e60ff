package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

// everythingWired is a cluster that has all that there is to wire.
func everythingWired(t *testing.T, env map[string]string) *wiringRig {
	t.Helper()
	rig := newWiring(t)
	rig.namespace(monitoring.MonitoringNamespace)
	rig.namespace(monitoring.ConsoleNamespace)
	rig.brings(monitoring.OptionalKinds...)
	rig.label("openshift.io/cluster-monitoring", "true")
	rig.secure()
	rig.start(env)
	for _, place := range rig.wiredPlaces(monitoring.ModePlatform) {
		rig.appears(place.Kind, place.Name)
	}
	return rig
}

// left lists what is left of the wiring, there or elsewhere.
func (w *wiringRig) left(away bool) []string {
	w.t.Helper()
	var names []string
	for _, place := range monitoring.Places(w.name) {
		if place.Away(w.name) != away {
			continue
		}
		_, err := w.at(place.Kind, place.Namespace).Get(w.ctx, place.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			names = append(names, place.Kind.Kind+" "+place.Name)
		case !apierrors.IsNotFound(err):
			w.t.Fatal(err)
		}
	}
	return names
}

func (w *wiringRig) nothingLeft() error {
	if left := append(w.left(true), w.left(false)...); len(left) > 0 {
		return fmt.Errorf("there are %v", left)
	}
	return nil
}

// TestCase66OnAndOff: the switch leaves nothing behind, takes nothing of others, and works both ways.
func TestCase66OnAndOff(t *testing.T) {
	rig := everythingWired(t, nil)
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	if left := rig.left(true); len(left) != 3 {
		t.Errorf("a restart left %v of what is elsewhere", left)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: monitoring.ConsoleNamespace, Name: "dashboard-of-others",
		Labels: map[string]string{monitoring.LabelManagedBy: monitoring.ManagedBy}}}
	rig.create(theirs)
	rig.start(map[string]string{"MONITORING": "off"})
	rig.eventually("nothing is left", rig.nothingLeft)
	if err := suite.admin.Get(rig.ctx, client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("what is not the operator's was removed: %v", err)
	}
	rig.rests(2 * time.Second)
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	rig.start(nil)
	for _, place := range rig.wiredPlaces(monitoring.ModePlatform) {
		rig.appears(place.Kind, place.Name)
	}
}

// TestUninstall: who deletes the Deployment finds nothing left, neither what it owned nor what lies
// elsewhere; an operator that ends afterwards brings nothing back.
func TestUninstall(t *testing.T) {
	rig := everythingWired(t, nil)
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		rig.delete(rig.deployment, client.PropagationPolicy(propagation))
		rig.eventually("nothing is left after a deletion in the "+string(propagation), rig.nothingLeft)
		if err := rig.stop(); err != nil {
			t.Fatal(err)
		}
		if left := rig.left(true); len(left) > 0 {
			t.Errorf("there are %v again", left)
		}
		if propagation == metav1.DeletePropagationBackground {
			gone(t, "the Deployment", func() error {
				return suite.admin.Get(rig.ctx, client.ObjectKeyFromObject(rig.deployment), rig.deployment)
			})
			rig.deploy()
			rig.start(nil)
			rig.says(monitoring.PartScrapeToken, "Kept")
			rig.appears(monitoring.QuickStarts, monitoring.QuickStart)
		}
	}
}

// TestUninstallAtTheLastMoment: an operator whose end comes before it has heard of the deletion of
// its Deployment cleans up on the way out.
func TestUninstallAtTheLastMoment(t *testing.T) {
	rig := everythingWired(t, nil)
	var once sync.Once
	rig.gate.hookInto(t, rig.name, func(request *http.Request) *http.Response {
		if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/deployments/agentic-operator") {
			once.Do(func() {
				if err := suite.admin.Delete(context.Background(), rig.deployment.DeepCopy()); err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	})
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	if left := rig.left(true); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
}

// TestOthersObjectsAreLeftAlone: what has the name of ours and is somebody's is not touched, and the
// state says so.
func TestOthersObjectsAreLeftAlone(t *testing.T) {
	rig := newWiring(t)
	rig.brings(monitoring.PrometheusRules, monitoring.ServiceMonitors)
	theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"groups": []any{}}}}
	theirs.SetAPIVersion(monitoring.PrometheusRules.APIVersion())
	theirs.SetKind(monitoring.PrometheusRules.Kind)
	theirs.SetNamespace(rig.name)
	theirs.SetName(monitorName)
	rig.eventually("a rule of somebody is there", func() error {
		_, err := rig.at(monitoring.PrometheusRules, rig.name).Create(rig.ctx, theirs, metav1.CreateOptions{})
		return err
	})
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: rig.name, Name: monitoring.MetricsService},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 8443}}}}
	rig.create(service)
	t.Cleanup(func() {
		if err := suite.admin.Delete(context.Background(), service); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	rig.start(nil)
	rig.says(monitoring.PartPrometheusRule, "NameTaken")
	rig.says(monitoring.PartServiceMonitor, "Kept")
	rig.rests(time.Second)
	rule := rig.appears(monitoring.PrometheusRules, monitorName)
	if groups, _, err := unstructured.NestedSlice(rule.Object, "spec", "groups"); err != nil || len(groups) > 0 || len(rule.GetOwnerReferences()) > 0 {
		t.Errorf("somebody's rule became %v", rule.Object)
	}
	if installed := rig.appears(monitoring.Services, monitoring.MetricsService); len(installed.GetOwnerReferences()) > 0 {
		t.Error("the Service that was installed became the operator's")
	}
	if err := rig.at(monitoring.PrometheusRules, rig.name).Delete(rig.ctx, monitorName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rig.says(monitoring.PartPrometheusRule, "Kept")
}

// TestTwoInstallations: objects that a cluster has once belong to the first; when it is gone with its
// namespace, the other takes over.
func TestTwoInstallations(t *testing.T) {
	rig := newWiring(t)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-operator-"}}
	rig.create(other)
	rig.brings(monitoring.QuickStarts)
	rig.start(nil)
	started := rig.appears(monitoring.QuickStarts, monitoring.QuickStart)
	// As if another operator had made it.
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, monitoring.AnnotationInstallation, other.Name+"/agentic-operator")
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	rig.patch(started, patch)
	rig.start(nil)
	if told := rig.says(monitoring.PartQuickStart, "KeptByAnother"); !strings.Contains(told, other.Name) {
		t.Errorf("the state does not say whose it is: %s", told)
	}
	rig.removeNamespace(other.Name)
	// The next event shows that nobody keeps it any more.
	rig.patch(started, `{"metadata":{"labels":{"touched":"yes"}}}`)
	rig.says(monitoring.PartQuickStart, "Kept")
	rig.appears(monitoring.QuickStarts, monitoring.QuickStart, func(o *unstructured.Unstructured) error {
		if by := o.GetAnnotations()[monitoring.AnnotationInstallation]; by != rig.name+"/agentic-operator" {
			return errors.New("it is noted as of " + by)
		}
		return nil
	})
}
