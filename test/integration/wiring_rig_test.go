package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/controllers/wiring"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/monitoring"
	"github.com/ambient-code/agentic-operator/internal/operator"
)

// wiringRig is an operator's Deployment with the part of the operator that wires it into the
// cluster's monitoring. The tests with one run alone: they add kinds to the cluster, and take them
// away.
type wiringRig struct {
	*project
	deployment *appsv1.Deployment
	pod        string
	dynamic    dynamic.Interface
	gate       *gate
	serving    monitoring.Serving
	scrapes    atomic.Value
	changed    chan event.GenericEvent
	clock      clock.WithDelayedExecution
	stop       func() error
	began      time.Time
}

// newWiring makes the Deployment; start starts the operator.
func newWiring(t *testing.T) *wiringRig {
	t.Helper()
	if shared.run != nil {
		t.Fatal("the shared operator runs already: a test that uses it is not parallel")
	}
	rig := &wiringRig{
		project: &project{t: t, ctx: t.Context(), name: suite.access.namespace},
		gate:    &gate{},
		serving: monitoring.Serving{Port: 8080, HealthPort: 8081},
		changed: make(chan event.GenericEvent, 1),
		clock:   clock.RealClock{},
		began:   time.Now(),
	}
	rig.scrapes.Store(monitoring.ScrapesAwaited)
	var err error
	if rig.dynamic, err = dynamic.NewForConfig(suite.config); err != nil {
		t.Fatal(err)
	}
	rig.clearCluster()
	t.Cleanup(rig.clearCluster)
	rig.ensure(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: rig.name, Name: monitoring.ReaderAccount}})
	rig.deploy()
	return rig
}

// scraped tells the operator whether its metrics are read.
func (w *wiringRig) scraped(now monitoring.Scrapes) {
	w.scrapes.Store(now)
	w.changed <- event.GenericEvent{Object: &corev1.Service{}}
}

func (w *wiringRig) ensure(object client.Object) {
	w.t.Helper()
	if err := suite.admin.Create(context.Background(), object); client.IgnoreAlreadyExists(err) != nil {
		w.t.Fatal(err)
	}
}

// deploy makes a Deployment of which the simulated nodes run one pod.
func (w *wiringRig) deploy() {
	w.t.Helper()
	one, labels := int32(1), map[string]string{"app.kubernetes.io/name": "agentic-operator", "app.kubernetes.io/component": "operator"}
	w.deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "agentic-operator"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "example.com/operator"}}},
			},
		},
	}
	w.create(w.deployment)
	deployment := w.deployment
	w.t.Cleanup(func() {
		err := suite.admin.Delete(context.Background(), deployment, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
		gone(w.t, "Deployment", func() error {
			return suite.admin.Get(context.Background(), client.ObjectKeyFromObject(deployment), &appsv1.Deployment{})
		})
	})
	w.eventually("the Deployment has a pod", func() error {
		pods := &corev1.PodList{}
		if err := suite.admin.List(w.ctx, pods, client.InNamespace(w.name), client.MatchingLabels(labels)); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp == nil {
				w.pod = pods.Items[i].Name
				return nil
			}
		}
		return errors.New("there is none")
	})
}

func gone(t *testing.T, what string, get func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); !apierrors.IsNotFound(get()); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there: %v", what, get())
		}
	}
}

