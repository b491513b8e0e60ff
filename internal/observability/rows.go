package observability

var nowRow = Row{"Now", []Panel{
	number("Running", "Sessions whose runner works.", Count,
		`sum(max by (session_namespace) (ambient_sessions{$job,session_namespace=~"$session_namespace",phase="Running"}))`),
	number("Waiting to run", "Sessions in Pending or Creating.", Count,
		`sum(max by (session_namespace, phase) (ambient_sessions{$job,session_namespace=~"$session_namespace",phase=~"Pending|Creating"}))`),
	number("Longest wait", "How long the oldest session in Pending, Creating or Stopping has been there.", Seconds,
		`max(ambient_session_oldest_age_seconds{$job,session_namespace=~"$session_namespace"})`),
	number("Created, last hour", "New sessions; restarts do not count. Prometheus extrapolates, so it may be off by a fraction.", Count,
		`sum(increase(ambient_sessions_total{$job,session_namespace=~"$session_namespace"}[1h]))`),
	number("Failed, last hour", "Runs that ended as Failed.", Count,
		`sum(increase(ambient_sessions_completed_total{$job,session_namespace=~"$session_namespace",final_phase="Failed"}[1h]))`),
	number("Replicas up", "Replicas of the operator that answer their scrapes.", Count,
		`sum(up{$job})`),
	{Title: "Projects", About: "Sessions that exist, by project and phase.", Kind: Table, Unit: Count, Span: 12,
		Labels: []string{"session_namespace"},
		Targets: []Target{
			inPhase("Pending"), inPhase("Creating"), inPhase("Running"), inPhase("Stopping"),
			inPhase("Stopped"), inPhase("Completed"), inPhase("Failed"),
		}},
}}

func inPhase(phase string) Target {
	return Target{`max by (session_namespace) (ambient_sessions{$job,session_namespace=~"$session_namespace",phase="` + phase + `"})`, phase}
}

var flowRow = Row{"Sessions", []Panel{
	stacked(graph("Sessions by phase", "Sessions that exist. Those that ended stay until they are deleted.", Count,
		Target{`sum by (phase) (max by (session_namespace, phase) (ambient_sessions{$job,session_namespace=~"$session_namespace"}))`, "{{phase}}"})),
	graph("Created per hour", "New sessions within the hour before each point, by project.", Count,
		Target{`sum by (session_namespace) (increase(ambient_sessions_total{$job,session_namespace=~"$session_namespace"}[1h]))`, "{{session_namespace}}"}),
	stacked(graph("Ended per hour", "Runs that ended within the hour before each point, by how.", Count,
		Target{`sum by (final_phase) (increase(ambient_sessions_completed_total{$job,session_namespace=~"$session_namespace"}[1h]))`, "{{final_phase}}"})),
	graph("Phase changes per minute", "Mean over the 5 minutes before each point.", Count,
		Target{`60 * sum by (from_phase, to_phase) (rate(ambient_session_phase_transitions_total{$job,session_namespace=~"$session_namespace"}[5m]))`, "{{from_phase}} → {{to_phase}}"}),
	graph("Duration of runs", "From the start of the runner to its end, over the hour before each point. Above the largest bucket, a day, it reads as a day.", Seconds,
		Target{`histogram_quantile(0.5, sum by (le) (rate(ambient_session_run_duration_seconds_bucket{$job,session_namespace=~"$session_namespace"}[1h])))`, "half within"},
		Target{`histogram_quantile(0.95, sum by (le) (rate(ambient_session_run_duration_seconds_bucket{$job,session_namespace=~"$session_namespace"}[1h])))`, "95% within"}),
	graph("Longest wait by phase", "How long the oldest session of a phase has been in it.", Seconds,
		Target{`max by (phase) (ambient_session_oldest_age_seconds{$job,session_namespace=~"$session_namespace"})`, "{{phase}}"}),
}}

var startRow = Row{"Start of sessions", []Panel{
	graph("Time to start", "From Pending to Running, over the hour before each point. A gap means that nothing started; with few starts a quantile is one session.", Seconds,
		Target{`histogram_quantile(0.5, sum by (le) (rate(ambient_session_startup_duration_seconds_bucket{$job,session_namespace=~"$session_namespace"}[1h])))`, "half within"},
		Target{`histogram_quantile(0.95, sum by (le) (rate(ambient_session_startup_duration_seconds_bucket{$job,session_namespace=~"$session_namespace"}[1h])))`, "95% within"},
		Target{`sum(rate(ambient_session_startup_duration_seconds_sum{$job,session_namespace=~"$session_namespace"}[1h])) / sum(rate(ambient_session_startup_duration_seconds_count{$job,session_namespace=~"$session_namespace"}[1h]))`, "mean"}),
	graph("Starts per hour", "How many sessions the figures beside are made of.", Count,
		Target{`sum(increase(ambient_session_startup_duration_seconds_count{$job,session_namespace=~"$session_namespace"}[1h]))`, "started"}),
	graph("Slow starts, all projects", "Share of the starts that took longer than a minute; the objective tolerates 5% over a month.", Share,
		Target{`max(` + slow("1h") + `{$job})`, "last hour"},
		Target{`max(` + slow("6h") + `{$job})`, "last 6 hours"},
		Target{`max(` + slow("1d") + `{$job})`, "last day"}),
	graph("Parts of a start", "95% within, over the hour before each point: pods by timestamps of whole seconds.", Seconds,
		Target{`histogram_quantile(0.95, sum by (le) (rate(ambient_pod_creation_duration_seconds_bucket{$job,session_namespace=~"$session_namespace"}[1h])))`, "Job to pod"},
		Target{`histogram_quantile(0.95, sum by (le) (rate(ambient_token_provision_duration_seconds_bucket{$job,session_namespace=~"$session_namespace"}[1h])))`, "runner's token"}),
}}

