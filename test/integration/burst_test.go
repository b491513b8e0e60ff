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

// mostWrites is how many writes a session may cost from its creation to Running: its seven objects,
// the token, the names in its annotations, and its status three times.
const mostWrites = 14

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
	p.session("warm-up", "hang").reaches(running)

	before := len(auditedRequests(t, p))
	began := time.Now()
	var sessions []*session
	for i := range count {
		sessions = append(sessions, p.session(fmt.Sprintf("burst-%d", i), "hang"))
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
	reportRequests(t, auditedRequests(t, p)[before:], count)
}

// reportRequests tells what the operator asked of the API server for a session, by verb and
// resource, and fails when it was more than need be.
func reportRequests(t *testing.T, requests []auditEvent, sessions int) {
	if suite.audit == nil {
		t.Log("what the operator asked of the API server is not known: the cluster writes no audit log")
		return
	}
	each, writes, events, refused := map[string]int{}, 0, 0, 0
	for i := range requests {
		e := &requests[i]
		each[fmt.Sprintf("%-7s %s", e.Verb, e.resource())]++
		switch {
		case e.ObjectRef.Resource == "events":
			events++
		case e.write():
			writes++
		}
		if e.ResponseStatus.Code >= 300 {
			refused++
		}
	}
	per := func(n int) float64 { return float64(n) / float64(sessions) }
	t.Logf("requests a session: %.2f, of them %.2f writes and %.2f Events; %d answered with an error", per(len(requests)), per(writes), per(events), refused)
	for _, what := range slices.Sorted(maps.Keys(each)) {
		t.Logf("  %-40s %6.2f", what, per(each[what]))
	}
	if per(writes) > mostWrites {
		t.Errorf("a session costs %.2f writes until it is Running, want %d at the most", per(writes), mostWrites)
	}
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
