package observability

import (
	"slices"
	"testing"
)

// replica is what is scraped of a replica's being there.
func replica(t *testing.T, pod, up, leads string) []series {
	t.Helper()
	all := []series{of(t, pod, "up", "", up)}
	if leads != "" {
		all = append(all, of(t, pod, "ambient_operator_leader", "", leads))
	}
	return all
}

// well is two replicas of which the first leads, for two days.
func well(t *testing.T) []series {
	t.Helper()
	return slices.Concat(replica(t, "one", "1x6000", "1x6000"), replica(t, "two", "1x6000", "0x6000"))
}

func one(alert string, a alarm) map[string][]alarm { return map[string][]alarm{alert: {a}} }

func operatorScenarios(t *testing.T) []scenario {
	const absent, unscraped, leaderless, twice = "AgenticOperatorAbsent", "AgenticOperatorReplicaNotScraped", "AgenticOperatorNoLeader", "AgenticOperatorTwoLeaders"
	pod := func(name, value string) alarm { return alarm{map[string]string{"pod": name}, value} }
	return []scenario{{
		name:    "two replicas and nothing to do",
		samples: well(t),
		checks:  []at{{time: "5m"}, {time: "30m"}, {time: "2h"}},
	}, {
		name:   "never there",
		checks: []at{{time: "9m"}, {"11m", one(absent, alarm{})}, {"3h", one(absent, alarm{})}},
	}, {
		name:    "there, then gone with its targets",
		samples: replica(t, "one", "1x40 stale", "1x40 stale"),
		checks:  []at{{time: "20m"}, {time: "29m"}, {"31m", one(absent, alarm{})}},
	}, {
		name:    "all down",
		samples: slices.Concat(replica(t, "one", "1x40 0x100", "1x40 stale"), replica(t, "two", "1x40 0x100", "0x40 stale")),
		checks: []at{{time: "24m"}, {"50m", map[string][]alarm{
			absent: {{}}, unscraped: {pod("one", "0%"), pod("two", "0%")},
		}}},
	}, {
		name: "scrapes missed now and then, at times by all",
		samples: slices.Concat(
			replica(t, "one", "1x20 0 1x20 0 0 1x40 0 1x60", "1x20 stale 1x20 stale stale 1x40 stale 1x60"),
			replica(t, "two", "1x10 0 1x9 0 1x20 0 0 1x40 0 1x60", "0x10 stale 0x9 stale 0x20 stale stale 0x40 stale 0x60")),
		checks: []at{{time: "10m30s"}, {time: "11m"}, {time: "21m30s"}, {time: "42m"}, {time: "1h"}},
	}, {
		name:    "the leader is not scraped, and perhaps leads",
		samples: slices.Concat(replica(t, "one", "1x40 0x100", "1x40 stale"), replica(t, "two", "1x140", "0x140")),
		checks:  []at{{time: "25m"}, {"45m", one(unscraped, pod("one", "0%"))}, {"65m", one(unscraped, pod("one", "0%"))}},
	}, {
		name:    "a replica answers every third scrape",
		samples: slices.Concat(replica(t, "one", "1x140", "1x140"), []series{of(t, "two", "up", "", "1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0")}),
		// From 25m to 35m there are 20 samples (the window is open at its left), 7 of them good.
		checks: []at{{"35m", one(unscraped, pod("two", "35%"))}},
	}, {
		name:    "an update replaces both replicas, one after the other",
		samples: slices.Concat(replica(t, "one", "1x40 stale", "1x40 stale"), replica(t, "two", "1x44 0 stale", "0x40 1 1x2 stale"), replica(t, "three", "_x38 0 0 1x100", "_x40 0x4 1x96"), replica(t, "four", "_x42 0 0 1x100", "_x44 0x96")),
		checks:  []at{{time: "21m"}, {time: "23m"}, {time: "26m"}, {time: "31m"}, {time: "33m"}, {time: "45m"}},
	}, {
		name:    "nobody leads",
		samples: slices.Concat(replica(t, "one", "1x100", "1x20 0x80"), replica(t, "two", "1x100", "0x100")),
		checks:  []at{{time: "10m"}, {time: "19m"}, {"21m", one(leaderless, alarm{})}, {"40m", one(leaderless, alarm{})}},
	}, {
		name:    "the leader changes, with a minute between",
		samples: slices.Concat(replica(t, "one", "1x100", "1x20 0x80"), replica(t, "two", "1x100", "0x22 1x78")),
		checks:  []at{{time: "10m30s"}, {time: "12m"}, {time: "22m"}, {time: "40m"}},
	}, {
		name:    "both lead",
		samples: slices.Concat(replica(t, "one", "1x100", "1x100"), replica(t, "two", "1x100", "0x20 1x20 _ 1x59")),
		checks:  []at{{time: "19m"}, {"21m", one(twice, alarm{value: "2"})}, {"40m", one(twice, alarm{value: "2"})}},
	}}
}
