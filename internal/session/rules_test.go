package session_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

type edge struct{ from, to v1alpha1.Phase }

// legal are the edges of the machine, written down once more by hand: a change of the rules that
// adds or loses one has to be made here too.
var legal = []edge{
	{v1alpha1.PhasePending, v1alpha1.PhaseCreating},
	{v1alpha1.PhasePending, v1alpha1.PhaseFailed},
	{v1alpha1.PhasePending, v1alpha1.PhaseStopped},
	{v1alpha1.PhaseCreating, v1alpha1.PhaseRunning},
	{v1alpha1.PhaseCreating, v1alpha1.PhaseCompleted},
	{v1alpha1.PhaseCreating, v1alpha1.PhaseFailed},
	{v1alpha1.PhaseCreating, v1alpha1.PhaseStopping},
	{v1alpha1.PhaseRunning, v1alpha1.PhaseCompleted},
	{v1alpha1.PhaseRunning, v1alpha1.PhaseFailed},
	{v1alpha1.PhaseRunning, v1alpha1.PhaseStopping},
	{v1alpha1.PhaseStopping, v1alpha1.PhaseStopped},
	{v1alpha1.PhaseStopped, v1alpha1.PhasePending},
	{v1alpha1.PhaseCompleted, v1alpha1.PhasePending},
	{v1alpha1.PhaseFailed, v1alpha1.PhasePending},
}

type option struct {
	name   string
	change change
}

// dimensions are the independent sides of a world. Their product is every consistent set of facts:
// what excludes each other, as a Job that is complete and one that is gone, is in one dimension.
var dimensions = [][]option{
	{ // what is left of the run in the cluster, and whether the status knows its Job
		{"no job", nothing},
		{"no job, recorded", recordedJob},
		{"job", job},
		{"job, recorded", all(job, recordedJob)},
		{"job replaced", replacedJob},
		{"job being deleted", all(jobBeingDeleted, recordedJob, pod(runnerExited(143, "Error"), podDeleted))},
		{"job complete", all(recordedJob, jobIs(batchv1.JobComplete, ""))},
		{"job failed", all(recordedJob, jobIs(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded))},
		{"job failing", all(recordedJob, jobIs(batchv1.JobFailureTarget, ""), pod(runnerExited(1, "Error")))},
		{"pod waits", all(recordedJob, pod(scheduled))},
		{"pod never starts", all(recordedJob, pod(runnerWaits("InvalidImageName", sentence)))},
		{"pod ready", all(recordedJob, pod(runnerUp(true)))},
		{"pod exited 0", all(recordedJob, pod(runnerExited(0, "Completed"), sidecarUp))},
		{"pod exited 1", all(recordedJob, pod(runnerExited(1, "Error")))},
		{"pod alone", all(recordedJob, pod(runnerUp(true)), func(w *session.World) { w.Job = nil })},
	},
	{{"no leftovers", nothing}, {"leftovers", leftovers}},
	{
		{"no request", nothing},
		{"start", asksStart}, {"start handled", all(asksStart, requestHandled)},
		{"stop", asksStop}, {"stop handled", all(asksStop, requestHandled)},
	},
	{{"spec fine", nothing}, {"spec wrong", problem}},
	{{"managed", nothing}, {"unmanaged", unmanaged}},
	{{"nothing missing", nothing}, {"secret missing", missing}},
	{{"no obstacle", nothing}, {"quota", quota}, {"name taken", nameTaken}, {"refused", refused}},
	{{"in time", nothing}, {"overdue", startDeadlinePassed}, {"idle", idle}, {"restored", restored}},
}

// everyWorld visits each phase in each combination of the dimensions.
func everyWorld(visit func(name func() string, w *session.World)) {
	choice := make([]int, len(dimensions))
	for {
		for _, info := range v1alpha1.Phases {
			w := inPhase(info.Phase)
			for i, d := range dimensions {
				d[choice[i]].change(w)
			}
			visit(func() string { return describe(info.Phase, choice) }, w)
		}
		i := 0
		for ; i < len(choice); i++ {
			if choice[i]++; choice[i] < len(dimensions[i]) {
				break
			}
			choice[i] = 0
		}
		if i == len(choice) {
			return
		}
	}
}

