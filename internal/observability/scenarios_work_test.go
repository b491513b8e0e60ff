package observability

import (
	"slices"
	"testing"
)

// passes is what a controller counts.
func passes(t *testing.T, pod, good, bad string) []series {
	t.Helper()
	return []series{
		of(t, pod, "controller_runtime_reconcile_total", `controller="agenticsession",result="success"`, good),
		of(t, pod, "controller_runtime_reconcile_total", `controller="agenticsession",result="error"`, bad),
	}
}

// queue is what a controller's workers and queue show; waited are how many items had waited for up to
// 1, 10, 100 and any number of seconds.
func queue(t *testing.T, pod, active string, waited ...string) []series {
	t.Helper()
	all := []series{
		of(t, pod, "controller_runtime_active_workers", `controller="agenticsession"`, active),
		of(t, pod, "controller_runtime_max_concurrent_reconciles", `controller="agenticsession"`, "10x200"),
	}
	for i, le := range []string{"1.0", "10.0", "100.0", "+Inf"} {
		all = append(all, of(t, pod, "workqueue_queue_duration_seconds_bucket", `controller="agenticsession",name="agenticsession",le="`+le+`"`, waited[i]))
	}
	return all
}

func renewals(t *testing.T, pod, namespace, good, bad string) []series {
	t.Helper()
	return []series{
		of(t, pod, "ambient_token_renewals_total", `namespace="`+namespace+`",result="success"`, good),
		of(t, pod, "ambient_token_renewals_total", `namespace="`+namespace+`",result="failure"`, bad),
	}
}

func workScenarios(t *testing.T) []scenario {
	const failing, saturated, renewing, expiring = "AgenticOperatorReconcileErrors", "AgenticOperatorWorkqueueSaturated", "AgenticTokenRenewalFailing", "AgenticTokenExpiring"
	controller := func(value string) alarm {
		return alarm{map[string]string{"controller": "agenticsession"}, value}
	}
	project := alarm{labels: map[string]string{"session_namespace": "team-a"}}
	return []scenario{{
		name:    "half of the passes fail",
		samples: slices.Concat(well(t), passes(t, "one", "0+10x200", "0x20 10+10x180")),
		checks:  []at{{time: "10m"}, {time: "25m"}, {"50m", one(failing, controller("50%"))}},
	}, {
		name:    "one pass of twenty fails",
		samples: slices.Concat(well(t), passes(t, "one", "0+19x200", "0+1x200")),
		checks:  []at{{time: "30m"}, {time: "90m"}},
	}, {
		name:    "nothing but one session that fails in each pass, with scrapes missed",
		samples: slices.Concat(well(t), passes(t, "one", "7x200", "0+1x40 _ 42+1x30 _ _ 75+1x120")),
		checks:  []at{{"20m", one(failing, controller("100%"))}, {"37m", one(failing, controller("100%"))}, {"80m", one(failing, controller("100%"))}},
	}, {
		name: "few failures, over restarts and a change of leader",
		// The counters of the first go back to 0 at 20m, at 40m the second takes over.
		samples: slices.Concat(well(t), passes(t, "one", "500+19x39 0+19x40 stale", "100+1x39 0+1x40 stale"), passes(t, "two", "_x80 0+19x120", "_x80 0+1x120")),
		checks:  []at{{time: "21m"}, {time: "38m"}, {time: "56m"}, {time: "90m"}},
	}, {
		name:    "all workers busy and items wait for minutes",
		samples: slices.Concat(well(t), queue(t, "one", "4x20 10x180", "0+1x200", "0+2x200", "0+10x200", "0+20x200")),
		checks:  []at{{time: "15m"}, {"45m", one(saturated, controller(""))}, {"90m", one(saturated, controller(""))}},
	}, {
		name:    "all workers hang, and nothing leaves the queue",
		samples: slices.Concat(well(t), queue(t, "one", "10x10 _ 10x189", "50x200", "60x200", "60x200", "60x200")),
		checks:  []at{{time: "14m"}, {"45m", one(saturated, controller(""))}},
	}, {
		name:    "all workers busy and nothing waits",
		samples: slices.Concat(well(t), queue(t, "one", "10x200", "0+20x200", "0+20x200", "0+20x200", "0+20x200")),
		checks:  []at{{time: "45m"}, {time: "90m"}},
	}, {
		name:    "a busy leader is replaced by one that is not",
		samples: slices.Concat(well(t), queue(t, "one", "10x20 stale", "0x20 stale", "0x20 stale", "0+1x20 stale", "0+9x20 stale"), queue(t, "two", "_x20 1x180", "_x20 0+5x180", "_x20 0+5x180", "_x20 0+5x180", "_x20 0+5x180")),
		checks:  []at{{time: "12m"}, {time: "26m"}, {time: "45m"}},
	}, {
		name:    "tokens are not renewed",
		samples: slices.Concat(well(t), renewals(t, "one", "team-a", "5x200", "0x20 1+1x180"), renewals(t, "one", "team-b", "0+1x200", "0x200")),
		checks:  []at{{time: "20m"}, {"30m", one(renewing, project)}, {"90m", one(renewing, project)}},
	}, {
		name:    "the counter of failures is born with the first, and scrapes are missed",
		samples: slices.Concat(well(t), renewals(t, "one", "team-a", "_x20 0x180", "_x20 1+1x20 _ _ 24+1x160")),
		checks:  []at{{time: "20m"}, {"30m", one(renewing, project)}, {"60m", one(renewing, project)}},
	}, {
		name:    "a renewal fails once, and the operator restarts",
		samples: slices.Concat(well(t), renewals(t, "one", "team-a", "3x20 3x20 0x160", "0x20 1x20 0x160")),
		checks:  []at{{time: "15m"}, {time: "22m"}, {time: "26m"}, {time: "60m"}},
	}, {
		name:    "a token is about to expire",
		samples: slices.Concat(well(t), []series{of(t, "one", "ambient_token_next_expiry_timestamp_seconds", "", "3600x100 _ 3600x99")}),
		checks:  []at{{time: "57m"}, {"60m", one(expiring, alarm{value: "0s"})}, {"70m", one(expiring, alarm{value: "-10m 0s"})}},
	}, {
		name: "tokens are renewed in time, by the next leader too",
		samples: slices.Concat(well(t), []series{
			of(t, "one", "ambient_token_next_expiry_timestamp_seconds", "", "3600x79 6000x20 stale"),
			of(t, "two", "ambient_token_next_expiry_timestamp_seconds", "", "_x101 6000x50 9600x100"),
		}),
		checks: []at{{time: "39m"}, {time: "51m"}, {time: "80m"}, {time: "110m"}},
	}}
}
