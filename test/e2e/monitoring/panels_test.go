//go:build e2e

package monitoring

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/common/model"

	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/observability"
)

// ended is how the sessions ended that counted ran.
var ended = map[string]float64{"Completed": 8, "Failed": 2, "Stopped": 2}

// increased bounds what increase makes of counts: it reckons what happened beyond the first and the
// last scrape.
func increased(counts map[string]float64) map[string]span {
	bounds := map[string]span{}
	for value, is := range counts {
		bounds[value] = span{is - 0.05*is, is + 0.05*is}
	}
	return bounds
}

func constant(value float64, names ...string) map[string]span {
	bounds := map[string]span{}
	for _, name := range names {
		bounds[name] = span{value, value}
	}
	return bounds
}

// existing are the sessions that exist, by phase.
func existing() map[string]span {
	phases := constant(0, "Pending", "Creating", "Running", "Stopping")
	for phase, is := range ended {
		phases[phase] = span{is, is}
	}
	return phases
}

// startup bounds a quantile of the time to start, or with 0 the mean.
func (is *truth) startup(q float64) sees {
	least, most := mean(is.starts)
	if q > 0 {
		least, most = quantile(q, is.starts, metrics.StartupDuration)
	}
	return between(least, most)
}

func (is *truth) run(q float64) sees {
	return between(quantile(q, is.runs, metrics.RunDuration))
}

// slow bounds the share of slow starts; with true it may be no number, as nothing may have started
// within a short window.
func (is *truth) slow(within time.Duration) sees {
	surely, maybe := 0.0, 0.0
	for _, s := range is.starts {
		if s.least > observability.StartWithin {
			surely++
		}
		if s.most > observability.StartWithin {
			maybe++
		}
	}
	all := float64(len(is.starts))
	if is.recent(within) < len(is.starts) {
		surely = 0 // which of them the window has is not known
		if maybe > 0 {
			maybe = all
		}
	}
	check := between(max(0, surely/all-0.05), min(1, maybe/all+0.05*min(1, maybe)))
	return func(result model.Vector) string {
		if len(result) == 1 && math.IsNaN(float64(result[0].Value)) && is.recent(within) < len(is.starts) {
			return ""
		}
		return check(result)
	}
}

// changes bounds the phase changes per minute of the last five. Those at the edges of the window may
// be in it or not.
func (is *truth) changes(result model.Vector) string {
	least, most := is.recent(4*time.Minute+45*time.Second), is.recent(5*time.Minute+15*time.Second)
	for _, sample := range result {
		if sample.Metric["from_phase"] == "Pending" && sample.Metric["to_phase"] == "Creating" {
			return outside(sample, 0.9*float64(least)/5, 1.1*float64(most)/5)
		}
	}
	return fmt.Sprintf("there is no change from Pending to Creating in %v", result)
}

// panels is what each panel of the dashboard must show, in the order of its targets.
func (is *truth) panels() map[string][]sees {
	here := func(s span) sees { return exactly("session_namespace", map[string]span{is.project: s}) }
	phase := func(name string) sees { return here(existing()[name]) }
	_, longest := quantile(1, is.starts, metrics.StartupDuration)
	return map[string][]sees{
		"Running": {about(0, 0)}, "Waiting to run": {about(0, 0)}, "Longest wait": {about(0, 0)},
		"Created, last hour": {about(12, 0.6)}, "Failed, last hour": {about(2, 0.1)}, "Replicas up": {about(float64(is.pods), 0)},
		"Projects": {phase("Pending"), phase("Creating"), phase("Running"), phase("Stopping"), phase("Stopped"), phase("Completed"), phase("Failed")},

		"Sessions by phase":        {exactly("phase", existing())},
		"Created per hour":         {here(span{11.4, 12.6})},
		"Ended per hour":           {exactly("final_phase", increased(ended))},
		"Phase changes per minute": {is.changes},
		"Duration of runs":         {is.run(0.5), is.run(0.95)},
		"Longest wait by phase":    {exactly("phase", constant(0, "Pending", "Creating", "Stopping"))},

		"Time to start":             {is.startup(0.5), is.startup(0.95), is.startup(0)},
		"Starts per hour":           {about(12, 0.6)},
		"Slow starts, all projects": {is.slow(time.Hour), is.slow(6 * time.Hour), is.slow(24 * time.Hour)},
		"Parts of a start":          {between(0, longest), between(0, longest)},

		"Failures per hour, by reason": {exactly("reason", increased(map[string]float64{"RunnerFailed": 2}))},
		"Share of runs that fail":      {here(span{2.0/12 - 0.01, 2.0/12 + 0.01})},
		"Errors per minute":            {each(5, 0, 1)},
		"Token renewals per hour":      {exactly("result", map[string]span{"success": {11.4, 12.6}, "failure": {0, 0}})},

		"Passes that succeed":                  {idle(both(each(1, 0.9, 1), among("controller", map[string]span{"agenticsession": {0.9, 1}})))},
		"Duration of a pass over a session":    {idle(each(2, 0, 10))},
		"Objects that wait for a worker":       {each(2, 0, 0)},
		"Wait for a worker":                    {idle(both(each(1, 0, 10), among("controller", map[string]span{"agenticsession": {0, 10}})))},
		"Busy workers":                         {each(2, 0, 0.5)},
		"Requests to the API server that fail": {refusals},
		"Leader":                               {is.oneLeads},
		"Memory":                               {each(is.pods, 10<<20, 512<<20)},
		"Monitoring": {exactly("part", map[string]span{
			"service_monitor": {1, 1}, "prometheus_rule": {1, 1}, "scrape_token": {1, 1}, "network_policy": {1, 1}, "dashboard": {1, 1},
			"quick_start": {0, 0}, "yaml_sample": {0, 0}, "user_workload_monitoring": {1, 1},
		})},
		"Builds": {about(float64(is.pods), 0)},
	}
}

func both(one, other sees) sees {
	return func(result model.Vector) string {
		if said := one(result); said != "" {
			return said
		}
		return other(result)
	}
}

// refusals may be of versions that changed meanwhile and of objects that are not there, but never of
// rights.
func refusals(result model.Vector) string {
	for _, sample := range result {
		switch sample.Metric["code"] {
		case "404", "409":
		default:
			if sample.Value != 0 {
				return fmt.Sprintf("%v", sample)
			}
		}
	}
	return ""
}

// oneLeads wants each replica to say whether it leads, and one that does. A pod that was replaced may
// still be told of.
func (is *truth) oneLeads(result model.Vector) string {
	sum := 0.0
	for _, sample := range result {
		sum += float64(sample.Value)
	}
	if sum != 1 || len(result) < is.pods {
		return fmt.Sprint(result)
	}
	return ""
}
