package observability

import (
	"slices"
	"testing"
)

// known answers: what each documented query must say of the samples, by the query's question.
var answers = map[string]answer{
	// 90 of 100 starts took at most 10 s, the others at most 20 s: the 95th is in the middle of those.
	"Within what time do 95 of 100 sessions start, by project? (seconds)": {value: 15, labels: `session_namespace="team-a"`},
	"How long does a start take on average, by project? (seconds)":        {value: 12, labels: `session_namespace="team-a"`},
	// Two by the first leader, one by the second.
	"How many sessions were created in the last hour, by project?": {value: 3, labels: `session_namespace="team-a"`},
	"How many phase changes happen per minute?":                    {value: 2, labels: `from_phase="Pending",to_phase="Creating"`},
	"How many errors per minute, by phase and type?":               {value: 4, labels: `phase="Creating",error_type="token"`},
	"Which share of the passes over sessions succeeds?":            {value: 0.9},
	"Which share of the runs fails, by project?":                   {value: 0.25, labels: `session_namespace="team-a"`},
	// Both replicas tell of the three of team-a, as one follows the other.
	"How many sessions are there now, by phase?": {value: 5, labels: `phase="Running"`},
}

// TestDocumentedQueriesAnswerRightly: of known samples, with a change of leader in them, each documented
// query says what is so.
func TestDocumentedQueriesAnswerRightly(t *testing.T) {
	program := promtool(t)
	s := scenario{name: "documented queries", samples: slices.Concat(
		started(t), ended(t, "one", "team-a", "0+3x400", "0+1x400"),
		[]series{
			of(t, "one", "ambient_sessions_total", `namespace="team-a"`, "0x20 1x20 2x20 stale"),
			of(t, "two", "ambient_sessions_total", `namespace="team-a"`, "_x61 0x10 1x100"),
			of(t, "one", "ambient_session_phase_transitions_total", `namespace="team-a",from_phase="Pending",to_phase="Creating"`, "0+1x400"),
			of(t, "one", "ambient_session_errors_total", `namespace="team-a",phase="Creating",error_type="token"`, "0+2x400"),
			of(t, "one", "ambient_reconcile_duration_seconds_count", `phase="Running",success="true"`, "0+9x400"),
			of(t, "one", "ambient_reconcile_duration_seconds_count", `phase="Running",success="false"`, "0+1x400"),
			of(t, "one", "ambient_sessions", `namespace="team-a",phase="Running"`, "3x400"),
			of(t, "two", "ambient_sessions", `namespace="team-a",phase="Running"`, "3x400"),
			of(t, "two", "ambient_sessions", `namespace="team-b",phase="Running"`, "2x400"),
		},
	)}
	for _, q := range Queries {
		a, is := answers[q.Question]
		if !is {
			t.Errorf("nobody knows the answer to: %s", q.Question)
		}
		a.time, a.expr = "1h", q.Expr
		s.answers = append(s.answers, a)
	}
	run(t, program, "test", "rules", written(t, "scenario.yaml", s.file(written(t, "rules.yaml", Rules(Namespace)))))
}

// started is what counts ten starts at each scrape, of which one takes long.
func started(t *testing.T) []series {
	t.Helper()
	var all []series
	for le, values := range map[string]string{"5.0": "0x400", "10.0": "0+9x400", "20.0": "0+10x400", "+Inf": "0+10x400"} {
		all = append(all, of(t, "one", "ambient_session_startup_duration_seconds_bucket", `namespace="team-a",le="`+le+`"`, values))
	}
	return append(all,
		of(t, "one", "ambient_session_startup_duration_seconds_sum", `namespace="team-a"`, "0+120x400"),
		of(t, "one", "ambient_session_startup_duration_seconds_count", `namespace="team-a"`, "0+10x400"))
}
