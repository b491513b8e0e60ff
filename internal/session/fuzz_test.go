package session_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
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
	for _, run := range []int64{-1, 999_998, 999_999, 1<<63 - 1} {
		w := inPhase(v1alpha1.PhasePending)
		w.Session.Status.Run = run
		s, err := json.Marshal(w.Session)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s, []byte("{}"), []byte("null"), int64(1))
	}
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
		if was := one.Session.Status.Run; status.Run < was || status.Run-was > 1 {
			t.Errorf("from run %d the session goes to run %d", was, status.Run)
		}
		saysSomething(t, d, &status)
		remembers(t, &one.Session.Status, &status)
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

// remembers checks that a status survives a definition of sessions that drops what the record has.
func remembers(t *testing.T, was, is *v1alpha1.AgenticSessionStatus) {
	t.Helper()
	if long := len(was.JobName) + len(was.JobUID) + len(was.PodName) + len(was.HandledRequest) + len(was.StoppedReason); long > 1000 {
		return // none of them is as long where the operator wrote it
	}
	if is.QueuedTime.IsZero() && is.QueuedTime != nil || is.ProvisionedTime.IsZero() && is.ProvisionedTime != nil {
		return // JSON has no such time
	}
	dropped := is.DeepCopy()
	dropped.Drop()
	text, err := json.Marshal(dropped)
	if err != nil {
		t.Fatal(err)
	}
	read := v1alpha1.AgenticSessionStatus{}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	read.Dropped = is.Dropped
	if want := stored(*is); !equality.Semantic.DeepEqual(stored(read), want) {
		t.Errorf("what was dropped of %+v is read as %+v", want, read)
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
	if seconds%2 == 1 || w.Session.Status.Run < 0 || w.Session.Status.Run > 1_000_000 {
		w.Problems = workload.Problems(w.Session)
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
	if string(pod) != "null" {
		w.Pods = []corev1.Pod{one}
	}
	return w
}

// FuzzObstacles reads what the Job controller and kubelets say about a run that does not start. Each says
// it in other words at other times, which must not change the status, and the words of a cluster are told
// as they are, behind a sentence of ours.
func FuzzObstacles(f *testing.F) {
	for _, message := range []string{"", " ", "is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1", "is forbidden: failed quota: team: must specify limits.cpu", "is forbidden: violates PodSecurity",
		"container has runAsNonRoot and image will run as root", `Back-off pulling image "x": ErrImagePull: x`, "pull access denied\nfor x", `pods "b" is invalid`, strings.Repeat("ä", 5000), "\x00"} {
		for _, reason := range []string{"ErrImagePull", "CreateContainerConfigError", "InvalidImageName", "CreateContainerError", "ContainerCreating", ""} {
			f.Add(message, reason, "example.com/runner:1", "init", int32(1))
		}
	}
	f.Fuzz(func(t *testing.T, message, reason, image, _ string, _ int32) {
		refused := func(pod string) session.Decision {
			w := inPhase(v1alpha1.PhaseCreating, furnished, job)
			w.PodRefusal = "Error creating: pods \"" + pod + "\" " + message
			return explained(t, w)
		}
		if one, two := refused("a-run-1-xyz"), refused("a-run-1-abc"); strings.HasPrefix(message, "is ") && one != two {
			t.Errorf("one refusal is told as %q and as %q", one.Message, two.Message)
		} else if quota := one.Reason == v1alpha1.ReasonQuotaExceeded; quota != strings.Contains(message, "exceeded quota") && quota != strings.Contains(message, "failed quota") {
			t.Errorf("%q is told as %s", message, one.Reason)
		}
		waits := func(reason, message string) session.Decision {
			w := inPhase(v1alpha1.PhaseCreating, furnished, pod(runnerWaits(reason, message)))
			w.Pods[0].Status.ContainerStatuses[0].Image = image
			return explained(t, w)
		}
		d := waits(reason, message)
		if d.Moves() != (reason == "InvalidImageName") {
			t.Errorf("a container that waits with %s has the session go from %s to %s", reason, d.From, d.To)
		}
		if strings.HasPrefix(message, "Back-off") || strings.Contains(image, `"`) {
			return
		}
		if one, two := waits("ErrImagePull", message), waits("ImagePullBackOff", `Back-off pulling image "`+image+`": ErrImagePull: `+message); one != two {
			t.Errorf("an image that cannot be pulled is told as %q and as %q", one.Message, two.Message)
		}
	})
}

// explained decides about a run, and checks that its trouble is told as the API server takes it.
func explained(t *testing.T, w *session.World) session.Decision {
	t.Helper()
	d := session.Decide(w)
	known := func(word v1alpha1.Word) bool { return word.Word == d.Reason }
	if !slices.ContainsFunc(v1alpha1.Reasons, known) || d.Message == "" {
		t.Errorf("the session is told to be %q because of %q", d.Message, d.Reason)
	}
	for _, c := range session.Status(w, d).Conditions {
		if len(c.Message) > 32768 || c.Reason == "" {
			t.Errorf("condition %s has the reason %q and a message of %d bytes", c.Type, c.Reason, len(c.Message))
		}
	}
	return d
}

// FuzzPreparation reads the ends of the containers beside the runner: of a log, its last line is told and
// nothing before it.
func FuzzPreparation(f *testing.F) {
	for _, log := range []string{"", "\n", "one", "one\ntwo\n", "one\r\ntwo\r\n\r\n", " \n three \n ", "ä\x00\n\u0085"} {
		f.Add(log, "init-hydrate", int32(1), int64(0))
		f.Add(log, session.SyncContainer, int32(137), int64(59))
		f.Add(log, session.SyncContainer, int32(0), int64(60))
	}
	f.Fuzz(func(t *testing.T, log, name string, code int32, up int64) {
		if name == "" {
			return
		}
		lines := strings.Split(strings.TrimSpace(log), "\n")
		last := strings.TrimSpace(lines[len(lines)-1])
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: log}}
		failed := inPhase(v1alpha1.PhaseCreating, furnished, pod(scheduled, podPhase(corev1.PodFailed, "", ""), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: name, State: ended}}
		}), jobIs(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded))
		d := explained(t, failed)
		if prepared := code == 0 || name == session.SyncContainer; !prepared && (d.Reason != v1alpha1.ReasonWorkspaceNotPrepared || !strings.HasSuffix(d.Message, last)) {
			t.Errorf("the end of %s with %d and %q is told as %s: %q", name, code, log, d.Reason, d.Message)
		} else if prepared && d.Reason == v1alpha1.ReasonWorkspaceNotPrepared {
			t.Errorf("%s ended with %d and is told as %q", name, code, d.Message)
		}
		if len(lines) > 1 && len(lines[0]) > 100 && strings.Contains(d.Message, lines[0]) {
			t.Errorf("the log is told: %q", d.Message)
		}
		syncs := inPhase(v1alpha1.PhaseRunning, furnished, pod(runnerUp(true), func(p *corev1.Pod) {
			since := metav1.NewTime(now.Add(-time.Duration(up%1000) * time.Second))
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: name, LastTerminationState: ended, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}}}
		}))
		if d, fails := explained(t, syncs), name == session.SyncContainer && up%1000 < 60; fails != (d.Reason == v1alpha1.ReasonStateSyncFailing) {
			t.Errorf("%s that ended and is up for %d seconds is told as %s: %q", name, up%1000, d.Reason, d.Message)
		}
	})
}

