package observability

// Query answers a question that is often asked of the metrics.
type Query struct {
	Question string
	// Plain is the form that comes to mind first, and Misleads why it is not used.
	Plain, Misleads string
	// Expr is the form to use, and Expect what it says.
	Expr, Expect string
}

// Queries are the documented queries. docs/observability.md is made of them.
var Queries = []Query{{
	Question: "Within what time do 95 of 100 sessions start, by project? (seconds)",
	Plain:    `histogram_quantile(0.95, sum(rate(ambient_session_startup_duration_seconds_bucket[5m])) by (le, namespace))`,
	Misleads: "`namespace` is the operator's own where monitoring enforces it, so all projects become one line; within 5 minutes hardly any project starts a session, so the answer is mostly NaN.",
	Expr:     `histogram_quantile(0.95, sum by (le, session_namespace) (rate(ambient_session_startup_duration_seconds_bucket[1h])))`,
	Expect:   "A number of seconds for each project that started something within the hour, NaN for the others. It is interpolated within a bucket (10, 20, 30, 60, 120 s and so on), and never more than the largest, 1800. With few starts it is one session: see how many with `sum by (session_namespace) (increase(ambient_session_startup_duration_seconds_count[1h]))`. Sessions that never start are not in it.",
}, {
	Question: "How long does a start take on average, by project? (seconds)",
	Plain:    `sum(rate(ambient_session_startup_duration_seconds_sum[5m])) / sum(rate(ambient_session_startup_duration_seconds_count[5m]))`,
	Misleads: "It is one number for all projects, and 0/0 whenever nothing started within 5 minutes.",
	Expr:     `sum by (session_namespace) (rate(ambient_session_startup_duration_seconds_sum[1h])) / sum by (session_namespace) (rate(ambient_session_startup_duration_seconds_count[1h]))`,
	Expect:   "The exact mean, not one of buckets. One session that waited an hour for a Secret shows in it; look at the quantile too.",
}, {
	Question: "How many sessions were created in the last hour, by project?",
	Plain:    `sum(increase(ambient_sessions_total[1h])) by (namespace)`,
	Misleads: "It groups by the operator's namespace; and it answers 2.02 for 2, as Prometheus extrapolates to the edges of the window.",
	Expr:     `round(sum by (session_namespace) (increase(ambient_sessions_total[1h])))`,
	Expect:   "Whole numbers, right to within one for a few dozen sessions, also over a restart or a change of leader: each series is repaired before the sum. Restarts of a session do not count. What was created between the last scrape of a replica and its end is missing.",
}, {
	Question: "How many phase changes happen per minute?",
	Plain:    `sum(rate(ambient_session_phase_transitions_total[1m])) by (from_phase, to_phase)`,
	Misleads: "`rate` is per second, 60 times too small; and with scrapes 30 s apart one minute holds two samples at most, so the value jumps, and is gone when a scrape is missed.",
	Expr:     `60 * sum by (from_phase, to_phase) (rate(ambient_session_phase_transitions_total[5m]))`,
	Expect:   "A line for each change that the operator can make, 0 for those that did not happen. One session a minute reads as 1.",
}, {
	Question: "How many errors per minute, by phase and type?",
	Plain:    `sum(rate(ambient_session_errors_total[5m])) by (phase, error_type)`,
	Misleads: "It is per second: an error every five minutes reads as 0.0033.",
	Expr:     `60 * sum by (phase, error_type) (rate(ambient_session_errors_total[5m]))`,
	Expect:   "0 for every pair when all is well; an empty answer means that nothing is scraped, not that there are no errors. Each is tried again, so a lasting trouble of one session is about two per minute.",
}, {
	Question: "Which share of the passes over sessions succeeds?",
	Plain:    `sum(rate(ambient_reconcile_duration_seconds_count{success="true"}[5m])) / sum(rate(ambient_reconcile_duration_seconds_count[5m]))`,
	Misleads: "It is right, and NaN while nothing happens, which an alert `< 0.9` passes over, as it should.",
	Expr:     `sum(rate(ambient_reconcile_duration_seconds_count{success="true"}[15m])) / sum(rate(ambient_reconcile_duration_seconds_count[15m]))`,
	Expect:   "1, or a little less: conflicts with other writers are no errors here. Of the other controllers, `controller_runtime_reconcile_total{result!=\"error\"}` over all tells the same.",
}, {
	Question: "Which share of the runs fails, by project?",
	Plain:    `sum(ambient_sessions_completed_total{final_phase="Failed"}) / sum(ambient_sessions_completed_total)`,
	Misleads: "Counters begin at 0 with each replica's start: raw, it is the share since then, and during an update the old and the new replica are added up.",
	Expr:     `sum by (session_namespace) (increase(ambient_sessions_completed_total{final_phase="Failed"}[1h])) / sum by (session_namespace) (increase(ambient_sessions_completed_total[1h]))`,
	Expect:   "NaN for projects in which nothing ended within the hour. Why they failed: `sum by (reason) (increase(ambient_session_run_outcomes_total{final_phase=\"Failed\"}[1h]))`.",
}, {
	Question: "How many sessions are there now, by phase?",
	Plain:    `sum(ambient_sessions) by (phase)`,
	Misleads: "Only the leader counts sessions, but while one leader replaces another both may be in the answer, and all sessions in it twice.",
	Expr:     `sum by (phase) (max by (session_namespace, phase) (ambient_sessions))`,
	Expect:   "What `kubectl get agenticsessions -A` lists in managed namespaces, as of the last scrape.",
}}