// sample thins out the worlds for tests that take long over each. It is prime and divides no
// dimension, so that every pair of options is still visited.
const sample = 11

func describe(phase v1alpha1.Phase, choice []int) string {
	name := string(phase)
	for i, d := range dimensions {
		name += ", " + d[choice[i]].name
	}
	return name
}

// expected is where a session goes, in plain code instead of a table.
func expected(w *session.World) v1alpha1.Phase {
	phase, is := w.Phase(), w.Holds
	switch phase {
	case v1alpha1.PhaseStopped, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed:
		if is(session.StartRequested) {
			return v1alpha1.PhasePending
		}
		return phase
	case v1alpha1.PhaseStopping:
		if is(session.RunnerGone) {
			return v1alpha1.PhaseStopped
		}
		return phase
	case v1alpha1.PhasePending:
		switch {
		case is(session.Restored), is(session.StopRequested):
			return v1alpha1.PhaseStopped
		case is(session.SpecInvalid):
			return v1alpha1.PhaseFailed
		case is(session.RunnerExists), is(session.NamespaceClosed), is(session.PrerequisiteMissing):
			return phase
		}
		return v1alpha1.PhaseCreating
	}
	creating := phase == v1alpha1.PhaseCreating
	switch {
	case is(session.Restored):
		return v1alpha1.PhaseStopping
	case is(session.JobSucceeded):
		return v1alpha1.PhaseCompleted
	case is(session.JobFailed):
		return v1alpha1.PhaseFailed
	case is(session.StopRequested):
		return v1alpha1.PhaseStopping
	case creating && is(session.RunnerUnstartable):
		return v1alpha1.PhaseFailed
	case creating && is(session.RunnerReady):
		return v1alpha1.PhaseRunning
	case is(session.RunnerLost), creating && is(session.StartDeadlinePassed):
		return v1alpha1.PhaseFailed
	case !creating && is(session.Idle):
		return v1alpha1.PhaseStopping
	}
	return phase
}

