//go:build e2e

package monitoring

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/observability"
	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/monitoring"
)

// documented wants the documented queries to say what happened, in the order of their documentation.
// (Cases 61 and 63.)
func documented(t *testing.T, p *monitoring.Prometheus, project string) {
	is := happened(t, project)
	here := func(least, most float64) sees {
		return exactly("session_namespace", map[string]span{project: {least, most}})
	}
	wanted := map[string]sees{
		"Within what time do 95 of 100 sessions start": here(quantile(0.95, is.starts, metrics.StartupDuration)),
		"How long does a start take on average":        here(mean(is.starts)),
		"How many sessions were created":               here(12, 12),
		"How many phase changes happen per minute":     is.changes,
		"How many errors per minute":                   each(5, 0, 1),
		"Which share of the passes over sessions":      between(0.9, 1),
		"Which share of the runs fails":                here(2.0/12-0.01, 2.0/12+0.01),
		"How many sessions are there now":              exactly("phase", existing()),
	}
	for _, query := range observability.Queries {
		question := ""
		for begins := range wanted {
			if strings.HasPrefix(query.Question, begins) {
				question = begins
			}
		}
		if question == "" {
			t.Errorf("nothing is known of the answer to: %s", query.Question)
			continue
		}
		shows(t, p, query.Question, query.Expr, wanted[question])
		delete(wanted, question)
	}
	for question := range wanted {
		t.Errorf("no documented query asks: %s", question)
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

// shows waits until an expression says what happened: the last of that is not told before the next
// scrape.
func shows(t *testing.T, p *monitoring.Prometheus, what, expression string, wanted sees) {
	t.Helper()
	wrong := ""
	err := within(t.Context(), fmt.Sprintf("%q is answered right by %s", what, expression), func(ctx context.Context) (bool, string, error) {
		result, err := ask(ctx, p, expression)
		if err != nil {
			return false, wrong, err
		}
		wrong = wanted(result)
		return wrong == "", wrong, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// forgets waits until the replicas that were replaced are no longer answered for. Prometheus marks the series
// of a target that goes as ended, but not where it reads its configuration anew in that moment: then
// they last for as long as it looks back.
func forgets(t *testing.T, p *monitoring.Prometheus, pods int) {
	t.Helper()
	const lookback = 5 * time.Minute
	up, seen := fmt.Sprintf("sum(up{job=%q})", rig.OperatorName+"-metrics"), ""
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, lookback+time.Minute, true, func(ctx context.Context) (bool, error) {
		result, err := ask(ctx, p, up)
		seen = fmt.Sprint(result)
		return len(result) == 1 && int(result[0].Value) == pods, err
	})
	if err != nil {
		t.Errorf("%s is %s and not %d: %v", up, seen, pods, err)
	}
}

// dashboards wants every panel and every recording rule to show what happened, no alert to fire, and
// the dashboard where the Console looks for it.
func dashboards(t *testing.T, p *monitoring.Prometheus, project string) {
	is := happened(t, project)
	forgets(t, p, is.pods)
	wanted := is.panels()
	chosen := strings.NewReplacer("$session_namespace", project, "$__rate_interval", "5m", "$__range", "1h")
	targets := observability.Targets()
	for _, row := range observability.Board {
		for _, panel := range row.Panels {
			if len(wanted[panel.Title]) != len(panel.Targets) {
				t.Fatalf("of panel %q %d targets are known, it has %d", panel.Title, len(wanted[panel.Title]), len(panel.Targets))
			}
			for i := range panel.Targets {
				shows(t, p, panel.Title, chosen.Replace(targets[0]), wanted[panel.Title][i])
				targets = targets[1:]
			}
			delete(wanted, panel.Title)
		}
	}
	for title := range wanted {
		t.Errorf("there is no panel %q", title)
	}
	windows := []time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour}
	if len(windows) != len(observability.Recordings) {
		t.Fatalf("of %d recording rules %d are known", len(observability.Recordings), len(windows))
	}
	for i, recording := range observability.Recordings {
		shows(t, p, "a recording rule", recording.Record, is.slow(windows[i]))
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
