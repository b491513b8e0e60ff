package monitoring

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// loadsRules says that a Prometheus loads rules made with these labels in the operator's namespace.
func (w *World) loadsRules(p *Prometheus, made labels.Set) bool {
	return w.loadsFromHere(p) && matches(p.Rules, made)
}

func (w *World) loadsFromHere(p *Prometheus) bool {
	if p.RuleNamespaces == nil {
		return p.Namespace == w.Installation.Namespace
	}
	return matches(p.RuleNamespaces, w.NamespaceLabels)
}

// loaded says which Prometheus loads the PrometheusRule. Of those that do not, what counts are those
// that read the metrics: a stack that watches the operator and never alerts looks as if all were well.
func (w *World) loaded(made, monitor labels.Set) Condition {
	var loaders, wanting []string
	for i := range w.Prometheuses {
		switch p := &w.Prometheuses[i]; {
		case p.userWorkload() && !w.userWorkloadRuns():
		case w.loadsRules(p, made):
			loaders = append(loaders, p.String())
		case w.reads(p, monitor):
			wanting = append(wanting, w.byRules(p, made))
		}
	}
	slices.Sort(loaders)
	slices.Sort(wanting)
	switch {
	case len(loaders) > 0:
		return condition(PartLoaded, true, "Loaded", "loaded by Prometheus "+strings.Join(loaders, ", "))
	case len(wanting) > 0:
		return missing(PartLoaded, "NotLoaded", strings.Join(wanting, "; "))
	default:
		return condition(PartLoaded, false, "Unknown", "no Prometheus that reads the ServiceMonitor is known; part selected says why")
	}
}

// byRules says how a Prometheus would load the PrometheusRule.
func (w *World) byRules(p *Prometheus, made labels.Set) string {
	edit := fmt.Sprintf("%s -n %s edit prometheus %s", w.tool(), p.Namespace, p.Name)
	if p.Rules == nil {
		return fmt.Sprintf("Prometheus %s reads the metrics and loads no rules; run: %s -n %s patch prometheus %s --type merge -p '{\"spec\":{\"ruleSelector\":{}}}'", p, w.tool(), p.Namespace, p.Name)
	}
	if !w.loadsFromHere(p) {
		return fmt.Sprintf("Prometheus %s reads the metrics and loads no rules of namespace %s; let its spec.ruleNamespaceSelector select it: %s", p, w.Installation.Namespace, edit)
	}
	return w.byLabels(p, p.Rules, made, "loads only rules", "ruleSelector")
}
