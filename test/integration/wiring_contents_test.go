package integration

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

// spoiled are fields that somebody adds to the contents of objects, or changes in them.
var spoiled = map[monitoring.Kind]string{
	monitoring.ServiceMonitors: `{"spec":{"sampleLimit":1,"jobLabel":"x","namespaceSelector":{"any":true},"selector":{"matchExpressions":[{"key":"x","operator":"Exists"}]}}}`,
	monitoring.PrometheusRules: `{"spec":{"groups":[{"name":"a","interval":"5m","rules":[{"record":"a:b","expr":"vector(2)"}]},{"name":"mine","rules":[]}]}}`,
	monitoring.NetworkPolicies: `{"spec":{"egress":[{}]}}`,
	monitoring.Services:        `{"spec":{"selector":{"x":"y"},"externalIPs":["10.1.2.3"],"publishNotReadyAddresses":true}}`,
	monitoring.ConfigMaps:      `{"data":{"mine":"x"},"binaryData":{"x":"eA=="}}`,
	monitoring.Roles:           `{"rules":[]}`,
	monitoring.QuickStarts:     `{"spec":{"conclusion":"x"}}`,
	monitoring.YAMLSamples:     `{"spec":{"snippet":true}}`,
}

// TestCase58ContentsAreKept: what somebody adds to an object is taken away again, and not only what
// was changed in it; what the API server fills in is left, and nothing is written at rest.
func TestCase58ContentsAreKept(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.namespace(monitoring.MonitoringNamespace)
	rig.namespace(monitoring.ConsoleNamespace)
	rig.brings(monitoring.OptionalKinds...)
	rig.label("openshift.io/cluster-monitoring", "true")
	rig.start(nil)
	places := rig.wiredPlaces(monitoring.ModePlatform)
	for _, place := range places {
		if _, found := spoiled[place.Kind]; found {
			rig.appears(place.Kind, place.Name)
		}
	}
	rig.rests(time.Second)
	was := map[monitoring.Place]*unstructured.Unstructured{}
	for _, place := range places {
		patch, found := spoiled[place.Kind]
		if !found {
			continue
		}
		objects := rig.at(place.Kind, place.Namespace)
		before, err := objects.Get(rig.ctx, place.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		was[place] = before
		changed, err := objects.Patch(rig.ctx, place.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
		if err != nil || changed.GetResourceVersion() == before.GetResourceVersion() {
			t.Fatalf("%s %s cannot be changed: %v", place.Kind.Kind, place.Name, err)
		}
	}
	if len(was) < 9 {
		t.Errorf("%d objects were changed, want 9", len(was))
	}
	for place, before := range was {
		rig.appears(place.Kind, place.Name, func(o *unstructured.Unstructured) error { return sameContents(before, o) })
	}
	before := rig.rests(2 * time.Second)
	if now := rig.rests(3 * time.Second); now != before {
		t.Errorf("the operator wrote %d times at rest", now-before)
	}
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained %d times, first: %s", len(lines), lines[0])
	}
}

// sameContents says what differs between two states of an object beside its metadata and status.
func sameContents(was, now *unstructured.Unstructured) error {
	a, b := was.DeepCopy(), now.DeepCopy()
	for _, o := range []*unstructured.Unstructured{a, b} {
		delete(o.Object, "metadata")
		delete(o.Object, "status")
	}
	if x, y := fmt.Sprint(a.Object), fmt.Sprint(b.Object); x != y {
		return fmt.Errorf("it is %s\nwas %s", y, x)
	}
	return nil
}

// TestCase58AnotherWriter changes an object each time that it is put back. The operator does not race
// with it, and says who it is; once that one has gone the object is put back.
func TestCase58AnotherWriter(t *testing.T) {
	rig := newWiring(t)
	fake := clocktesting.NewFakeClock(time.Now())
	rig.clock = fake
	rig.brings(monitoring.ServiceMonitors)
	rig.start(nil)
	rig.appears(monitoring.ServiceMonitors, monitorName)
	var writes atomic.Int64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			object, err := rig.placed(monitoring.ServiceMonitors, monitorName)
			if err != nil {
				continue
			}
			if _, limited, err := unstructured.NestedInt64(object.Object, "spec", "sampleLimit"); limited || err != nil {
				continue
			}
			patch := []byte(`{"spec":{"sampleLimit":1}}`)
			if _, err := rig.at(monitoring.ServiceMonitors, rig.name).Patch(rig.ctx, monitorName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "gardener"}); err == nil {
				writes.Add(1)
			}
		}
	}()
	told := rig.says(monitoring.PartServiceMonitor, "Contested")
	if !strings.Contains(told, "ServiceMonitor "+rig.name+"/agentic-operator is changed or deleted by gardener each time") {
		t.Errorf("the state says %s", told)
	}
	rig.rests(2 * time.Second)
	if n := writes.Load(); n > 8 {
		t.Errorf("the other one wrote %d times", n)
	}
	before := writes.Load()
	fake.Step(3 * time.Second)
	rig.eventually("the operator tries again", func() error {
		if writes.Load() == before {
			return errors.New("it does not")
		}
		return nil
	})
	rig.rests(2 * time.Second)
	close(done)
	<-ended
	fake.Step(5 * time.Minute)
	rig.appears(monitoring.ServiceMonitors, monitorName, func(o *unstructured.Unstructured) error {
		if _, limited, err := unstructured.NestedInt64(o.Object, "spec", "sampleLimit"); limited || err != nil {
			return fmt.Errorf("its sampleLimit is still there: %w", err)
		}
		return nil
	})
	rig.says(monitoring.PartServiceMonitor, "Contested")
	fake.Step(11 * time.Minute)
	rig.says(monitoring.PartServiceMonitor, "Kept")
}
