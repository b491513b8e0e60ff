package monitoring

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const labelRuleScope = "openshift.io/prometheus-rule-evaluation-scope"

// own marks every object of the wiring.
func own() map[string]string {
	return map[string]string{
		LabelManagedBy:              ManagedBy,
		labelName:                   "agentic-operator",
		"app.kubernetes.io/part-of": "ambient-code",
	}
}

// CheckLabels refuses labels for ServiceMonitor and PrometheusRule that would have no effect, as the
// operator gives these keys values of its own: a Prometheus that selects by one of them would never
// find the objects, and nobody would know why. The error names the key and what to do.
func CheckLabels(set map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		switch value, reserved := own()[key]; {
		case reserved && value != set[key]:
			return fmt.Errorf("label %s is always %s on what the operator makes; leave it out and let the Prometheus select by another label, such as release=prometheus", key, value)
		case key == labelUserMonitoring, key == labelRuleScope:
			return fmt.Errorf("label %s is set by the operator where OpenShift's monitoring needs it; leave it out", key)
		}
	}
	return nil
}

// fitting makes the labels that have to be given for a selector to match, beginning with those that
// are given; false where none would do, as the operator's own labels or those that OpenShift needs
// stand against it.
func (w *World) fitting(selector *metav1.LabelSelector, made labels.Set) (labels.Set, bool) {
	wanted := labels.Set(merged(w.Labels, selector.MatchLabels))
	rest := labels.Set{}
	for key, value := range made {
		if _, given := w.Labels[key]; !given {
			rest[key] = value
		}
	}
	for _, e := range selector.MatchExpressions {
		is, has := merged(rest, wanted)[e.Key]
		switch {
		case e.Operator == metav1.LabelSelectorOpIn && !slices.Contains(e.Values, is) && len(e.Values) > 0:
			wanted[e.Key] = e.Values[0]
		case e.Operator == metav1.LabelSelectorOpExists && !has:
			wanted[e.Key] = "true"
		case e.Operator == metav1.LabelSelectorOpDoesNotExist, e.Operator == metav1.LabelSelectorOpNotIn && slices.Contains(e.Values, is):
			delete(wanted, e.Key)
		}
	}
	for key, value := range wanted {
		if rest[key] == value {
			delete(wanted, key) // it is there without being given
		}
	}
	return wanted, CheckLabels(wanted) == nil && matches(selector, merged(rest, wanted))
}

// setting says how to give the operator another setting. Where OLM installed it, a Deployment that
// was changed by hand is put back with the next upgrade, so there it goes into the ConfigMap that
// the Deployment reads.
func (w *World) setting(name, value string) string {
	i, tool := w.Installation, w.tool()
	if !i.OLM {
		return fmt.Sprintf("%s -n %s set env deployment/%s %s=%s", tool, i.Namespace, i.Deployment, name, value)
	}
	return fmt.Sprintf("%[1]s -n %[2]s create configmap operator-config --from-literal=%[3]s=%[4]s || %[1]s -n %[2]s patch configmap operator-config --type merge -p '{\"data\":{%[3]q:%[4]q}}'; %[1]s -n %[2]s delete pods -l %[5]s",
		tool, i.Namespace, name, value, labels.Set(i.PodLabels))
}

// tool is what administrators of the cluster have at hand.
func (w *World) tool() string {
	if w.OpenShift {
		return "oc"
	}
	return "kubectl"
}
