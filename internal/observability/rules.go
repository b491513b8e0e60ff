package observability

import (
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Severities as OpenShift means them: Critical within minutes, Warning within the hour, Info when
// someone has time.
const (
	Critical = "critical"
	Warning  = "warning"
	Info     = "info"
)

// Alert is one alert. Its name is also its heading in the runbook.
type Alert struct {
	Name     string
	Severity string
	// Expr is PromQL with $scope; For is how long it must hold.
	Expr string
	For  monitoringv1.Duration
	// Summary is one line; Description may use Prometheus' templates.
	Summary, Description string
}

// Recording is a series that Prometheus keeps for us, named level:metric:operation.
type Recording struct {
	Record string
	Expr   string
}

// Rules is the spec of the PrometheusRule of an operator installed in the namespace.
func Rules(namespace string) monitoringv1.PrometheusRuleSpec {
	recordings := monitoringv1.RuleGroup{Name: "agentic-operator.recordings"}
	for _, r := range Recordings {
		recordings.Rules = append(recordings.Rules, monitoringv1.Rule{
			Record: r.Record,
			Expr:   expression(r.Expr, namespace),
			// Sums have lost these; with them two installations do not write the same series.
			Labels: map[string]string{"job": Job, "namespace": namespace},
		})
	}
	alerts := monitoringv1.RuleGroup{Name: "agentic-operator.alerts"}
	for _, a := range Alerts {
		alerts.Rules = append(alerts.Rules, a.rule(namespace))
	}
	return monitoringv1.PrometheusRuleSpec{Groups: []monitoringv1.RuleGroup{recordings, alerts}}
}

// rule is the alert as Prometheus knows it. It carries the operator's namespace, by which alerts
// are routed and shown, whether or not the expression leaves one.
func (a Alert) rule(namespace string) monitoringv1.Rule {
	return monitoringv1.Rule{
		Alert:  a.Name,
		Expr:   expression(a.Expr, namespace),
		For:    &a.For,
		Labels: map[string]string{"severity": a.Severity, "namespace": namespace},
		Annotations: map[string]string{
			"summary":     a.Summary,
			"description": scope(a.Description, namespace),
			"runbook_url": Runbook + "#" + strings.ToLower(a.Name),
		},
	}
}

func expression(expr, namespace string) intstr.IntOrString {
	return intstr.FromString(scope(strings.TrimSpace(expr), namespace))
}
