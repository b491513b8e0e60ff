package integration

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// bareJob stands in the session label of pods that are no session's.
const bareJob = "bare"

// untilRunning is what the operator asks of the API server for a session from its creation to Running,
// and nothing beside but one Event; source: docs/performance.md.
var untilRunning = map[string]int{
	"create serviceaccounts": 1, "create roles": 1, "create rolebindings": 1, "create secrets": 1,
	"create persistentvolumeclaims": 1, "create services": 1, "create jobs": 1,
	"create serviceaccounts/token": 1, "patch agenticsessions": 1, "patch agenticsessions/status": 3,
}

// TestBurst creates many sessions at once, after as many bare Jobs, and reports how long each took
// until all were running and what the operator asked of the API server for a session.
func TestBurst(t *testing.T) {
	count := 30
	if os.Getenv("BURST") != "" {
		count = 300
	}
	p := newProject(t, alone(t, nil))
	bare := emptyProject(t, nil, nil)
	jobs := bareJobs(bare, count)
	t.Logf("%d bare Jobs: all running after %.1f s", count, jobs.Seconds())
	p.session("warm-up", "hang", timeout(0)).reaches(running)
	p.hasEvents("warm-up", v1alpha1.ReasonRunnerStarted, 1)
	p.settles(0)

	before := len(auditedRequests(t, p))
	began := time.Now()
	var sessions []*session
	for i := range count {
		// Without a timeout, which is put on the Job once the runner has started.
		sessions = append(sessions, p.session(fmt.Sprintf("burst-%d", i), "hang", timeout(0)))
	}
	p.within(5*time.Minute, "all sessions run", func() error {
		for _, s := range sessions {
			if err := s.phaseIs(running); err != nil {
				return err
			}
		}
		return nil
	})
	took := time.Since(began)
	t.Logf("%d sessions: all Running after %.1f s, %.1f times the bare Jobs", count, took.Seconds(), took.Seconds()/jobs.Seconds())
	for _, s := range sessions {
		s.expectHistory(pending, creating, running)
		s.ranOnce()
	}
	p.settles(0)
	reportRequests(t, auditedRequests(t, p)[before:], sessions)
}

// reportRequests tells what the operator asked of the API server for a session, by verb and
// resource, and fails when it was anything else than is documented.
func reportRequests(t *testing.T, requests []auditEvent, sessions []*session) {
	if suite.audit == nil {
		t.Log("what the operator asked of the API server is not known: the cluster writes no audit log")
		return
	}
	each, events, reads, refused := map[string]int{}, 0, 0, 0
	for i := range requests {
		e := &requests[i]
		switch {
		case e.ObjectRef.Resource == "events":
			events++
		case e.write():
			each[e.Verb+" "+e.resource()]++
		default:
			reads++
			t.Logf("a read: %s %s %s", e.Verb, e.resource(), e.ObjectRef.Name)
		}
		if e.ResponseStatus.Code >= 300 {
			refused++
		}
	}
	t.Logf("requests for %d sessions: %d, of them %d Events and %d reads; %d answered with an error", len(sessions), len(requests), events, reads, refused)
	for _, what := range slices.Sorted(maps.Keys(each)) {
		t.Logf("  %-40s %6.2f", what, float64(each[what])/float64(len(sessions)))
	}
	if events > len(sessions) {
		t.Errorf("%d Events for %d sessions, want one each", events, len(sessions))
	}
	if reads > 0 && !legacyWatch() {
		t.Errorf("%d reads, want none but watches", reads)
	}
	want := map[string]int{}
	for what, times := range untilRunning {
		want[what] = times * len(sessions)
	}
	want["patch agenticsessions/status"] += belated(sessions)
	if !maps.Equal(each, want) {
		t.Errorf("the operator wrote %v, want %v", each, want)
	}
}

// belated counts what was told of sessions between their Job and Running. That is none where the runner is
// up within ten seconds (of a time that the status has in whole seconds), as it is on a machine with
// nothing else to do.
func belated(sessions []*session) int {
	writes := 0
	for _, s := range sessions {
		var job, last *moment[*v1alpha1.AgenticSession]
		between := 0
		versions := suite.recorder.Versions(s.uid)
		for i := range versions {
			v := &versions[i]
			switch {
			case v.Object.Status.JobUID == "":
				continue
			case job == nil:
				job = v
			case !equality.Semantic.DeepEqual(v.Object.Status, last.Object.Status):
				between++
			}
			last = v
			if v.Object.Status.Phase == running {
				break
			}
		}
		if job != nil && last.At.Sub(job.At) > 9*time.Second {
			writes += max(0, between-1) // Running itself is one
		}
	}
	return writes
}

func auditedRequests(t *testing.T, p *project) []auditEvent {
	if suite.audit == nil {
		return nil
	}
	events, err := suite.audit.of(p.name)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// bareJobs runs as many Jobs with the pod of a session, and says how long it took until all ran.
func bareJobs(p *project, count int) time.Duration {
	p.t.Helper()
	began := time.Now()
	for i := range count {
		p.create(&batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: fmt.Sprintf("bare-%d", i)},
			Spec: batchv1.JobSpec{BackoffLimit: ptr(int32(0)), Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelSession: bareJob}},
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
					Name: "bare", Image: "bare", Env: []corev1.EnvVar{{Name: "INITIAL_PROMPT", Value: "hang"}},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
				}}},
			}},
		})
	}
	p.within(5*time.Minute, "all bare Jobs run", func() error {
		n := 0
		for _, pod := range remaining(suite.recorder.PodsOf(p.key(bareJob))) {
			if pod.Status.Phase == corev1.PodRunning {
				n++
			}
		}
		if n < count {
			return fmt.Errorf("%d of %d run", n, count)
		}
		return nil
	})
	took := time.Since(began)
	if err := suite.admin.DeleteAllOf(p.ctx, &batchv1.Job{}, client.InNamespace(p.name), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		p.t.Fatal(err)
	}
	p.within(5*time.Minute, "all bare Jobs are gone", func() error {
		if n := len(remaining(suite.recorder.PodsOf(p.key(bareJob)))); n > 0 {
			return fmt.Errorf("%d pods are left", n)
		}
		return nil
	})
	return took
}
