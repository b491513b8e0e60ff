package session_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// FuzzWorld decides about whole sessions with their Jobs and pods, whatever stands in them: without a
// panic, the same each time, along the rules' edges, and with words for everything.
func FuzzWorld(f *testing.F) {
	for _, info := range v1alpha1.Phases {
		w := inPhase(info.Phase)
		s, err := json.Marshal(w.Session)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s, []byte(`{"metadata":{"name":"a-run-1","uid":"job-uid"}}`), []byte("{}"), int64(1))
	}
	f.Add([]byte(`{"metadata":{"annotations":{"ambient-code.io/desired-phase":"Stopped"}},"status":{"phase":"Running","conditions":[{}],"startTime":null,"reconciledRepos":[{"url":""}]}}`),
		[]byte(`{"metadata":{"uid":"x","annotations":{"ambient-code.io/run-repos":"[{","ambient-code.io/run-workflow":"[]"}},"status":{"conditions":[{"type":"Failed","status":"True"}]}}`),
		[]byte(`{"metadata":{"deletionTimestamp":"2026-03-01T00:00:00Z","ownerReferences":[{"uid":"x","controller":true}]},"status":{"phase":"Failed","containerStatuses":[{"name":"ambient-code-runner","state":{"terminated":{"exitCode":-1}}}]}}`), int64(0))
	f.Add([]byte(`{"status":{"phase":"Nonsense","run":-1}}`), []byte("null"), []byte(`{"status":{"initContainerStatuses":[{"name":"","state":{"waiting":{}}}]}}`), int64(1<<62))
	f.Fuzz(func(t *testing.T, s, job, pod []byte, seconds int64) {
		one, two := world(s, job, pod, seconds), world(s, job, pod, seconds)
		if one == nil || two == nil {
			return
		}
		d, again := session.Decide(one), session.Decide(two)
		if d != again {
			t.Errorf("once %+v, once %+v", d, again)
		}
		if d.Moves() && !slices.Contains(session.Edges(), session.Edge{From: d.From, To: d.To}) {
			t.Errorf("the session goes from %s to %s", d.From, d.To)
		}
		status := session.Status(one, d)
		if !equality.Semantic.DeepEqual(status, session.Status(two, again)) {
			t.Error("another status is made of the same world")
		}
		fresh := world(s, job, pod, seconds)
		if !equality.Semantic.DeepEqual(one.Session, fresh.Session) || !equality.Semantic.DeepEqual(one.Job, fresh.Job) || !equality.Semantic.DeepEqual(one.Pods, fresh.Pods) {
			t.Error("the world is changed by looking at it")
		}
		saysSomething(t, d, &status)
		one.Calls()
		one.Overdue()
		for _, deadline := range one.Deadlines() {
			if !deadline.At.After(one.Now) {
				t.Errorf("the deadline %s is over", deadline.Name)
			}
		}
		if wait := one.Wake(); wait < 0 {
			t.Errorf("the session is to be looked at %s ago", -wait)
		}
	})
}

// saysSomething checks that a status says something wherever it is to.
func saysSomething(t *testing.T, d session.Decision, status *v1alpha1.AgenticSessionStatus) {
	t.Helper()
	known := func(info v1alpha1.PhaseInfo) bool { return info.Phase == d.To }
	if d.Reason == "" && slices.ContainsFunc(v1alpha1.Phases, known) && !d.To.Terminal() {
		t.Errorf("no reason is given: %+v", d)
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == v1alpha1.ConditionReady && (c.Status == "" || c.Reason == "" || c.Message == "") {
			t.Errorf("condition %+v says nothing", c)
		}
	}
}

// world is what an observer would make of a session, a Job and a pod; nil for what is none.
func world(s, job, pod []byte, seconds int64) *session.World {
	w := &session.World{Now: now, Session: &v1alpha1.AgenticSession{}, Namespace: session.Namespace{Managed: true},
		Policy: session.Policy{StartDeadline: time.Duration(seconds) % (1 << 50), Inactivity: time.Duration(seconds) % (1 << 50)}}
	made := &batchv1.Job{}
	if json.Unmarshal(s, w.Session) != nil || json.Unmarshal(job, made) != nil {
		return nil
	}
	if made.UID != "" {
		w.Job = made
	}
	one := corev1.Pod{}
	if json.Unmarshal(pod, &one) != nil {
		return nil
	}
	if one.UID == "" {
		one.UID = types.UID("pod")
	}
	w.Pods = []corev1.Pod{one}
	return w
}