// start starts the operator, or the next one after it has ended.
func (w *wiringRig) start(env map[string]string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	settings, err := config.Load([]string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}, func(name string) string {
		switch name {
		case "NAMESPACE":
			return w.name
		case "POD_NAME":
			return w.pod
		}
		return env[name]
	})
	if err != nil {
		w.t.Fatal(err)
	}
	cluster, err := suite.access.config(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	cluster.Wrap(func(next http.RoundTripper) http.RoundTripper { return w.gate.before(next) })
	mgr, _, err := operator.NewManager(settings, cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	wired := &wiring.Reconciler{
		Config: settings, Clock: w.clock, Events: mgr.GetEventRecorder("agentic-operator"),
		Serving: func() monitoring.Serving { return w.serving }, Scrapes: func() monitoring.Scrapes { return w.scrapes.Load().(monitoring.Scrapes) },
		Changed: []<-chan event.GenericEvent{w.changed},
		Content: monitoring.Content{
			Rules: map[string]any{"groups": []any{map[string]any{"name": "a", "rules": []any{map[string]any{"record": "a:b", "expr": "vector(1)"}}}}},
			QuickStart: map[string]any{"displayName": "First session", "durationMinutes": int64(5), "description": "d", "introduction": "i",
				"tasks": []any{map[string]any{"title": "t", "description": "d"}}},
			YAMLSample: map[string]any{"targetResource": map[string]any{"apiVersion": "vteam.ambient-code/v1alpha1", "kind": "AgenticSession"},
				"title": "t", "description": "d", "yaml": "y"},
			ConsoleDashboard: `{"title":"console"}`, GrafanaDashboard: `{"title":"grafana"}`,
		},
	}
	if err := wired.SetupWithManager(mgr); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	var result error
	stopped := false
	w.stop = func() error {
		if !stopped {
			cancel()
			stopped = true
			select {
			case result = <-ended:
			case <-time.After(30 * time.Second):
				result = errors.New("the operator did not end within 30 s")
			}
		}
		return result
	}
	w.t.Cleanup(func() {
		if err := w.stop(); err != nil {
			w.t.Errorf("the operator ended with an error: %v", err)
		}
	})
}

// crd reads the CRD of a kind: those of prometheus-operator from its module, those of the Console,
// which no module has, from the test data.
func (w *wiringRig) crd(kind monitoring.Kind) *unstructured.Unstructured {
	w.t.Helper()
	file := filepath.Join("testdata", "crds", kind.CRD()+".yaml")
	if kind.Group == monitoring.ServiceMonitors.Group {
		file = filepath.Join(prometheusOperator(w.t), "example", "prometheus-operator-crd", kind.Group+"_"+kind.Resource+".yaml")
	}
	objects, err := manifests(file)
	if err != nil {
		w.t.Fatal(err)
	}
	return objects[0]
}

var prometheusOperatorDir string

func prometheusOperator(t *testing.T) string {
	t.Helper()
	if prometheusOperatorDir == "" {
		out, err := exec.Command("go", "mod", "download", "-json", "github.com/prometheus-operator/prometheus-operator@v0.85.0").Output()
		if err != nil {
			t.Fatalf("finding the CRDs of prometheus-operator: %v", err)
		}
		var module struct{ Dir string }
		if err := json.Unmarshal(out, &module); err != nil {
			t.Fatal(err)
		}
		prometheusOperatorDir = module.Dir
	}
	return prometheusOperatorDir
}

// brings installs the CRDs of kinds, takes removes them.
func (w *wiringRig) brings(kinds ...monitoring.Kind) {
	w.t.Helper()
	for _, kind := range kinds {
		if err := applyObject(w.ctx, w.crd(kind)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *wiringRig) takes(kinds ...monitoring.Kind) {
	w.t.Helper()
	for _, kind := range kinds {
		crds := w.dynamic.Resource(crdResource)
		if err := crds.Delete(context.Background(), kind.CRD(), metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
	}
	for _, kind := range kinds {
		gone(w.t, "CRD "+kind.CRD(), func() error {
			_, err := w.dynamic.Resource(crdResource).Get(context.Background(), kind.CRD(), metav1.GetOptions{})
			return err
		})
	}
}

// clearCluster makes the cluster one without monitoring.
func (w *wiringRig) clearCluster() {
	w.takes(monitoring.OptionalKinds...)
	for _, name := range []string{monitoring.MonitoringNamespace, monitoring.ConsoleNamespace} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := suite.admin.Delete(context.Background(), namespace); client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
		gone(w.t, "namespace "+name, func() error { return suite.admin.Get(context.Background(), client.ObjectKey{Name: name}, namespace) })
	}
	w.label("openshift.io/cluster-monitoring", "")
	w.label("openshift.io/user-monitoring", "")
}

func (w *wiringRig) namespace(name string) {
	w.t.Helper()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// label labels the operator's namespace, also when the test is over; empty takes the label off.
func (w *wiringRig) label(key, value string) {
	w.t.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, key, text)
	if err := suite.admin.Patch(context.Background(), namespace, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wiringRig) at(kind monitoring.Kind, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return w.dynamic.Resource(kind.GroupVersionResource)
	}
	return w.dynamic.Resource(kind.GroupVersionResource).Namespace(namespace)
}

// placed is an object of the wiring by its kind.
func (w *wiringRig) placed(kind monitoring.Kind, name string) (*unstructured.Unstructured, error) {
	for _, place := range monitoring.Places(w.name) {
		if place.Kind == kind && place.Name == name {
			object, err := w.at(kind, place.Namespace).Get(w.ctx, name, metav1.GetOptions{})
			if err == nil || !apierrors.IsNotFound(err) {
				return object, err
			}
		}
	}
	return nil, apierrors.NewNotFound(kind.GroupResource(), name)
}

// appears waits for an object of the wiring, no longer than is promised, and returns it.
func (w *wiringRig) appears(kind monitoring.Kind, name string, is ...func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	w.t.Helper()
	var found *unstructured.Unstructured
	w.eventually(kind.Kind+" "+name+" is there", func() error {
		object, err := w.placed(kind, name)
		if err != nil {
			return err
		}
		found = object
		for _, check := range is {
			if err := check(object); err != nil {
				return err
			}
		}
		return nil
	})
	return found
}

func (w *wiringRig) vanishes(kind monitoring.Kind, name string) {
	w.t.Helper()
	w.eventually(kind.Kind+" "+name+" is gone", func() error {
		object, err := w.placed(kind, name)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("it is there: %v", object.Object["metadata"])
	})
}

// state is what the operator tells of the wiring.
func (w *wiringRig) state() (monitoring.State, error) {
	state := monitoring.State{}
	object, err := w.placed(monitoring.ConfigMaps, monitoring.StateConfigMap)
	if err != nil {
		return state, err
	}
	text, _, err := unstructured.NestedString(object.Object, "data", "status.yaml")
	if err != nil {
		return state, err
	}
	return state, yaml.Unmarshal([]byte(text), &state)
}

// says waits until the state has a condition with this reason, and returns its message.
func (w *wiringRig) says(part monitoring.Part, reason string) string {
	w.t.Helper()
	var message string
	w.eventually(fmt.Sprintf("the state says %s of %s", reason, part), func() error {
		state, err := w.state()
		if err != nil {
			return err
		}
		for _, c := range state.Conditions {
			if c.Part == part {
				if c.Reason == reason {
					message = c.Message
					return nil
				}
				return fmt.Errorf("it says %+v", c)
			}
		}
		return fmt.Errorf("it says nothing of it: %+v", state)
	})
	return message
}

// rests waits until the operator has not written for a while.
func (w *wiringRig) rests(quiet time.Duration) int {
	w.t.Helper()
	writes := func() int {
		w.gate.mu.Lock()
		defer w.gate.mu.Unlock()
		n := 0
		for _, c := range w.gate.calls {
			if c.write() {
				n++
			}
		}
		return n
	}
	last, since := writes(), time.Now()
	for deadline := time.Now().Add(patience); time.Since(since) < quiet; time.Sleep(50 * time.Millisecond) {
		if now := writes(); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			w.t.Fatal("the operator does not cease to write")
		}
	}
	return last
}

// complaints lists the lines of the log from a place on that tell of an error.
func complaints(from int) []string {
	suite.logs.mu.Lock()
	defer suite.logs.mu.Unlock()
	var found []string
	for _, line := range suite.logs.lines[min(from, len(suite.logs.lines)):] {
		if strings.Contains(line, `"level":"error"`) || strings.Contains(line, "A watch fails") || strings.Contains(line, "ERROR") {
			found = append(found, line)
		}
	}
	return found
}

func logged() int {
	suite.logs.mu.Lock()
	defer suite.logs.mu.Unlock()
	return len(suite.logs.lines)
}

// trust makes the ConfigMap that OpenShift puts into every namespace.
func (w *wiringRig) trust() {
	w.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "openshift-service-ca.crt"}, Data: map[string]string{"service-ca.crt": "x"}}
	w.create(object)
	w.t.Cleanup(func() {
		if err := suite.admin.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	})
}

// wiredPlaces are the objects that are made where the cluster has everything.
func (w *wiringRig) wiredPlaces(mode monitoring.Mode) []monitoring.Place {
	var places []monitoring.Place
	for _, place := range monitoring.Places(w.name) {
		platform := place.Kind == monitoring.Roles || place.Kind == monitoring.RoleBindings
		grafana := place.Name == monitoring.DashboardObject && place.Namespace == w.name
		if platform && mode != monitoring.ModePlatform || grafana && mode != monitoring.ModeKubernetes {
			continue
		}
		places = append(places, place)
	}
	return places
}

// wiringEvents are the reasons of the Events on the operator's Deployment about monitoring.
func (w *wiringRig) wiringEvents() []string {
	w.t.Helper()
	events := &corev1.EventList{}
	if err := suite.admin.List(w.ctx, events, client.InNamespace(w.name)); err != nil {
		w.t.Fatal(err)
	}
	var reasons []string
	for i := range events.Items {
		if e := &events.Items[i]; e.InvolvedObject.UID == w.deployment.UID && strings.HasPrefix(e.Reason, "Monitoring") {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}
