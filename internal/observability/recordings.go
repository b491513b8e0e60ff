package observability

import "fmt"

// The objective of a session's start: Objective of them within StartWithin seconds, over a month.
// StartWithin is an edge of the histogram's buckets, so that the share is counted and not guessed.
const (
	StartWithin = 60
	Objective   = 0.95
)

// sloWindows are the windows of the startup objective. None is longer than a day, which is what
// OpenShift's user workload monitoring keeps by default.
var sloWindows = []string{"5m", "30m", "1h", "2h", "6h", "1d"}

// Recordings are the series that alerts and dashboards share.
var Recordings = recordings()

func recordings() []Recording {
	var all []Recording
	for _, window := range sloWindows {
		all = append(all, Recording{
			Record: slow(window),
			// Prometheus 3 writes the edge as 60.0, older ones as 60.
			Expr: fmt.Sprintf(`1 - (
  sum(rate(ambient_session_startup_duration_seconds_bucket{$scope,le=~"%d(\\.0)?"}[%s]))
  / sum(rate(ambient_session_startup_duration_seconds_count{$scope}[%s]))
)`, StartWithin, window, window),
		})
	}
	return all
}

// slow names the share of starts in the window that took longer than StartWithin.
func slow(window string) string {
	return "job:ambient_session_startup_slow:ratio_rate" + window
}
