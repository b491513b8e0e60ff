package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
	"github.com/ambient-code/agentic-operator/test/policy"
)

// TestCase58NamespacesComeAndGo: those by which OpenShift's monitoring and its Console are known appear
// under a running operator, are marked for deletion and go, each on its own. What is wired follows
// within the time that is promised, also while a namespace does not come to its end.
func TestCase58NamespacesComeAndGo(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.brings(monitoring.ServiceMonitors, monitoring.PrometheusRules)
	rig.start(nil)
	present := map[string]bool{}
	follows := func(what string) {
		t.Helper()
		rig.within(promised, "what is wired follows when "+what, func() error {
			return rig.asIn(present[monitoring.MonitoringNamespace], present[monitoring.ConsoleNamespace])
		})
	}
	appears := func(name string) {
		t.Helper()
		rig.namespace(name)
		present[name] = true
		follows("namespace " + name + " appears")
	}
	goes := func(name string) {
		t.Helper()
		letGo := rig.holds(name)
		rig.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		present[name] = false
		follows("namespace " + name + " is marked for deletion")
		letGo()
		gone(t, "namespace "+name, func() error {
			return suite.admin.Get(rig.ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		})
		follows("namespace " + name + " is gone")
	}
	follows("there is none of them")
	openShift, console := monitoring.MonitoringNamespace, monitoring.ConsoleNamespace
	appears(openShift)
	appears(console)
	goes(openShift)
	appears(openShift)
	goes(console)
	goes(openShift)
	appears(console)
	appears(openShift)
	goes(console)
	appears(console)
	rig.rests(2 * time.Second)
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained %d times, first: %s", len(lines), lines[0])
	}
}

// holds has a namespace that is deleted stay, until the returned function is called or the test ends.
func (w *wiringRig) holds(namespace string) (letGo func()) {
	w.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "held", Finalizers: []string{"example.com/held"}}}
	w.create(object)
	letGo = func() {
		w.t.Helper()
		err := suite.admin.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		if client.IgnoreNotFound(err) != nil {
			w.t.Errorf("letting go of namespace %s: %v", namespace, err)
		}
	}
	w.t.Cleanup(letGo)
	return letGo
}

// asIn complains unless everything is wired as it is to be in a cluster with OpenShift's monitoring, and
// with a place for the Console's dashboards.
func (w *wiringRig) asIn(openShift, console bool) error {
	state, err := w.state()
	if err != nil {
		return err
	}
	mode := map[bool]monitoring.Mode{true: monitoring.ModeUserWorkload, false: monitoring.ModeKubernetes}[openShift]
	if state.Mode != mode {
		return fmt.Errorf("the state says that the mode is %s", state.Mode)
	}
	rule, err := w.placed(monitoring.PrometheusRules, monitorName)
	if err != nil {
		return err
	}
	if scope := rule.GetLabels()["openshift.io/prometheus-rule-evaluation-scope"]; (scope == "leaf-prometheus") != openShift {
		return fmt.Errorf("the PrometheusRule is to be evaluated by %q", scope)
	}
	return errors.Join(w.admitsAll(!openShift), w.dashboardIn(w.name, !openShift), w.dashboardIn(monitoring.ConsoleNamespace, console))
}

// admitsAll complains unless the policy of the metrics lets all of the cluster in, or does not.
func (w *wiringRig) admitsAll(want bool) error {
	made := &networkingv1.NetworkPolicy{}
	if err := suite.admin.Get(w.ctx, w.key("agentic-operator-metrics"), made); err != nil {
		return err
	}
	got, err := policy.Admits(made, policy.Caller{Namespace: "any"}, &corev1.Container{}, w.serving.Port)
	if err == nil && got != want {
		err = fmt.Errorf("any namespace is let in to the metrics: %t", got)
	}
	return err
}

// dashboardIn complains unless a namespace has the dashboard that is to be there, or has none.
func (w *wiringRig) dashboardIn(namespace string, want bool) error {
	object, err := w.at(monitoring.ConfigMaps, namespace).Get(w.ctx, monitoring.DashboardObject, metav1.GetOptions{})
	switch got := err == nil && object.GetDeletionTimestamp() == nil; {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case got != want:
		return fmt.Errorf("the dashboard is in namespace %s: %t", namespace, got)
	}
	return nil
}

// TestCase58KindsComeLate: the watches of an operator that has long been at rest have been cut, and the
// API server may have forgotten where they were. Kinds that come after that are noticed as soon as those
// that come at once; so is what happens to their objects.
func TestCase58KindsComeLate(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.namespace(monitoring.MonitoringNamespace)
	rig.namespace(monitoring.ConsoleNamespace)
	rig.secure()
	for name, gone := range map[string]forgotten{
		"resumed":               {},
		"expired by an event":   {answer: goneEvent},
		"expired by the answer": {answer: goneAnswer},
	} {
		// Watches that have just failed wait longer and longer between attempts. Those that were at rest
		// do not, and so each time it is another operator.
		rig.start(nil)
		rig.says(monitoring.PartServiceMonitor, "NotServed")
		rig.watchesAreCut(gone, func() { rig.brings(monitoring.OptionalKinds...) })
		began := time.Now()
		rig.prometheus(rig.name, "all", map[string]any{}, map[string]any{})
		rig.wiredSince(name+", kinds came", began, nil)

		old := map[types.UID]bool{}
		rig.watchesAreCut(gone, func() { old = rig.removesOptional() })
		rig.wiredSince(name+", objects were removed", time.Now(), old)
		rig.gate.lines.restore()
		if err := rig.stop(); err != nil {
			t.Fatal(err)
		}
		rig.takes(monitoring.OptionalKinds...)
	}
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained %d times, first: %s", len(lines), lines[0])
	}
}

// watchesAreCut waits until the operator rests, cuts all its watches, has something happen while none
// gets through, and lets them through again, to an API server that has forgotten something.
func (w *wiringRig) watchesAreCut(gone forgotten, meanwhile func()) {
	w.t.Helper()
	w.rests(2 * time.Second)
	lines := &w.gate.lines
	if cut := lines.cut(); cut < len(monitoring.OptionalKinds) {
		w.t.Errorf("only %d watches were open", cut)
	}
	meanwhile()
	gone.until = w.now()
	lines.mend(gone)
}

// removesOptional removes all objects of optional kinds, and returns which those were.
func (w *wiringRig) removesOptional() map[types.UID]bool {
	w.t.Helper()
	old := map[types.UID]bool{}
	for _, place := range w.wiredPlaces(monitoring.ModeUserWorkload) {
		if !place.Kind.Optional {
			continue
		}
		object, err := w.placed(place.Kind, place.Name)
		if err != nil {
			w.t.Fatal(err)
		}
		old[object.GetUID()] = true
		if err := w.at(place.Kind, place.Namespace).Delete(w.ctx, place.Name, metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	return old
}

// wiredSince waits until everything is there, and a Prometheus is known that reads it, and fails if that
// took longer than is promised. What is old does not count.
func (w *wiringRig) wiredSince(after string, began time.Time, old map[types.UID]bool) {
	w.t.Helper()
	for _, place := range w.wiredPlaces(monitoring.ModeUserWorkload) {
		w.appears(place.Kind, place.Name, func(o *unstructured.Unstructured) error {
			if old[o.GetUID()] {
				return errors.New("it is the old one")
			}
			return nil
		})
	}
	w.says(monitoring.PartSelected, "Selected")
	if took := time.Since(began); took > promised {
		w.t.Errorf("%s: it took %s until all was there", after, took)
	}
}