func TestDecideGoesWhereItShouldInEveryWorld(t *testing.T) {
	fired := map[string]int{}
	holds := map[session.Fact][2]bool{}
	worlds := 0
	everyWorld(func(name func() string, w *session.World) {
		worlds++
		d := session.Decide(w)
		fired[d.Rule]++
		if want := expected(w); d.To != want || d.From != w.Phase() {
			t.Fatalf("%s: from %s to %s by rule %q; want to %s", name(), d.From, d.To, d.Rule, want)
		}
		if d.Moves() && !slices.Contains(legal, edge{d.From, d.To}) {
			t.Fatalf("%s: %s to %s is no edge", name(), d.From, d.To)
		}
		if d.Reason == "" || d.Message == "" {
			t.Fatalf("%s: rule %q gives reason %q and message %q", name(), d.Rule, d.Reason, d.Message)
		}
		if !known(v1alpha1.Reasons, d.Reason) {
			t.Fatalf("%s: reason %q is not among v1alpha1.Reasons", name(), d.Reason)
		}
		for _, info := range session.Facts {
			seen := holds[info.Fact]
			seen[truth(w.Holds(info.Fact))] = true
			holds[info.Fact] = seen
		}
	})
	t.Logf("%d worlds", worlds)
	for _, rule := range session.Rules {
		if fired[rule.Name] == 0 {
			t.Errorf("rule %q never fires", rule.Name)
		}
	}
	for _, info := range session.Facts {
		if holds[info.Fact] != [2]bool{true, true} {
			t.Errorf("fact %s is not both true and false somewhere", info.Fact)
		}
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func known(words []v1alpha1.Word, word string) bool {
	return slices.ContainsFunc(words, func(w v1alpha1.Word) bool { return w.Word == word })
}

func TestRulesAreWellFormed(t *testing.T) {
	names, edges := map[string]bool{}, map[edge]bool{}
	for _, rule := range session.Rules {
		if names[rule.Name] {
			t.Errorf("two rules are called %q", rule.Name)
		}
		names[rule.Name] = true
		if !known(v1alpha1.Reasons, rule.Reason) {
			t.Errorf("rule %q: reason %q is not among v1alpha1.Reasons", rule.Name, rule.Reason)
		}
		for _, fact := range rule.When {
			if !slices.ContainsFunc(session.Facts, func(f session.FactInfo) bool { return f.Fact == fact }) {
				t.Errorf("rule %q: fact %s is not among Facts and would never hold", rule.Name, fact)
			}
		}
		for _, from := range rule.From {
			if from != rule.To {
				edges[edge{from, rule.To}] = true
			}
			if from.Terminal() && (rule.To != v1alpha1.PhasePending || !slices.Contains(rule.When, session.StartRequested)) {
				t.Errorf("rule %q leaves the terminal phase %s otherwise than by a restart", rule.Name, from)
			}
			if from == v1alpha1.PhaseStopping && rule.To != v1alpha1.PhaseStopped {
				t.Errorf("rule %q leaves Stopping for %s", rule.Name, rule.To)
			}
		}
	}
	for _, e := range legal {
		if !edges[e] {
			t.Errorf("no rule has the edge %s to %s", e.from, e.to)
		}
		delete(edges, e)
	}
	for e := range edges {
		t.Errorf("the rules have the edge %s to %s, which is not legal", e.from, e.to)
	}
	if len(session.Rules) > 25 || len(session.Facts) > 15 {
		t.Errorf("%d rules and %d facts: past 25 and 15 a concept is missing", len(session.Rules), len(session.Facts))
	}
}

func TestFactsAreNamedOnceAndExplained(t *testing.T) {
	seen := map[session.Fact]bool{}
	for _, info := range session.Facts {
		if seen[info.Fact] || info.Meaning == "" {
			t.Errorf("fact %s stands twice or has no meaning", info.Fact)
		}
		seen[info.Fact] = true
		used := slices.ContainsFunc(session.Rules, func(r session.Rule) bool { return slices.Contains(r.When, info.Fact) })
		if !used {
			t.Errorf("no rule uses fact %s", info.Fact)
		}
	}
	if inPhase(v1alpha1.PhasePending).Holds("NoSuchFact") {
		t.Error("a fact that does not exist holds")
	}
}

// A walk is what becomes of a session while nothing around it changes: it comes to rest, its status
// is then written no more, and it goes through no phase twice but where a restart was asked for.
func TestEveryWalkSettles(t *testing.T) {
	visited := 0
	everyWorld(func(name func() string, w *session.World) {
		if visited++; visited%sample != 0 {
			return
		}
		phases := []v1alpha1.Phase{w.Phase()}
		for step := 0; ; step++ {
			d := session.Decide(w)
			status := session.Status(w, d)
			if !d.Moves() {
				again := storing(w, status)
				settled := session.Status(again, session.Decide(again))
				if !equality.Semantic.DeepEqual(again.Session.Status, settled) {
					t.Fatalf("%s: at rest in %s the status is written again:\nwas %+v\nis  %+v", name(), d.To, again.Session.Status, settled)
				}
				return
			}
			if phases = append(phases, d.To); step > len(v1alpha1.Phases) {
				t.Fatalf("%s: does not settle: %v", name(), phases)
			}
			if slices.Index(phases, d.To) < len(phases)-1 && !slices.Contains(phases, v1alpha1.PhasePending) {
				t.Fatalf("%s: goes round: %v", name(), phases)
			}
			w = storing(w, status)
		}
	})
}

func TestCase2StoppingEndsOnlyAsStopped(t *testing.T) {
	for _, c := range []struct {
		name  string
		world change
		to    v1alpha1.Phase
	}{
		{"job and pod are there", all(recordedJob, pod(runnerUp(true))), v1alpha1.PhaseStopping},
		{"runner exited 143", all(recordedJob, pod(runnerExited(143, "Error"))), v1alpha1.PhaseStopping},
		{"runner was killed", all(recordedJob, pod(runnerExited(137, "Error"))), v1alpha1.PhaseStopping},
		{"job failed", all(recordedJob, jobIs(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)), v1alpha1.PhaseStopping},
		{"job completed", all(recordedJob, jobIs(batchv1.JobComplete, "")), v1alpha1.PhaseStopping},
		{"job is gone, pod is left", all(recordedJob, pod(runnerExited(143, "Error")), func(w *session.World) { w.Job = nil }), v1alpha1.PhaseStopping},
		{"a new start is asked for", all(recordedJob, job, asksStart), v1alpha1.PhaseStopping},
		{"another Job is left", all(recordedJob, leftovers), v1alpha1.PhaseStopping},
		{"all is gone", recordedJob, v1alpha1.PhaseStopped},
		{"all is gone and a start is asked for", all(recordedJob, asksStart), v1alpha1.PhaseStopped},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := session.Decide(inPhase(v1alpha1.PhaseStopping, c.world)); d.To != c.to {
				t.Errorf("goes to %s by rule %q, want %s", d.To, d.Rule, c.to)
			}
		})
	}
}

