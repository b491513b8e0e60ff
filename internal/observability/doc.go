// Package observability describes, once, what is made of the operator's metrics: recording rules,
// alerts, documented queries, the panels of a dashboard, and what the OpenShift Console shows of the
// operator besides. It renders them: rules as a PrometheusRule's spec, panels as a dashboard of the
// OpenShift Console (the old form of Grafana's JSON, the only one the Console draws) and as one of
// today's Grafana. It reads nothing and talks to no one; internal/monitoring decides what of it is
// installed and where.
//
// Start at alerts.go and board.go. Expressions there are PromQL with two words of our own, put in by
// scope: $scope selects what was scraped from this installation, $job what was scraped from any.
//
// Four habits keep the numbers right. The session's namespace is the label session_namespace, which
// the ServiceMonitor makes: "namespace" is the operator's own wherever monitoring enforces it. Rates
// are taken first and summed afterwards, so that the reset of one replica stays a reset of one series.
// Gauges that two replicas may both export during a failover are joined with max, not sum. What
// must hold for a while is looked at over a window, so that a missed scrape is not news.
package observability

import "strings"

const (
	// Job is the label job of everything scraped from the operator: the name of its metrics Service.
	Job = "agentic-operator-metrics"
	// Lease is the lock the replicas elect their leader with.
	Lease = "agentic-operator.ambient-code.io"
	// Namespace is where the shipped manifests install the operator.
	Namespace = "agentic-operator-system"
	// Runbook is the page that every alert links to, at the heading of its own name.
	Runbook = "https://github.com/ambient-code/agentic-operator/blob/main/docs/runbook.md"
)

// scope puts the labels of the installation into an expression. Without a namespace $scope is $job:
// dashboards look at every installation that whoever looks may see.
func scope(expr, namespace string) string {
	job := `job="` + Job + `"`
	installation := job
	if namespace != "" {
		installation += `,namespace="` + namespace + `"`
	}
	return strings.NewReplacer("$scope", installation, "$job", job, "$lease", Lease, "$installation", namespace).Replace(expr)
}
