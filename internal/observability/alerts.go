package observability

import (
	"fmt"
	"slices"
)

// Alerts are all alerts, in the order in which to look at them when several fire.
var Alerts = slices.Concat(operatorAlerts, sessionAlerts, startupAlerts)

// operatorAlerts are about the operator itself.
var operatorAlerts = []Alert{{
	Name: "AgenticOperatorAbsent", Severity: Critical, For: "10m",
	// A target that vanishes takes its "up" with it; only absent sees both that and all of them down.
	Expr:        `absent(up{$scope} == 1)`,
	Summary:     "Nothing of the agentic operator answers its scrapes.",
	Description: "No replica of the operator in namespace $installation was scraped for 10 minutes. Either it is down, and sessions neither start nor stop, or only its monitoring is broken; every other alert about it is blind meanwhile.",
}, {
	Name: "AgenticOperatorReplicaNotScraped", Severity: Warning, For: "10m",
	// An average over a window also sees the replica that answers now and then.
	Expr:        `avg by (pod) (avg_over_time(up{$scope}[10m])) < 0.5`,
	Summary:     "A replica of the agentic operator does not answer its scrapes.",
	Description: "Pod {{ $labels.pod }} answered {{ $value | humanizePercentage }} of the scrapes of the last 10 minutes. The others may do its work; what it counts is missing.",
}, {
	Name: "AgenticOperatorNoLeader", Severity: Critical, For: "10m",
	// Of a replica that is not scraped nobody knows whether it leads: that is the alert above.
	Expr: `
sum(last_over_time(ambient_operator_leader{$scope}[5m])) == 0
unless on () count(max_over_time(up{$scope}[5m]) == 0) > 0`,
	Summary:     "No replica of the agentic operator leads.",
	Description: "All replicas answer and none holds the lease $lease: sessions neither start nor stop.",
}, {
	Name: "AgenticOperatorTwoLeaders", Severity: Critical, For: "10m",
	// A leader that was replaced is in the window for 5 minutes, which is less than For.
	Expr:        `sum(last_over_time(ambient_operator_leader{$scope}[5m])) > 1`,
	Summary:     "More than one replica of the agentic operator works.",
	Description: "{{ $value }} replicas work on the same sessions, and counts are too high. Either they run without --leader-elect, or one did not notice that it lost the lease $lease.",
}, {
	Name: "AgenticOperatorReconcileErrors", Severity: Warning, For: "15m",
	Expr: `
sum by (controller) (rate(controller_runtime_reconcile_total{$scope,result="error"}[10m]))
/ sum by (controller) (rate(controller_runtime_reconcile_total{$scope}[10m])) > 0.1`,
	Summary:     "Many passes of the agentic operator fail.",
	Description: "Controller {{ $labels.controller }} fails in {{ $value | humanizePercentage }} of its passes, for 15 minutes. Each is tried again, but what fails is not up to date.",
}, {
	Name: "AgenticOperatorWorkqueueSaturated", Severity: Warning, For: "15m",
	// All workers at work is bad only if something waits for them. With every worker hung nothing
	// leaves the queue, the wait is not a number, and the alert stays.
	Expr: `
sum by (controller) (avg_over_time(controller_runtime_active_workers{$scope}[10m]))
  >= 0.9 * sum by (controller) (avg_over_time(controller_runtime_max_concurrent_reconciles{$scope}[10m]))
unless
histogram_quantile(0.9, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket{$scope}[10m]))) <= 10`,
	Summary:     "The agentic operator does not keep up with its work.",
	Description: "The workers of controller {{ $labels.controller }} are busy all the time and its queue does not empty within 10 seconds. Sessions start and stop late.",
}, {
	Name: "AgenticTokenRenewalFailing", Severity: Warning, For: "15m",
	// One failure is tried again within the minute and is out of the window before the alert fires.
	Expr:        `sum by (session_namespace) (increase(ambient_token_renewals_total{$scope,result="failure"}[10m])) > 0`,
	Summary:     "Tokens of runners cannot be made or renewed.",
	Description: "In project {{ $labels.session_namespace }} tokens of runners could not be made or renewed for 15 minutes. A runner whose token expires is refused by the API server and by the backend.",
}, {
	Name: "AgenticTokenExpiring", Severity: Critical, For: "1m",
	// A token of the shortest life, ten minutes, is renewed with three left.
	Expr:        `min(last_over_time(ambient_token_next_expiry_timestamp_seconds{$scope}[5m])) - time() < 120`,
	Summary:     "A runner's token is about to expire.",
	Description: "The first token of a running session expires in {{ $value | humanizeDuration }}; it should have been renewed at two thirds of its life. Its runner loses access to the API server and to the backend then.",
}}