var troubleRow = Row{"Trouble", []Panel{
	stacked(graph("Failures per hour, by reason", "Runs that failed within the hour before each point.", Count,
		Target{`sum by (reason) (increase(ambient_session_run_outcomes_total{$job,session_namespace=~"$session_namespace",final_phase="Failed"}[1h])) > 0`, "{{reason}}"})),
	graph("Share of runs that fail", "Of the runs that ended within the hour before each point.", Share,
		Target{`sum by (session_namespace) (rate(ambient_sessions_completed_total{$job,session_namespace=~"$session_namespace",final_phase="Failed"}[1h])) / sum by (session_namespace) (rate(ambient_sessions_completed_total{$job,session_namespace=~"$session_namespace"}[1h]))`, "{{session_namespace}}"}),
	graph("Errors per minute", "Passes over a session that failed and are tried again, by type.", Count,
		Target{`60 * sum by (error_type) (rate(ambient_session_errors_total{$job,session_namespace=~"$session_namespace"}[5m]))`, "{{error_type}}"}),
	graph("Token renewals per hour", "Failures are tried again; what counts is that successes follow.", Count,
		Target{`sum by (result) (increase(ambient_token_renewals_total{$job,session_namespace=~"$session_namespace"}[1h]))`, "{{result}}"}),
}}

var operatorRow = Row{"Operator", []Panel{
	graph("Passes that succeed", "Share over the 5 minutes before each point, by controller.", Share,
		Target{`sum by (controller) (rate(controller_runtime_reconcile_total{$job,result!="error"}[5m])) / sum by (controller) (rate(controller_runtime_reconcile_total{$job}[5m]))`, "{{controller}}"}),
	graph("Duration of a pass over a session", "95% within, over the 5 minutes before each point, by the phase it began in.", Seconds,
		Target{`histogram_quantile(0.95, sum by (le, phase) (rate(ambient_reconcile_duration_seconds_bucket{$job}[5m])))`, "{{phase}}"}),
	graph("Objects that wait for a worker", "It should come back to 0. What a replica that does not lead has ready for its turn does not count.", Count,
		Target{`sum by (controller) (workqueue_depth{$job} and on (pod) ambient_operator_leader{$job} == 1)`, "{{controller}}"}),
	graph("Wait for a worker", "90% within, over the 10 minutes before each point.", Seconds,
		Target{`histogram_quantile(0.9, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket{$job}[10m])))`, "{{controller}}"}),
	graph("Busy workers", "Share of each controller's workers that are busy.", Share,
		Target{`sum by (controller) (controller_runtime_active_workers{$job}) / sum by (controller) (controller_runtime_max_concurrent_reconciles{$job})`, "{{controller}}"}),
	graph("Requests to the API server that fail", "Per minute, by answer: 403 is a right that is missing, 409 a conflict, 429 an API server that defends itself.", Count,
		Target{`60 * sum by (code) (rate(rest_client_requests_total{$job,code!~"2..|101"}[5m]))`, "{{code}}"}),
	graph("Leader", "1 on the replica that works.", Count,
		Target{`max by (pod) (ambient_operator_leader{$job})`, "{{pod}}"}),
	graph("Memory", "Resident memory of each replica.", Bytes,
		Target{`max by (pod) (process_resident_memory_bytes{$job})`, "{{pod}}"}),
	{Title: "Monitoring", About: "Which parts of the monitoring are in place: 1 yes, 0 no.", Kind: Table, Unit: Count, Span: 6, Labels: []string{"part"},
		Targets: []Target{{`max by (part) (ambient_monitoring_wired{$job})`, "In place"}}},
	{Title: "Builds", About: "What runs.", Kind: Table, Unit: Count, Span: 6, Labels: []string{"version", "revision"},
		Targets: []Target{{`count by (version, revision) (ambient_operator_build_info{$job})`, "Replicas"}}},
}}
