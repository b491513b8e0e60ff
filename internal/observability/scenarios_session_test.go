package observability

import (
	"fmt"
	"slices"
	"testing"
)

func oldest(t *testing.T, pod, namespace, phase, values string) series {
	t.Helper()
	return of(t, pod, "ambient_session_oldest_age_seconds", fmt.Sprintf("namespace=%q,phase=%q", namespace, phase), values)
}

func sessionScenarios(t *testing.T) []scenario {
	team := func(value string) alarm {
		return alarm{map[string]string{"session_namespace": "team-a"}, value}
	}
	var all []scenario
	for i, phase := range []string{"Pending", "Creating", "Stopping"} {
		alert, limit := "AgenticSessionsStuck"+phase, []int{30, 15, 15}[i]
		all = append(all, scenario{
			name: "a session stays " + phase,
			// Another project's session goes on; the 76th scrape fails; at the 80th the leader changes.
			samples: slices.Concat(well(t), []series{
				oldest(t, "one", "team-a", phase, "0+30x75 stale 2310+30x3 stale"),
				oldest(t, "two", "team-a", phase, "_x81 2430+30x100"),
				oldest(t, "one", "team-b", phase, "0 30 60 0x77 stale"),
			}),
			checks: []at{
				{time: fmt.Sprintf("%dm", limit+4)},
				{fmt.Sprintf("%dm", limit+6), one(alert, team(fmt.Sprintf("%dm 0s", limit+6)))},
				{"39m", one(alert, team("39m 0s"))},
				{"42m", one(alert, team("42m 0s"))},
				{"60m", one(alert, team("1h 0m 0s"))},
			},
		}, scenario{
			name:    phase + " ends in time, again and again, as each first session of a project",
			samples: slices.Concat(well(t), []series{oldest(t, "one", "team-a", phase, "_x10 0+30x29 0+30x29 0+30x29 0x50"), oldest(t, "one", "team-b", phase, "_x20 0+30x5 0x100")}),
			checks:  []at{{time: "10m"}, {time: "20m"}, {time: "35m"}, {time: "60m"}},
		})
	}
	return all
}

// ended is what counts the ends of a project's runs.
func ended(t *testing.T, pod, namespace, completed, failed string) []series {
	t.Helper()
	labels := `namespace="` + namespace + `",final_phase=`
	return []series{
		of(t, pod, "ambient_sessions_completed_total", labels+`"Completed"`, completed),
		of(t, pod, "ambient_sessions_completed_total", labels+`"Failed"`, failed),
		of(t, pod, "ambient_sessions_completed_total", labels+`"Stopped"`, "0x400"),
	}
}

func endScenarios(t *testing.T) []scenario {
	const fleet, project = "AgenticSessionsFailing", "AgenticProjectSessionsFailing"
	team := func(name, value string) alarm {
		return alarm{map[string]string{"session_namespace": name}, value}
	}
	return []scenario{{
		name: "many fail, in all projects",
		// A third of a run and of two runs a minute.
		samples: slices.Concat(well(t), ended(t, "one", "team-a", "0+2x400", "0+1x400"), ended(t, "one", "team-b", "0+2x400", "0+1x400")),
		checks:  []at{{time: "8m"}, {"2h", one(fleet, alarm{value: "33.33%"})}},
	}, {
		name:    "most fail, in one small project, with a restart and missed scrapes",
		samples: slices.Concat(well(t), ended(t, "one", "team-a", "0+2x400", "0x400"), ended(t, "one", "team-b", "0x400", "0x19 1x19 2x19 _ _ 3x19 0x19 1x19 2x19 3x19 4x19 5x19 6x60")),
		checks:  []at{{time: "40m"}, {"2h", one(project, team("team-b", "100%"))}},
	}, {
		name:    "one of one fails, and one of ten",
		samples: slices.Concat(well(t), ended(t, "one", "team-a", "0x400", "0x20 1x380"), ended(t, "one", "team-b", "0+9x400", "0+1x400")),
		checks:  []at{{time: "15m"}, {time: "30m"}, {time: "2h"}},
	}, {
		name:    "few fail while one leader replaces the other",
		samples: slices.Concat(well(t), ended(t, "one", "team-a", "900+9x100 stale", "100+1x100 stale"), ended(t, "two", "team-a", "_x100 0+9x100", "_x100 0+1x100")),
		checks:  []at{{time: "40m"}, {time: "52m"}, {time: "70m"}},
	}}
}

// starts is what counts a project's starts: those within the objective, and all.
func starts(t *testing.T, pod, within, all string) []series {
	t.Helper()
	return []series{
		of(t, pod, "ambient_session_startup_duration_seconds_bucket", `namespace="team-a",le="60.0"`, within),
		of(t, pod, "ambient_session_startup_duration_seconds_count", `namespace="team-a"`, all),
	}
}

func startScenarios(t *testing.T) []scenario {
	const fast, slow = "AgenticSessionStartupBurnFast", "AgenticSessionStartupBurnSlow"
	both := func(now, day string) map[string][]alarm {
		return map[string][]alarm{fast: {{value: now}}, slow: {{value: day}}}
	}
	old := slices.Concat(well(t), []series{
		of(t, "one", "ambient_session_startup_duration_seconds_bucket", `namespace="team-a",le="60"`, "0x300"),
		of(t, "one", "ambient_session_startup_duration_seconds_count", `namespace="team-a"`, "0+1x300"),
	})
	return []scenario{{
		name:    "no start is quick, from one moment on",
		samples: slices.Concat(well(t), starts(t, "one", "0+1x120 120x200", "0+1x320")),
		checks:  []at{{time: "60m"}, {time: "75m"}, {"2h", both("100%", "50%")}},
		answers: []answer{{"2h", `job:ambient_session_startup_slow:ratio_rate5m`, 1, `__name__="job:ambient_session_startup_slow:ratio_rate5m",job="` + Job + `",namespace="` + Namespace + `"`}},
	}, {
		name:    "the edge of the bucket is written without a point",
		samples: old,
		checks:  []at{{"90m", both("100%", "100%")}},
	}, {
		name:    "a handful of slow starts",
		samples: slices.Concat(well(t), starts(t, "one", "0x400", "0x10 1x10 2x10 3x10 4x360")),
		checks:  []at{{time: "14m"}, {time: "19m30s"}, {time: "30m"}, {time: "90m"}},
	}, {
		name: "one start of fifty is slow, over a restart, missed scrapes and a change of leader",
		samples: slices.Concat(well(t),
			starts(t, "one", "9800+49x60 _ _ 12887+49x57 0+49x60 stale", "10000+50x60 _ _ 13150+50x57 0+50x60 stale"),
			starts(t, "two", "_x181 0+49x200", "_x181 0+50x200")),
		checks: []at{{time: "31m"}, {time: "61m"}, {time: "92m"}, {time: "2h"}},
	}, {
		name:    "the trouble is over, and the day a bad one",
		samples: slices.Concat(well(t), starts(t, "one", "0x180 1+1x200", "0+1x380")),
		checks:  []at{{"90m", both("100%", "100%")}, {"180m", one(slow, alarm{value: "50%"})}},
	}, {
		name: "one start of five is slow, for a day", interval: "5m",
		samples: slices.Concat(well(t), starts(t, "one", "0+4x400", "0+5x400")),
		checks:  []at{{"25h", one(slow, alarm{value: "20%"})}},
	}}
}
