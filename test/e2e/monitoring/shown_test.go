//go:build e2e

package monitoring

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/observability"
	"github.com/ambient-code/agentic-operator/test/rig/monitoring"
)

// fact is what an expression must say of the sessions that were run: of the series with a label,
// that it is this, give or take so much.
type fact struct {
	of            string // a label as name=value; empty for the only series
	is, tolerance float64
}

// facts of the documented queries, by a part of the expression that only they have. The others need
// only answer.
func facts(project string) map[string][]fact {
	here := "session_namespace=" + project
	return map[string][]fact{
		"round(sum by (session_namespace) (increase(ambient_sessions_total": {{here, 12, 0}},
		// Each run was a few seconds of its own and some of a busy machine.
		"histogram_quantile(0.95, sum by (le, session_namespace) (rate(ambient_session_startup": {{here, 60, 59.9}},
		"sum by (session_namespace) (rate(ambient_session_startup_duration_seconds_sum":         {{here, 60, 59.9}},
		`sum by (session_namespace) (increase(ambient_sessions_completed_total{final_phase="Failed"}[1h])) /`: {
			{here, 2.0 / 12, 0.02},
		},
		"sum by (phase) (max by (session_namespace, phase) (ambient_sessions))": {
			{"phase=Completed", 8, 0}, {"phase=Failed", 2, 0}, {"phase=Stopped", 2, 0}, {"phase=Running", 0, 0},
		},
		`ambient_reconcile_duration_seconds_count{success="true"}`: {{"", 1, 0.1}},
	}
}

// documented wants the documented queries to answer, and to say what happened. (Cases 61 and 63.)
func documented(t *testing.T, p *monitoring.Prometheus, project string) {
	wanted := facts(project)
	for _, query := range observability.Queries {
		answers(t, p, query.Expr, query.Question)
		for part, known := range wanted {
			if !strings.Contains(query.Expr, part) {
				continue
			}
			delete(wanted, part)
			// The last thing that happened is not told before the next scrape.
			eventually(t, query.Question+" is answered right", func(ctx context.Context) (bool, string, error) {
				result, err := ask(ctx, p, query.Expr)
				wrong := disagreements(result, known)
				return wrong == "", wrong, err
			})
		}
	}
	for part := range wanted {
		t.Errorf("no documented query has %q", part)
	}
	// On a busy machine a session may end before it was seen to run, so it is counted by where phases
	// lead to and where they come from.
	for phases, count := range map[string]float64{
		`from_phase="Pending",to_phase="Creating"`: 12, `from_phase="Creating"`: 12, `to_phase="Completed"`: 8,
		`to_phase="Failed"`: 2, `from_phase="Running",to_phase="Stopping"`: 2, `from_phase="Stopping",to_phase="Stopped"`: 2,
	} {
		becomes(t, p, fmt.Sprintf(`sum(increase(ambient_session_phase_transitions_total{session_namespace=%q,%s}[1h]))`, project, phases), count, 0.5)
	}
}

// answers evaluates an expression, which must have a result.
func answers(t *testing.T, p *monitoring.Prometheus, expression, what string) model.Vector {
	t.Helper()
	result, err := ask(t.Context(), p, expression)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if len(result) == 0 {
		t.Errorf("%s: %s has no result", what, expression)
	}
	return result
}

// disagreements says which facts a result does not bear out.
func disagreements(result model.Vector, known []fact) string {
	var wrong []string
	for _, f := range known {
		found := slices.IndexFunc(result, func(sample *model.Sample) bool {
			name, value, _ := strings.Cut(f.of, "=")
			return f.of == "" || string(sample.Metric[model.LabelName(name)]) == value
		})
		if found < 0 {
			wrong = append(wrong, fmt.Sprintf("there is no %q in %v", f.of, result))
			continue
		}
		if is := float64(result[found].Value); math.IsNaN(is) || math.Abs(is-f.is) > f.tolerance {
			wrong = append(wrong, fmt.Sprintf("%q is %v, want %v±%v", f.of, is, f.is, f.tolerance))
		}
	}
	return strings.Join(wrong, "; ")
}

// silent are panels that rightly show nothing when all is well: a filter leaves nothing over, or
// there was no such event.
var silent = []string{`code!~"2..|101"`}

// dashboards wants every panel to show something, the recording rules to have results, no alert to
// fire, and the dashboard where the Console looks for it.
func dashboards(t *testing.T, p *monitoring.Prometheus, project string) {
	for _, expression := range observability.Targets() {
		expression = strings.NewReplacer("$session_namespace", project, "$__rate_interval", "5m", "$__range", "1h").Replace(expression)
		if slices.ContainsFunc(silent, func(part string) bool { return strings.Contains(expression, part) }) {
			if _, err := ask(t.Context(), p, expression); err != nil {
				t.Error(err)
			}
			continue
		}
		answers(t, p, expression, "a panel")
	}
	for _, recording := range observability.Recordings {
		answers(t, p, recording.Record, "a recording rule")
	}
	alerts, err := p.Alerts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alerts.Alerts {
		if alert.State == "firing" {
			t.Errorf("an alert fires: %v", alert.Labels)
		}
	}
	eventually(t, "the dashboard is in "+consoleNamespace, func(ctx context.Context) (bool, string, error) {
		dashboard := &corev1.ConfigMap{}
		err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: consoleNamespace, Name: "grafana-dashboard-agentic-operator"}, dashboard)
		keys := slices.Collect(maps.Keys(dashboard.Data))
		return err == nil && len(keys) == 1 && dashboard.Labels["console.openshift.io/dashboard"] == "true",
			fmt.Sprintf("labels %v, keys %v (%v)", dashboard.Labels, keys, err), client.IgnoreNotFound(err)
	})
}