func TestCase2TheRecordedOrderDecidesBetweenStopAndOutcome(t *testing.T) {
	for _, phase := range []v1alpha1.Phase{v1alpha1.PhaseCreating, v1alpha1.PhaseRunning} {
		failed := inPhase(phase, recordedJob, pod(runnerExited(1, "Error")), asksStop)
		if d := session.Decide(failed); d.To != v1alpha1.PhaseFailed {
			t.Errorf("%s: a failure that was there when the stop was first seen leads to %s, want Failed", phase, d.To)
		}
		stopped := inPhase(phase, recordedJob, pod(runnerExited(143, "Error"), podDeleted), asksStop)
		if d := session.Decide(stopped); d.To != v1alpha1.PhaseStopping {
			t.Errorf("%s: a runner that ends because its pod is deleted leads to %s, want Stopping", phase, d.To)
		}
	}
}

func TestCase4ARestartWaitsForThePreviousRun(t *testing.T) {
	for _, c := range []struct {
		name string
		left change
	}{
		{"job", job},
		{"job being deleted", jobBeingDeleted},
		{"finished job", jobIs(batchv1.JobFailed, "")},
		{"pod without its job", all(pod(runnerExited(143, "Error"), podDeleted), func(w *session.World) { w.Job = nil })},
		{"job of an earlier session", leftovers},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := session.Decide(inPhase(v1alpha1.PhasePending, c.left))
			if d.To != v1alpha1.PhasePending || d.Reason != v1alpha1.ReasonWaitingForPreviousRun {
				t.Errorf("goes to %s with reason %s; want to stay with %s", d.To, d.Reason, v1alpha1.ReasonWaitingForPreviousRun)
			}
		})
	}
	if d := session.Decide(inPhase(v1alpha1.PhasePending)); d.To != v1alpha1.PhaseCreating {
		t.Errorf("with nothing left it goes to %s, want Creating", d.To)
	}
}

