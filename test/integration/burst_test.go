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

// mostHeldUp is how many writes a session may cost where the operator is held up: those, its trouble and the
// end of that.
const mostHeldUp = 14

// TestBurst creates many sessions at once, after as many bare Jobs, and reports how long each took
// until all were running and what the operator asked of the API server for a session. That is exactly what
// is documented, for a few sessions and for many.
func TestBurst(t *testing.T) {
	count := 30
	if os.Getenv("BURST") != "" {
		count = 300
	}
	p := newProject(t, alone(t, nil))
	bare := emptyProject(t, nil, nil)
	jobs := bareJobs(bare, count)
	t.Logf("%d bare Jobs: all running after %.1f s", count, jobs.Seconds())

	asDocumented := false
	for try := 0; try < 5 && !asDocumented; try++ { // more than once only on a machine that is far too busy
		sessions, requests := p.atOnce(fmt.Sprintf("few-%d", try), 5)
		asDocumented = !heldUp(sessions)
		judgeRequests(t, requests, sessions)
	}
	if !asDocumented {
		t.Error("the operator was held up each time, so what a session costs is not known")
	}
	began := time.Now()
	sessions, requests := p.atOnce("burst", count)
	ran := began
	for _, s := range sessions {
		s.expectHistory(pending, creating, running)
		s.ranOnce()
		versions := suite.recorder.Versions(s.uid)
		if at := versions[len(versions)-1].At; at.After(ran) {
			ran = at
		}
	}
	took := ran.Sub(began)
	t.Logf("%d sessions: all Running after %.1f s, %.1f times the bare Jobs", count, took.Seconds(), took.Seconds()/jobs.Seconds())
	judgeRequests(t, requests, sessions)
}

// atOnce makes some sessions, waits until all run, and returns what the operator asked of the API server
// about the project meanwhile.
func (p *project) atOnce(name string, count int) ([]*session, []auditEvent) {
	p.t.Helper()
	p.settles(0)
	before := len(auditedRequests(p.t, p))
	var sessions []*session
	for i := range count {
		// Without a timeout, which is put on the Job once the runner has started.
		sessions = append(sessions, p.session(fmt.Sprintf("%s-%d", name, i), "hang", timeout(0)))
	}
	p.within(5*time.Minute, "all sessions run", func() error {
		for _, s := range sessions {
			if err := s.phaseIs(running); err != nil {
				return err
			}
		}
		return nil
	})
	p.settles(0)
	for _, s := range sessions[:min(count, 5)] {
		p.hasEvents(s.name, v1alpha1.ReasonRunnerStarted, 1)
	}
	return sessions, auditedRequests(p.t, p)[before:]
}

// judgeRequests tells what the operator asked of the API server for a session, by verb and resource, and
// fails when it was anything else than is documented.
func judgeRequests(t *testing.T, requests []auditEvent, sessions []*session) {
	t.Helper()
	if suite.audit == nil {
		t.Log("what the operator asked of the API server is not known: the cluster writes no audit log")
		return
	}
	wrote, writes, events, refused := map[string]int{}, 0, 0, 0
	var read []string
	for i := range requests {
		e := &requests[i]
		switch {
		case e.ObjectRef.Resource == "events":
			events++
		case e.write():
			wrote[e.Verb+" "+e.resource()]++
			writes++
		default:
			read = append(read, e.Verb+" "+e.resource()+" "+e.ObjectRef.Name)
		}
		if e.ResponseStatus.Code >= 300 {
			refused++
		}
	}
	t.Logf("requests for %d sessions: %d, of them %d Events and %d reads; %d answered with an error", len(sessions), len(requests), events, len(read), refused)
	for _, what := range slices.Sorted(maps.Keys(wrote)) {
		t.Logf("  %-40s %6.2f", what, float64(wrote[what])/float64(len(sessions)))
	}
	if legacyWatch() || heldUp(sessions) {
		if writes > mostHeldUp*len(sessions) {
			t.Errorf("%d sessions cost %d writes until they ran, want %d each at the most", len(sessions), writes, mostHeldUp)
		}
		return
	}
	want := map[string]int{}
	for what, times := range untilRunning {
		want[what] = times * len(sessions)
	}
	if !maps.Equal(wrote, want) {
		t.Errorf("the operator wrote %v, want %v", wrote, want)
	}
	if events > len(sessions) {
		t.Errorf("%d Events for %d sessions, want one each", events, len(sessions))
	}
	if len(read) > 0 {
		t.Errorf("the operator read what its watches tell: %v", read)
	}
}

// heldUp says that a session was nearly as long in Creating as is the time after which the operator tells how
// far a run has come, and asks again what it had read before. That takes a machine that is far too busy.
func heldUp(sessions []*session) bool {
	for _, s := range sessions {
		var made time.Time
		for _, v := range suite.recorder.Versions(s.uid) {
			switch v.Object.Status.Phase {
			case creating:
				if made.IsZero() {
					made = v.At
				}
			case running:
				if v.At.Sub(made) > 8*time.Second {
					return true
				}
			}
		}
	}
	return false
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