// FuzzBegin starts runs with what their Jobs say of repositories and workflow: a runner that has just
// started with what the spec says is told nothing.
func FuzzBegin(f *testing.F) {
	for _, text := range []string{"", "null", "[]", "{}", `[{"url":"https://h/a.git","branch":"main"},{"url":"git@h:b.git","autoPush":true}]`, `[{"url":"https://h/a"},{"url":"https://h/a.git"}]`, `[null,{}]`, `[{"url":".git"}]`, "[{"} {
		for _, workflow := range []string{"", "null", "{}", `{"gitUrl":"https://h/w","branch":"main","path":"x"}`, `{"gitUrl":""}`, "["} {
			f.Add(text, workflow)
		}
	}
	f.Fuzz(func(t *testing.T, repos, workflow string) {
		w := inPhase(v1alpha1.PhaseCreating, furnished, pod(runnerUp(true)))
		w.Pods[0].Status.PodIP = "10.0.0.1"
		w.Job.Annotations = map[string]string{v1alpha1.AnnotationRunRepos: repos, v1alpha1.AnnotationRunWorkflow: workflow}
		spec := &w.Session.Spec
		wants := json.Unmarshal([]byte(repos), &spec.Repos) == nil
		if !wants {
			spec.Repos = nil
		}
		chosen := v1alpha1.Workflow{}
		if json.Unmarshal([]byte(workflow), &chosen) == nil && chosen.GitURL != "" {
			spec.ActiveWorkflow = &chosen
		}
		d := session.Decide(w)
		if d.To != v1alpha1.PhaseRunning {
			t.Fatalf("the session goes to %s", d.To)
		}
		status := session.Status(w, d)
		if len(status.ReconciledRepos) != len(spec.Repos) || (status.ReconciledWorkflow == nil) != (spec.ActiveWorkflow == nil) {
			t.Errorf("of %q and %q the runner has %+v and %+v", repos, workflow, status.ReconciledRepos, status.ReconciledWorkflow)
		}
		names := map[string]bool{}
		for i := range spec.Repos {
			name := spec.Repos[i].Name()
			if names[name] || !v1alpha1.FitsFolder(name) {
				return // the spec is refused
			}
			names[name] = true
		}
		if calls := storing(w, status).Calls(); len(calls) > 0 {
			t.Errorf("started with %q and %q, the runner is told %+v", repos, workflow, calls)
		}
		running := storing(w, status)
		running.Session.Spec.Repos, running.Session.Spec.ActiveWorkflow = nil, nil
		if calls := running.Calls(); len(calls) != len(names) {
			t.Errorf("%d repositories are taken out, and the runner is told %+v", len(names), calls)
		}
	})
}