// sessionAlerts are about sessions that do not move or do not succeed.
var sessionAlerts = []Alert{
	stuck("Pending", 1800, "Sessions do not leave Pending.", "waits for something: a Secret, a ConfigMap, a right, room for one more"),
	stuck("Creating", 900, "Sessions do not get from Creating to Running.", "has a Job whose pod does not become ready: no node, no image, no quota, a crash"),
	stuck("Stopping", 900, "Sessions do not get from Stopping to Stopped.", "has a pod that does not end: its node is gone, or a finalizer holds it"),
	{
		Name: "AgenticSessionsFailing", Severity: Warning, For: "10m",
		Expr: `
sum(increase(ambient_sessions_completed_total{$scope,final_phase="Failed"}[1h]))
/ sum(increase(ambient_sessions_completed_total{$scope}[1h])) > 0.25
and sum(increase(ambient_sessions_completed_total{$scope}[1h])) >= 20`,
		Summary:     "Many sessions fail, over all projects.",
		Description: "{{ $value | humanizePercentage }} of the runs that ended within the last hour failed.",
	}, {
		Name: "AgenticProjectSessionsFailing", Severity: Info, For: "10m",
		Expr: `
sum by (session_namespace) (increase(ambient_sessions_completed_total{$scope,final_phase="Failed"}[1h]))
/ sum by (session_namespace) (increase(ambient_sessions_completed_total{$scope}[1h])) > 0.5
and sum by (session_namespace) (increase(ambient_sessions_completed_total{$scope}[1h])) >= 5`,
		Summary:     "Most sessions of a project fail.",
		Description: "{{ $value | humanizePercentage }} of the runs of project {{ $labels.session_namespace }} that ended within the last hour failed.",
	},
}

// stuck is the alert for sessions that stay in a phase for more than the given seconds. A leader that
// was replaced is in the window for 5 minutes; its last word is older, never younger, than the truth.
func stuck(phase string, seconds int, summary, because string) Alert {
	return Alert{
		Name: "AgenticSessionsStuck" + phase, Severity: Warning, For: "5m",
		Expr: fmt.Sprintf(`max by (session_namespace) (last_over_time(ambient_session_oldest_age_seconds{$scope,phase="%s"}[5m])) > %d`,
			phase, seconds),
		Summary:     summary,
		Description: fmt.Sprintf("A session of project {{ $labels.session_namespace }} is %s for {{ $value | humanizeDuration }}. It %s.", phase, because),
	}
}

// startupAlerts watch the objective of a session's start: each looks at how fast the tolerated
// share of slow starts is used up, in a long window for weight and a short one so that it ends when
// the trouble ends. A handful of sessions says nothing; hence the guard.
var startupAlerts = []Alert{{
	Name: "AgenticSessionStartupBurnFast", Severity: Warning, For: "2m",
	Expr:        burn(14.4, "1h", "5m") + "\nor\n" + burn(6, "6h", "30m"),
	Summary:     "Sessions start too slowly.",
	Description: fmt.Sprintf("{{ $value | humanizePercentage }} of the sessions that started took longer than %d s; the objective tolerates %.0f%% over a month, which is used up within days.", StartWithin, 100*(1-Objective)),
}, {
	Name: "AgenticSessionStartupBurnSlow", Severity: Info, For: "30m",
	Expr:        burn(3, "1d", "2h"),
	Summary:     "Sessions start slowly for a day.",
	Description: fmt.Sprintf("{{ $value | humanizePercentage }} of the sessions that started within a day took longer than %d s; the objective tolerates %.0f%%.", StartWithin, 100*(1-Objective)),
}}

// burn holds while both windows use up the tolerated share the given times too fast.
func burn(times float64, long, short string) string {
	share := fmt.Sprintf("%.3g", times*(1-Objective))
	return fmt.Sprintf(`(
  max(%s{$scope}) > %s
  and max(%s{$scope}) > %s
  and sum(increase(ambient_session_startup_duration_seconds_count{$scope}[%s])) >= 20
)`, slow(long), share, slow(short), share, long)
}
