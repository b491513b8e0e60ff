package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

const (
	monitorName = "agentic-operator"
	promised    = 30 * time.Second
)

// TestCase58KindsComeAndGo: in every order, each kind on its own, without a restart and without a
// complaint.
func TestCase58KindsComeAndGo(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.start(nil)
	rig.says(monitoring.PartServiceMonitor, "NotServed")

	present := map[monitoring.Kind]bool{}
	monitor, rule, prometheus := monitoring.ServiceMonitors, monitoring.PrometheusRules, monitoring.Prometheuses
	names := map[monitoring.Kind]string{monitor: monitorName, rule: monitorName, monitoring.QuickStarts: monitoring.QuickStart, monitoring.YAMLSamples: monitoring.YAMLSample}
	everything := map[string]any{}
	toggle := func(kinds ...monitoring.Kind) {
		t.Helper()
		for _, kind := range kinds {
			if present[kind] {
				rig.takes(kind)
			} else {
				rig.brings(kind)
			}
			present[kind] = !present[kind]
		}
		began := time.Now()
		for kind := range names {
			if present[kind] {
				rig.appears(kind, names[kind])
			}
		}
		if present[prometheus] {
			rig.prometheus(rig.name, "all", everything, everything)
		}
		// Prometheuses are only looked at, so that they are seen, or no more, is in the account.
		if present[monitor] {
			rig.says(monitoring.PartSelected, map[bool]string{true: "Selected", false: "Unknown"}[present[prometheus]])
		}
		if took := time.Since(began); took > promised {
			t.Errorf("after %v it took %s until all was there", kinds, took)
		}
	}
	for _, order := range [][]monitoring.Kind{
		{monitor}, {rule}, // both are there
		{monitor}, {monitor}, {rule}, {rule},
		{rule, monitor}, {monitor, rule}, {rule, monitor}, // removed and added together
		{prometheus}, {monitor}, {monitor}, // Prometheuses were there first
		{prometheus, monitor}, {prometheus}, {prometheus}, // and now come to a ServiceMonitor and leave it
		{rule, prometheus}, {monitor, prometheus}, {monitor, prometheus},
		{prometheus, prometheus}, {prometheus, prometheus, prometheus}, {monitor, rule},
		{monitoring.QuickStarts}, {monitoring.YAMLSamples}, {monitoring.QuickStarts}, {monitoring.QuickStarts, monitor},
		{monitor, monitor, monitor}, {rule, rule},
	} {
		toggle(order...)
	}
	rig.says(monitoring.PartYAMLSample, "Kept")
	rig.rests(2 * time.Second)
	rig.ceasesToAsk(prometheus)
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained %d times, first: %s", len(lines), lines[0])
	}
}

// ceasesToAsk fails if the operator goes on to ask for objects of a kind that is not there.
func (w *wiringRig) ceasesToAsk(kind monitoring.Kind) {
	w.t.Helper()
	asked := func() int {
		w.gate.mu.Lock()
		defer w.gate.mu.Unlock()
		n := 0
		for _, c := range w.gate.calls {
			if strings.HasPrefix(c.path, "/apis/"+kind.Group+"/") && strings.Contains(c.path+"/", "/"+kind.Resource+"/") {
				n++
			}
		}
		return n
	}
	before := asked()
	time.Sleep(3 * time.Second) // the first retries of a watch that fails come sooner
	if more := asked() - before; before == 0 || more > 0 {
		w.t.Errorf("the operator asked for %s %d times while there were any, and %d times in 3 s afterwards", kind.Resource, before, more)
	}
}

// TestCase58KindsThatAreThereAtStart, and what is changed or deleted is put back; at rest nothing is
// written.
func TestCase58WhatIsWiredIsKept(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.namespace(monitoring.MonitoringNamespace)
	rig.namespace(monitoring.ConsoleNamespace)
	rig.brings(monitoring.OptionalKinds...)
	rig.label("openshift.io/cluster-monitoring", "true")
	rig.serving.Secure, rig.serving.Source = true, "ServiceCA"
	rig.serving.Port = 8443
	rig.serving.Trust = monitoring.Trust{ConfigMap: "openshift-service-ca.crt", Key: "service-ca.crt"}
	rig.trust()
	rig.start(nil)
	places := rig.wiredPlaces(monitoring.ModePlatform)
	for _, place := range places {
		rig.appears(place.Kind, place.Name)
	}
	rig.says(monitoring.PartScrapeToken, "Kept")
	before := rig.rests(2 * time.Second)
	if now := rig.rests(5 * time.Second); now != before {
		t.Errorf("the operator wrote %d times at rest", now-before)
	}
	for _, place := range places {
		objects := rig.at(place.Kind, place.Namespace)
		was := rig.appears(place.Kind, place.Name)
		if err := objects.Delete(rig.ctx, place.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		rig.appears(place.Kind, place.Name, func(o *unstructured.Unstructured) error {
			if o.GetUID() == was.GetUID() {
				return errors.New("it is the old one")
			}
			return nil
		})
		patch := []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"somebody","team":"x"},"ownerReferences":null}}`)
		if _, err := objects.Patch(rig.ctx, place.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		rig.appears(place.Kind, place.Name, func(o *unstructured.Unstructured) error {
			owned := len(o.GetOwnerReferences()) == 1 && o.GetOwnerReferences()[0].UID == rig.deployment.UID
			if o.GetLabels()["app.kubernetes.io/managed-by"] != "agentic-operator" || o.GetLabels()["team"] != "x" || owned == place.Away(rig.name) {
				return fmt.Errorf("its metadata is %v", o.Object["metadata"])
			}
			return nil
		})
	}
	rig.rests(2 * time.Second)
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained %d times, first: %s", len(lines), lines[0])
	}
	if events := rig.wiringEvents(); !slices.Contains(events, "MonitoringIncomplete") {
		t.Errorf("the Events on the Deployment are %v", events)
	}
}