// FuzzJobDeadline bounds runs: a timeout, however long, is one that the Job controller can count with, is
// no shorter than was asked for, and none is none.
func FuzzJobDeadline(f *testing.F) {
	for _, timeout := range []int64{0, 1, -1, 300, 31536000, 1 << 62, 1<<63 - 1, -1 << 63} {
		f.Add(timeout, int64(600), int64(30), int64(40), true)
		f.Add(timeout, int64(0), int64(0), int64(-1<<62), false)
	}
	f.Fuzz(func(t *testing.T, timeout, start, made, started int64, known bool) {
		w := inPhase(v1alpha1.PhaseRunning, job)
		w.Policy.StartDeadline = time.Duration(start%1_000_000) * time.Second
		at := func(seconds int64) *metav1.Time { return new(metav1.NewTime(now.Add(time.Duration(seconds)))) }
		w.Job.Status.StartTime = at(made)
		if w.Session.Status.StartTime = nil; known {
			w.Session.Status.StartTime = at(started)
		}
		deadline := w.JobDeadline(timeout)
		unlimited := timeout <= 0 || !known && w.Policy.StartDeadline <= 0
		switch {
		case deadline < 0, unlimited != (deadline == 0):
			t.Errorf("a timeout of %d seconds becomes %d", timeout, deadline)
		case time.Duration(deadline)*time.Second < 0 || time.Duration(deadline)*time.Second/time.Second != time.Duration(deadline):
			t.Errorf("a timeout of %d seconds becomes %d, which is no duration", timeout, deadline)
		case timeout <= 31536000 && !unlimited && deadline < timeout:
			t.Errorf("a timeout of %d seconds becomes %d", timeout, deadline)
		}
	})
}
