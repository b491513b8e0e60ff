package monitoring

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selectedBy is what the state says of a ServiceMonitor where the only Prometheus selects so.
func selectedBy(world *World, selector *metav1.LabelSelector) Condition {
	world.OpenShift = false
	world.Prometheuses = []Prometheus{{Namespace: "monitoring", Name: "k8s", Namespaces: &metav1.LabelSelector{}, Monitors: selector}}
	for _, object := range world.Objects() {
		if object.Kind == ServiceMonitors {
			return world.selected(object.Content.GetLabels())
		}
	}
	return Condition{}
}

// TestLabelsThatAreToldDoSelect: who does as the state says has a ServiceMonitor that is read.
func TestLabelsThatAreToldDoSelect(t *testing.T) {
	expression := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	for name, c := range map[string]struct {
		given    map[string]string
		selector *metav1.LabelSelector
		want     string
	}{
		"a label":            {nil, &metav1.LabelSelector{MatchLabels: map[string]string{"release": "kps"}}, "release=kps"},
		"a label more":       {map[string]string{"team": "sre"}, &metav1.LabelSelector{MatchLabels: map[string]string{"release": "kps"}}, "release=kps,team=sre"},
		"another value":      {map[string]string{"release": "old"}, &metav1.LabelSelector{MatchLabels: map[string]string{"release": "kps"}}, "release=kps"},
		"beside our own":     {nil, &metav1.LabelSelector{MatchLabels: map[string]string{"release": "kps", labelName: "agentic-operator"}}, "release=kps"},
		"one of several":     {nil, expression("release", metav1.LabelSelectorOpIn, "a", "b"), "release=a"},
		"any value":          {nil, expression("prometheus", metav1.LabelSelectorOpExists), "prometheus=true"},
		"a label too much":   {map[string]string{"x": "y", "z": "1"}, expression("x", metav1.LabelSelectorOpDoesNotExist), "z=1"},
		"a value too much":   {map[string]string{"x": "y"}, expression("x", metav1.LabelSelectorOpNotIn, "y"), ""},
		"the component":      {nil, &metav1.LabelSelector{MatchLabels: map[string]string{labelComponent: "exporter"}}, labelComponent + "=exporter"},
		"our own otherwise":  {nil, &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/part-of": "kps"}}, "edit"},
		"without our own":    {nil, expression(LabelManagedBy, metav1.LabelSelectorOpDoesNotExist), "edit"},
		"our own of several": {nil, expression(labelName, metav1.LabelSelectorOpIn, "node-exporter"), "edit"},
	} {
		world := full()
		world.Labels = c.given
		told := selectedBy(world, c.selector)
		if told.Reason != "LabelsNotSelected" || !told.Missing {
			t.Errorf("%s: the state says %+v", name, told)
			continue
		}
		if c.want == "edit" {
			if !strings.HasSuffix(told.Message, "kubectl -n monitoring edit prometheus k8s") {
				t.Errorf("%s: no label fits, and the state says %s", name, told.Message)
			}
			continue
		}
		if !strings.HasSuffix(told.Message, "run: kubectl -n ambient set env deployment/agentic-operator MONITORING_LABELS="+c.want) {
			t.Errorf("%s: want the labels %q, the state says %s", name, c.want, told.Message)
			continue
		}
		set, err := labels.ConvertSelectorToLabelsMap(c.want)
		if err != nil {
			t.Fatal(err)
		}
		world.Labels = set
		if err := CheckLabels(set); err != nil {
			t.Errorf("%s: what the state says is refused: %v", name, err)
		}
		if now := selectedBy(world, c.selector); now.Reason != "Selected" {
			t.Errorf("%s: after that the state says %+v", name, now)
		}
	}
}

// TestSettingsUnderOLM go into the ConfigMap that the Deployment reads: OLM owns the Deployment.
func TestSettingsUnderOLM(t *testing.T) {
	world := full()
	world.Labels, world.Installation.OLM = nil, true
	told := selectedBy(world, &metav1.LabelSelector{MatchLabels: map[string]string{"release": "kps"}}).Message
	const want = `run: kubectl -n ambient create configmap operator-config --from-literal=MONITORING_LABELS=release=kps || ` +
		`kubectl -n ambient patch configmap operator-config --type merge -p '{"data":{"MONITORING_LABELS":"release=kps"}}'; ` +
		`kubectl -n ambient delete pods -l app.kubernetes.io/component=operator,app.kubernetes.io/name=agentic-operator`
	if !strings.HasSuffix(told, want) {
		t.Errorf("the state says %s\nwant %s", told, want)
	}
}

// TestLabelsThatOthersPut on the ServiceMonitor stay there, and the state says how to take them off.
func TestLabelsThatOthersPut(t *testing.T) {
	world := full()
	world.MonitorLabels = labels.Set{"team": "x", labelUserMonitoring: "false"}
	told := selectedBy(world, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: labelUserMonitoring, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"false"}},
	}})
	if told.Reason != "LabelsNotSelected" || !strings.HasSuffix(told.Message, "run: kubectl -n ambient label servicemonitor agentic-operator openshift.io/user-monitoring-") {
		t.Errorf("the state says %+v", told)
	}
}

// TestRulesThatNobodyLoads are told, with what has them loaded.
func TestRulesThatNobodyLoads(t *testing.T) {
	all, release := &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"release": "kps"}}
	for name, c := range map[string]struct {
		prometheus Prometheus
		reason     string
		says       string
	}{
		"loaded":             {Prometheus{Monitors: all, Rules: all, RuleNamespaces: all}, "Loaded", "loaded by Prometheus monitoring/k8s"},
		"loads none":         {Prometheus{Monitors: all, RuleNamespaces: all}, "NotLoaded", `run: kubectl -n monitoring patch prometheus k8s --type merge -p '{"spec":{"ruleSelector":{}}}'`},
		"of other labels":    {Prometheus{Monitors: all, Rules: release, RuleNamespaces: all}, "NotLoaded", "run: kubectl -n ambient set env deployment/agentic-operator MONITORING_LABELS=release=kps"},
		"of its namespace":   {Prometheus{Monitors: all, Rules: all}, "NotLoaded", "let its spec.ruleNamespaceSelector select it: kubectl -n monitoring edit prometheus k8s"},
		"reads nothing here": {Prometheus{Monitors: release, RuleNamespaces: all}, "Unknown", "part selected says why"},
	} {
		world := full()
		world.OpenShift, world.Labels = false, nil
		c.prometheus.Namespace, c.prometheus.Name, c.prometheus.Namespaces = "monitoring", "k8s", all
		world.Prometheuses = []Prometheus{c.prometheus}
		state := world.Report(world.Objects(), nil)
		found := false
		for _, told := range state.Conditions {
			if told.Part != PartLoaded {
				continue
			}
			found = true
			if told.Reason != c.reason || !strings.HasSuffix(told.Message, c.says) || told.Missing != (c.reason == "NotLoaded") {
				t.Errorf("%s: the state says %+v", name, told)
			}
		}
		if !found {
			t.Errorf("%s: the state does not say", name)
		}
	}
}
