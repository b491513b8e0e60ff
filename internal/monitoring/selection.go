package monitoring

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Prometheus is what a Prometheus object says of the ServiceMonitors that it reads.
type Prometheus struct {
	Namespace, Name string
	// Namespaces selects namespaces by their labels: nil selects the Prometheus's own alone.
	Namespaces *metav1.LabelSelector
	// Monitors selects ServiceMonitors by their labels: nil selects none.
	Monitors *metav1.LabelSelector
	// RuleNamespaces and Rules select rules in the same way.
	RuleNamespaces, Rules *metav1.LabelSelector
}

func (p *Prometheus) String() string { return p.Namespace + "/" + p.Name }

// userWorkload says that it is OpenShift's for user-defined projects.
func (p *Prometheus) userWorkload() bool {
	return p.Namespace == "openshift-user-workload-monitoring" && p.Name == "user-workload"
}

func (p *Prometheus) readsNamespace(name string, set labels.Set) bool {
	if p.Namespaces == nil {
		return p.Namespace == name
	}
	return matches(p.Namespaces, set)
}

func matches(selector *metav1.LabelSelector, set labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(set)
}

// reads says that a Prometheus reads a ServiceMonitor made with these labels, to which others may
// have added some.
func (w *World) reads(p *Prometheus, made labels.Set) bool {
	return p.readsNamespace(w.Installation.Namespace, w.NamespaceLabels) && matches(p.Monitors, merged(w.MonitorLabels, made))
}

// selected says which Prometheus reads the ServiceMonitor; where none does, why and what to do.
func (w *World) selected(monitor labels.Set) Condition {
	namespace := w.Installation.Namespace
	var readers, almost []string
	for i := range w.Prometheuses {
		switch p := &w.Prometheuses[i]; {
		case p.userWorkload() && !w.userWorkloadRuns():
		case w.reads(p, monitor):
			readers = append(readers, p.String())
		case p.readsNamespace(namespace, w.NamespaceLabels):
			almost = append(almost, w.byMonitor(p, monitor))
		}
	}
	slices.Sort(readers)
	slices.Sort(almost)
	switch {
	case len(readers) > 0:
		return condition(PartSelected, true, "Selected", "read by Prometheus "+strings.Join(readers, ", "))
	case w.OpenShift && w.NamespaceLabels[labelUserMonitoring] == "false" && w.Mode() == ModeUserWorkload:
		return missing(PartSelected, "NamespaceOptedOut", fmt.Sprintf(
			"namespace %s is labelled to be left out of the monitoring of user-defined projects; run: oc label namespace %s %s-", namespace, namespace, labelUserMonitoring))
	case w.Mode() == ModeUserWorkload && !w.userWorkloadRuns():
		why := w.userWorkload()
		why.Part, why.Message = PartSelected, "nobody reads the ServiceMonitor: "+why.Message
		return why
	case len(almost) > 0:
		return missing(PartSelected, "LabelsNotSelected", strings.Join(almost, "; "))
	case w.Served[Prometheuses] && len(w.Prometheuses) == 0:
		return missing(PartSelected, "NoPrometheus", "the cluster has ServiceMonitors but no Prometheus object; create one that selects them: kubectl explain prometheus.spec.serviceMonitorSelector")
	case w.Served[Prometheuses]:
		return missing(PartSelected, "NamespaceNotSelected", w.byNamespace())
	default:
		return condition(PartSelected, false, "Unknown", "the cluster has no Prometheus objects; whether something else reads ServiceMonitors is not known")
	}
}

// scraped says whether metrics are really read, which a network, a certificate or a right may
// hinder although everything is selected.
func (w *World) scraped(monitor labels.Set) Condition {
	switch w.Scrapes {
	case ScrapesSeen:
		return condition(PartScraped, true, "Scraped", "a Prometheus reads the metrics of the leading replica")
	case ScrapesAwaited:
		return condition(PartScraped, false, "Awaited", "no Prometheus has read the metrics of the leading replica yet")
	}
	for i := range w.Prometheuses {
		if p := &w.Prometheuses[i]; w.reads(p, monitor) {
			return missing(PartScraped, "NotScraped", fmt.Sprintf(
				"no Prometheus has read the metrics of the leading replica for minutes, although %s selects the ServiceMonitor; its page of targets says why: kubectl -n %s port-forward prometheus-%s-0 9090, then open http://localhost:9090/targets?search=%s",
				p, p.Namespace, p.Name, MetricsService))
		}
	}
	return condition(PartScraped, false, "NotScraped", "no Prometheus reads the metrics of the leading replica, and none is known to select the ServiceMonitor")
}

// byMonitor says how a Prometheus would read the ServiceMonitor.
func (w *World) byMonitor(p *Prometheus, made labels.Set) string {
	if p.Monitors == nil {
		return fmt.Sprintf("Prometheus %s reads no ServiceMonitors; run: %s -n %s patch prometheus %s --type merge -p '{\"spec\":{\"serviceMonitorSelector\":{}}}'", p, w.tool(), p.Namespace, p.Name)
	}
	if matches(p.Monitors, made) {
		return fmt.Sprintf("Prometheus %s would read the ServiceMonitor without the labels that somebody has put on it; run: %s -n %s label servicemonitor %s %s",
			p, w.tool(), w.Installation.Namespace, MonitorObject, w.foreign(p.Monitors, made))
	}
	return w.byLabels(p, p.Monitors, made, "reads only ServiceMonitors", "serviceMonitorSelector")
}

// byLabels says with which labels an object would fit a selector of a Prometheus, which is a field of
// it.
func (w *World) byLabels(p *Prometheus, selector *metav1.LabelSelector, made labels.Set, does, field string) string {
	selects := fmt.Sprintf("Prometheus %s %s with %s", p, does, metav1.FormatLabelSelector(selector))
	wanted, fits := w.fitting(selector, made)
	if !fits {
		return fmt.Sprintf("%s, which no label that can be given fits; let its spec.%s select %s=agentic-operator, too: %s -n %s edit prometheus %s",
			selects, field, labelName, w.tool(), p.Namespace, p.Name)
	}
	return selects + "; run: " + w.setting("MONITORING_LABELS", wanted.String())
}

// foreign lists the labels that others have put on the ServiceMonitor and that a selector looks at, in
// the form that takes them off.
func (w *World) foreign(selector *metav1.LabelSelector, made labels.Set) string {
	var keys []string
	for _, e := range selector.MatchExpressions {
		if _, put := w.MonitorLabels[e.Key]; put && !made.Has(e.Key) {
			keys = append(keys, e.Key+"-")
		}
	}
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), " ")
}

// byNamespace says how the operator's namespace would be read.
func (w *World) byNamespace() string {
	namespace := w.Installation.Namespace
	for i := range w.Prometheuses {
		p := &w.Prometheuses[i]
		if p.Namespaces == nil || len(p.Namespaces.MatchExpressions) > 0 || p.Monitors == nil {
			continue
		}
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(p.Namespaces.MatchLabels)) {
			pairs = append(pairs, key+"="+p.Namespaces.MatchLabels[key])
		}
		if !w.OpenShift && len(pairs) > 0 {
			return fmt.Sprintf("no Prometheus looks at namespace %s; Prometheus %s would if it were labelled; run: kubectl label namespace %s %s", namespace, p, namespace, strings.Join(pairs, " "))
		}
	}
	return fmt.Sprintf("no Prometheus looks at namespace %s; let spec.serviceMonitorNamespaceSelector of one select it: kubectl get prometheus -A", namespace)
}
