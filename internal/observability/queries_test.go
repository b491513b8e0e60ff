package observability

import (
	"math"
	"regexp"
	"slices"
	"testing"
)

// ofAll is what stands in a plain form's answer for the project, where monitoring enforces its label.
const ofAll = `namespace="` + Namespace + `"`

// known answers: what each documented query must say of the samples, by the query's question. The plain
// forms must say what they are documented to: what is meant, or what misleads. Where they group by
// namespace, that is the project only if a scrape leaves the label as it is exported (unenforced).
var answers = map[string]struct{ answer, plain, unenforced answer }{
	// 90 of 100 starts took at most 10 s, the others at most 20 s: the 95th is in the middle of those.
	"Within what time do 95 of 100 sessions start, by project? (seconds)": {
		answer: answer{value: 15, labels: `session_namespace="team-a"`}, plain: answer{value: 15, labels: ofAll}, unenforced: answer{value: 15, labels: `namespace="team-a"`}},
	"How long does a start take on average, by project? (seconds)": {
		answer: answer{value: 12, labels: `session_namespace="team-a"`}, plain: answer{value: 12}, unenforced: answer{value: 12}},
	// Two by the first leader, one by the second. The first was scraped for 61 intervals of 30 s after its
	// first sample and then no more: unrounded, half an interval is made up for it.
	"How many sessions were created in the last hour, by project?": {
		answer: answer{value: 3, labels: `session_namespace="team-a"`}, plain: answer{value: 1 + 2*61.5/61, labels: ofAll}, unenforced: answer{value: 1 + 2*61.5/61, labels: `namespace="team-a"`}},
	"How many phase changes happen per minute?": {
		answer: answer{value: 2, labels: `from_phase="Pending",to_phase="Creating"`}, plain: answer{value: 2.0 / 60, labels: `from_phase="Pending",to_phase="Creating"`},
		unenforced: answer{value: 2.0 / 60, labels: `from_phase="Pending",to_phase="Creating"`}},
	"How many errors per minute, by phase and type?": {
		answer: answer{value: 4, labels: `phase="Creating",error_type="token"`}, plain: answer{value: 4.0 / 60, labels: `phase="Creating",error_type="token"`},
		unenforced: answer{value: 4.0 / 60, labels: `phase="Creating",error_type="token"`}},
	"Which share of the passes over sessions succeeds?": {answer: answer{value: 0.9}, plain: answer{value: 0.9}, unenforced: answer{value: 0.9}},
	"Which share of the runs fails, by project?": {
		answer: answer{value: 0.25, labels: `session_namespace="team-a"`}, plain: answer{value: 0.25}, unenforced: answer{value: 0.25}},
	// Both replicas tell of the three of team-a, as one follows the other; the plain form adds them up.
	"How many sessions are there now, by phase?": {
		answer: answer{value: 5, labels: `phase="Running"`}, plain: answer{value: 8, labels: `phase="Running"`}, unenforced: answer{value: 8, labels: `phase="Running"`}},
}

// TestDocumentedQueriesAnswerRightly: of known samples, with a change of leader in them, each documented
// query says what is so, and its plain form what it is said to.
func TestDocumentedQueriesAnswerRightly(t *testing.T) {
	program := promtool(t)
	enforced := scenario{name: "documented queries", samples: slices.Concat(
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
	free := scenario{name: "plain forms, of metrics as they are exported"}
	for _, one := range enforced.samples {
		free.samples = append(free.samples, unenforced(one))
	}
	ask := func(s *scenario, expr string, a answer) {
		// Interpolation in floating point is right to many digits, but not to the last.
		a.time, a.expr, a.value = "1h", "round("+expr+", 1e-6)", math.Round(a.value*1e6)/1e6
		s.answers = append(s.answers, a)
	}
	for _, q := range Queries {
		known, is := answers[q.Question]
		if !is {
			t.Errorf("nobody knows the answer to: %s", q.Question)
		}
		ask(&enforced, q.Expr, known.answer)
		ask(&enforced, q.Plain, known.plain)
		ask(&free, q.Plain, known.unenforced)
	}
	rules := written(t, "rules.yaml", Rules(Namespace))
	for _, s := range []scenario{enforced, free} {
		t.Run(s.name, func(t *testing.T) {
			run(t, program, "test", "rules", written(t, "scenario.yaml", s.file(rules)))
		})
	}
}

var (
	ofTarget  = regexp.MustCompile(`\b(namespace|session_namespace)="[^"]*",?`)
	ofSession = regexp.MustCompile(`\bexported_namespace=`)
)

// unenforced is a series as a scrape stores it that is none of our ServiceMonitor and leaves labels as
// they are exported.
func unenforced(one series) series {
	return series{ofSession.ReplaceAllString(ofTarget.ReplaceAllString(one.name, ""), "namespace="), one.values}
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
