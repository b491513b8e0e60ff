package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// pages are all pages but that of the rights, which is made from a file.
var pages = []page{
	{"phases.md", "Phases of a session",
		"`status.phase` says where a session is in its life. What must be in the cluster depends on the phase alone.", phases},
	{"rules.md", "Rules of the phase machine",
		"In each pass the first rule whose phase and facts match moves the session, or says why it stays; when none matches it stays where it is. The order is: what happened to the runner, what the user wants, what is missing, what the clocks say.", rules},
	{"conditions.md", "Conditions",
		"All of them are set on every object of the kind, in `status.conditions`, each with a reason ([reasons](reasons.md)) and a message for people.", conditions},
	{"reasons.md", "Reasons",
		"Reasons of phase changes (in Events), of [conditions](conditions.md) and of `status.groupErrors` of ProjectSettings.", reasons},
	{"annotations.md", "Annotations and labels",
		"Every annotation and label that the operator knows.", annotations},
	{"metrics.md", "Metrics",
		"Served at `/metrics` on the address of `--metrics-bind-address`.", described},
	{"configuration.md", "Configuration",
		"Read once, at start. All values that cannot be used are told at once, and the operator does not start. Where a setting has a flag and a variable, the variable wins.", configuration},
}

func phases() (string, error) {
	var rows [][]string
	for _, p := range v1alpha1.Phases {
		terminal := "no"
		if p.Terminal {
			terminal = "yes"
		}
		rows = append(rows, []string{code(string(p.Phase)), p.Meaning, p.Job, p.Objects, terminal})
	}
	return table([]string{"Phase", "Meaning", "Job of the run", "Other objects", "Terminal"}, rows) +
		"\nA terminal phase is left only when a restart is asked for. The moves are in [rules](rules.md).\n", nil
}

func rules() (string, error) {
	var rows, facts [][]string
	for _, r := range session.Rules {
		when := codes(r.When)
		if when == "" {
			when = "always"
		}
		to := code(string(r.To))
		if slices.Contains(r.From, r.To) {
			to = "stays"
		}
		rows = append(rows, []string{r.Name, codes(r.From), when, to, code(r.Reason)})
	}
	for _, f := range session.Facts {
		facts = append(facts, []string{code(string(f.Fact)), f.Meaning})
	}
	return fenced("mermaid", diagram()) +
		section("Rules", table([]string{"Rule", "From", "When", "To", "Reason"}, rows)+
			"\nThe reason may be a more exact one: the cause of a failure, for instance, instead of `RunnerFailed`.\n") +
		section("Facts", table([]string{"Fact", "Holds when"}, facts)), nil
}

// diagram draws the moves; rules that share an edge share its label.
func diagram() string {
	type edge struct{ from, to v1alpha1.Phase }
	var edges []edge
	labels := map[edge][]string{}
	for _, r := range session.Rules {
		for _, from := range r.From {
			e := edge{from, r.To}
			if from == r.To {
				continue
			}
			if labels[e] == nil {
				edges = append(edges, e)
			}
			labels[e] = append(labels[e], r.Name)
		}
	}
	order := func(p v1alpha1.Phase) int {
		return slices.IndexFunc(v1alpha1.Phases, func(info v1alpha1.PhaseInfo) bool { return info.Phase == p })
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if a.from != b.from {
			return order(a.from) - order(b.from)
		}
		return order(a.to) - order(b.to)
	})
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "  [*] --> %s\n", v1alpha1.PhasePending)
	for _, e := range edges {
		fmt.Fprintf(&b, "  %s --> %s: %s\n", e.from, e.to, strings.Join(labels[e], ", "))
	}
	return b.String()
}

func conditions() (string, error) {
	return section("Of a session", words("Condition", "True when", v1alpha1.ConditionTypes))[1:] +
		section("Of a ProjectSettings", words("Condition", "True when", v1alpha1.ProjectConditionTypes)), nil
}

func reasons() (string, error) {
	sorted := func(all []v1alpha1.Word) []v1alpha1.Word {
		return slices.SortedFunc(slices.Values(all), func(a, b v1alpha1.Word) int { return strings.Compare(a.Word, b.Word) })
	}
	return section("Of sessions, and of ProjectSettings where they apply", words("Reason", "Meaning", sorted(v1alpha1.Reasons)))[1:] +
		section("Of ProjectSettings alone", words("Reason", "Meaning", sorted(v1alpha1.ProjectReasons))), nil
}

