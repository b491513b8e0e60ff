package observability

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// span is how many times in a row a replica exports what a real one did.
type span struct {
	replica string
	times   int
}

// replayed is what comes of a replica that is scraped again and again. It exports what real ones did,
// one after the other.
func replayed(t *testing.T, pod string, spans ...span) []series {
	t.Helper()
	values, before := map[string]string{}, 0
	for _, s := range spans {
		for _, sample := range slices.Concat([][]string{{up.Name, "", "1"}}, scraped(t, s.replica)) {
			value, err := strconv.ParseFloat(sample[2], 64)
			if err != nil {
				t.Fatalf("%s: %v", sample[0], err)
			}
			name := of(t, pod, sample[0], sample[1], "").name
			if values[name] == "" && before > 0 {
				values[name] = fmt.Sprintf("_x%d", before)
			}
			values[name] += fmt.Sprintf(" %sx%d", strconv.FormatFloat(value, 'f', -1, 64), s.times-1)
		}
		before += s.times
	}
	var all []series
	for name, value := range values {
		all = append(all, series{name, value})
	}
	return all
}

// scrapedScenarios are of samples that nobody wrote.
func scrapedScenarios(t *testing.T) []scenario {
	t.Helper()
	const leaderless, twice, failing = "AgenticOperatorNoLeader", "AgenticOperatorTwoLeaders", "AgenticProjectSessionsFailing"
	leads, waits := span{"leader", 121}, span{"standby", 121}
	return []scenario{{
		name:    "real scrapes of one that leads and one that stands by",
		samples: slices.Concat(replayed(t, "one", leads), replayed(t, "two", waits)),
		checks:  []at{{time: "5m"}, {time: "20m"}, {time: "1h"}},
	}, {
		name:    "real scrapes of two that stand by",
		samples: slices.Concat(replayed(t, "one", waits), replayed(t, "two", waits)),
		checks:  []at{{time: "9m"}, {"30m", one(leaderless, alarm{})}, {"1h", one(leaderless, alarm{})}},
	}, {
		name:    "real scrapes of two that lead",
		samples: slices.Concat(replayed(t, "one", leads), replayed(t, "two", leads)),
		checks:  []at{{time: "9m"}, {"30m", one(twice, alarm{value: "2"})}, {"1h", one(twice, alarm{value: "2"})}},
	}, {
		name:    "real scrapes of one that leads, before and after six sessions failed",
		samples: slices.Concat(replayed(t, "one", span{"leader", 41}, span{"failing", 80}), replayed(t, "two", waits)),
		checks: []at{{time: "20m"}, {time: "29m"}, {"32m", one(failing, alarm{map[string]string{"session_namespace": "team-a"}, "100%"})},
			{"1h", one(failing, alarm{map[string]string{"session_namespace": "team-a"}, "100%"})}},
	}}
}
