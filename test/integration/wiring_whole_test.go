package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

// TestTheWholeOperatorIsWired: the real rules, dashboards and certificate, as the operator joins
// them, are taken by the real kinds.
func TestTheWholeOperatorIsWired(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.namespace(monitoring.MonitoringNamespace)
	rig.namespace(monitoring.ConsoleNamespace)
	rig.brings(monitoring.OptionalKinds...)
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	run := alone(t, map[string]string{"POD_NAME": rig.pod}, "--metrics-secure", "--metrics-bind-address="+address)
	for _, part := range []monitoring.Part{
		monitoring.PartServiceMonitor, monitoring.PartScrapeToken, monitoring.PartPrometheusRule, monitoring.PartDashboard,
		monitoring.PartQuickStart, monitoring.PartYAMLSample, monitoring.PartNetworkPolicy,
	} {
		rig.says(part, "Kept")
		rig.eventually("the metric says so of "+string(part), func() error {
			families, err := run.registry.Gather()
			if err != nil {
				return err
			}
			for _, family := range families {
				for _, series := range family.GetMetric() {
					if family.GetName() == "ambient_monitoring_wired" && series.GetLabel()[0].GetValue() == string(part) && series.GetGauge().GetValue() == 1 {
						return nil
					}
				}
			}
			return errors.New("it does not")
		})
	}
	rig.appears(monitoring.ServiceMonitors, monitorName, func(o *unstructured.Unstructured) error {
		endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "endpoints")
		if err != nil {
			return err
		}
		ca, _, err := unstructured.NestedString(endpoints[0].(map[string]any), "tlsConfig", "ca", "secret", "name")
		if err != nil || ca != "agentic-operator-metrics-own-cert" {
			return fmt.Errorf("its authority is %q, %w", ca, err)
		}
		return nil
	})
	rig.rests(2 * time.Second)
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained %d times, first: %s", len(lines), lines[0])
	}
}