func words(head, meaning string, all []v1alpha1.Word) string {
	var rows [][]string
	for _, w := range all {
		rows = append(rows, []string{code(w.Word), w.Meaning})
	}
	return table([]string{head, meaning}, rows)
}

func annotations() (string, error) {
	var rows [][]string
	for _, k := range v1alpha1.Keys {
		rows = append(rows, []string{code(k.Key), k.On, k.WrittenBy, k.ReadBy, k.Meaning})
	}
	return table([]string{"Key", "On", "Written by", "Read by", "Meaning"}, rows), nil
}

// queries answer what is most often asked of the metrics.
var queries = []struct{ question, query string }{
	{"95 of 100 sessions start within (seconds)", "histogram_quantile(0.95, sum by (le) (rate(ambient_session_startup_duration_seconds_bucket[1h])))"},
	{"Average start (seconds)", "sum(rate(ambient_session_startup_duration_seconds_sum[1h])) / sum(rate(ambient_session_startup_duration_seconds_count[1h]))"},
	{"Sessions created in an hour", "sum(increase(ambient_sessions_total[1h]))"},
	{"Phase changes a minute", "sum by (from_phase, to_phase) (rate(ambient_session_phase_transitions_total[5m])) * 60"},
	{"Share of runs that fail", `sum(rate(ambient_sessions_completed_total{final_phase="Failed"}[1h])) / sum(rate(ambient_sessions_completed_total[1h]))`},
	{"Errors a second, by type", "sum by (error_type) (rate(ambient_session_errors_total[5m]))"},
	{"Share of passes that succeed", `sum(rate(ambient_reconcile_duration_seconds_count{success="true"}[5m])) / sum(rate(ambient_reconcile_duration_seconds_count[5m]))`},
}

func described() (string, error) {
	var asked [][]string
	for _, q := range queries {
		asked = append(asked, []string{q.question, code(q.query)})
	}
	return listed(metrics.Table) + "\n" + counting +
		section("Values of labels", labelValues()) +
		section("Buckets", bucketsOf()) +
		section("Metrics of the libraries", "Served beside those above, by every replica. Those that are worth a look:\n\n"+listed(metrics.Libraries)) +
		section("Questions and their queries", table([]string{"Question", "Query"}, asked)), nil
}

// counting says what a reader of the numbers has to know.
const counting = `The label ` + "`namespace`" + ` is the namespace of the session. A Prometheus that has a label of that name for
what it scrapes calls it ` + "`exported_namespace`" + `; the ServiceMonitor gives every series a
` + "`session_namespace`" + ` as well, which is the same everywhere.

All series of a namespace begin at 0 when it is first seen to be managed, and go when it no longer is,
or is deleted. Only the replica that leads counts in namespaces, so sums over replicas are right. A
phase change is counted once, after it was stored. An operator that is killed between the two, or that
never gets the answer to its write, misses that one; nothing is counted twice. Durations are taken
from times that session, Job and pod hold, so an operator that was away does not lengthen them.
`

func listed(all []metrics.Metric) string {
	var rows [][]string
	for _, m := range all {
		rows = append(rows, []string{code(m.Name), m.Type, codes(m.Labels), m.Meaning})
	}
	return table([]string{"Metric", "Type", "Labels", "Meaning"}, rows)
}

// labelValues tabulates the closed sets; metrics that share one share a row.
func labelValues() string {
	var rows [][]string
	for _, m := range metrics.Table {
		for _, label := range m.Labels {
			if m.Values[label] == nil {
				continue
			}
			values := codes(m.Values[label])
			same := slices.IndexFunc(rows, func(row []string) bool { return row[0] == code(label) && row[2] == values })
			if same >= 0 {
				rows[same][1] += ", " + code(m.Name)
				continue
			}
			rows = append(rows, []string{code(label), code(m.Name), values})
		}
	}
	return table([]string{"Label", "Of", "Values"}, rows)
}

func bucketsOf() string {
	var rows [][]string
	for _, m := range metrics.Table {
		if m.Type == metrics.Histogram {
			rows = append(rows, []string{code(m.Name), strings.Trim(fmt.Sprint(m.Buckets), "[]")})
		}
	}
	return table([]string{"Histogram", "Upper limits in seconds"}, rows)
}

func configuration() (string, error) {
	var rows [][]string
	for _, s := range config.Settings {
		name := s.Flag
		if name != "" {
			name = "--" + name
		}
		rows = append(rows, []string{code(name), code(s.Env), code(s.Default), s.Meaning})
	}
	return table([]string{"Flag", "Variable", "Default", "Meaning"}, rows), nil
}