func TestCase6StopsAndStartsInEveryPhase(t *testing.T) {
	for _, c := range []struct {
		phase       v1alpha1.Phase
		stop, start v1alpha1.Phase
	}{
		{v1alpha1.PhasePending, v1alpha1.PhaseStopped, v1alpha1.PhaseCreating},
		{v1alpha1.PhaseCreating, v1alpha1.PhaseStopping, v1alpha1.PhaseCreating},
		{v1alpha1.PhaseRunning, v1alpha1.PhaseStopping, v1alpha1.PhaseRunning},
		{v1alpha1.PhaseStopped, v1alpha1.PhaseStopped, v1alpha1.PhasePending},
		{v1alpha1.PhaseCompleted, v1alpha1.PhaseCompleted, v1alpha1.PhasePending},
		{v1alpha1.PhaseFailed, v1alpha1.PhaseFailed, v1alpha1.PhasePending},
	} {
		run := nothing
		if c.phase == v1alpha1.PhaseCreating || c.phase == v1alpha1.PhaseRunning {
			run = all(job, recordedJob)
		}
		if d := session.Decide(inPhase(c.phase, run, asksStop)); d.To != c.stop {
			t.Errorf("%s: a stop leads to %s, want %s", c.phase, d.To, c.stop)
		}
		if d := session.Decide(inPhase(c.phase, run, asksStart)); d.To != c.start {
			t.Errorf("%s: a start leads to %s, want %s", c.phase, d.To, c.start)
		}
	}
}

func TestCase9FinishedWorkIsNotRunAgain(t *testing.T) {
	for _, phase := range []v1alpha1.Phase{v1alpha1.PhaseStopped, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed} {
		for _, o := range dimensions[0] {
			if d := session.Decide(inPhase(phase, o.change)); d.Moves() {
				t.Errorf("%s moves to %s with %q", phase, d.To, o.name)
			}
		}
	}
	for _, c := range []struct {
		name  string
		world *session.World
	}{
		{"Running without Job", inPhase(v1alpha1.PhaseRunning)},
		{"Running, recorded Job gone", inPhase(v1alpha1.PhaseRunning, recordedJob)},
		{"Creating, recorded Job gone", inPhase(v1alpha1.PhaseCreating, recordedJob)},
		{"Running, Job replaced", inPhase(v1alpha1.PhaseRunning, replacedJob)},
	} {
		if d := session.Decide(c.world); d.To != v1alpha1.PhaseFailed || d.Reason != v1alpha1.ReasonRunnerLost {
			t.Errorf("%s: goes to %s with reason %s; want Failed with %s", c.name, d.To, d.Reason, v1alpha1.ReasonRunnerLost)
		}
	}
	if d := session.Decide(inPhase(v1alpha1.PhaseCreating)); d.Moves() {
		t.Errorf("Creating whose Job was never recorded goes to %s; want to stay", d.To)
	}
}

func TestCase17AnUnmanagedNamespaceStartsNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change change
		reason string
	}{
		{"unmanaged", unmanaged, v1alpha1.ReasonNamespaceNotManaged},
		{"terminating", terminating, v1alpha1.ReasonNamespaceTerminating},
	} {
		if d := session.Decide(inPhase(v1alpha1.PhasePending, c.change)); d.Moves() || d.Reason != c.reason {
			t.Errorf("%s: Pending goes to %s with reason %s; want to stay with %s", c.name, d.To, d.Reason, c.reason)
		}
		running := inPhase(v1alpha1.PhaseRunning, recordedJob, pod(runnerUp(true)), c.change)
		if d := session.Decide(running); d.Moves() {
			t.Errorf("%s: Running goes to %s; what runs is let finish", c.name, d.To)
		}
	}
}

func TestASessionWithoutAPhaseIsPending(t *testing.T) {
	if phase := inPhase("").Phase(); phase != v1alpha1.PhasePending {
		t.Errorf("the phase is %s, want Pending", phase)
	}
	if d := session.Decide(inPhase("")); d.From != v1alpha1.PhasePending || d.To != v1alpha1.PhaseCreating {
		t.Errorf("goes from %s to %s, want from Pending to Creating", d.From, d.To)
	}
}

func ExampleDecide() {
	w := inPhase(v1alpha1.PhaseRunning, recordedJob, pod(runnerUp(true)))
	w.Session.Status.LastActivityTime = ago(2 * time.Hour)
	w.Session.Status.StartTime = ago(3 * time.Hour)
	d := session.Decide(w)
	fmt.Println(d.From, "to", d.To+":", d.Reason)
	// Output: Running to Stopping: InactivityTimeout
}
