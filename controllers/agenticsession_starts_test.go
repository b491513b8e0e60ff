package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

func sessionsOnly(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// TestCase47AJobIsDueOnlyWhereTheRunStillWaits: who has not heard of the run from the API server for a while
// asks it before a Job is made, and makes none for a run that went on, or ended, without it.
func TestCase47AJobIsDueOnlyWhereTheRunStillWaits(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	creating := func(change func(*v1alpha1.AgenticSession)) *v1alpha1.AgenticSession {
		s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: "p", Name: "a", UID: "uid"}}
		s.Status.Phase, s.Status.Run = v1alpha1.PhaseCreating, 2
		if change != nil {
			change(s)
		}
		return s
	}
	said := func(age time.Duration) func(*starts, *v1alpha1.AgenticSession) {
		return func(known *starts, s *v1alpha1.AgenticSession) { known.confirmed(s, now.Add(-age)) }
	}
	for _, c := range []struct {
		name   string
		told   func(*starts, *v1alpha1.AgenticSession)
		stored *v1alpha1.AgenticSession
		asked  bool
		due    bool
	}{
		{"told a moment ago", said(9 * time.Second), nil, false, true},
		{"told long ago, and as it was", said(10 * time.Second), creating(nil), true, true},
		{"told in the future, as by a clock that was put back", said(-time.Second), creating(nil), true, true},
		{"never told, and as it was", nil, creating(nil), true, true},
		{"told of another run", func(known *starts, _ *v1alpha1.AgenticSession) {
			known.confirmed(creating(func(s *v1alpha1.AgenticSession) { s.Status.Run = 1 }), now)
		}, creating(nil), true, true},
		{"told of an earlier session of the name", func(known *starts, _ *v1alpha1.AgenticSession) {
			known.confirmed(creating(func(s *v1alpha1.AgenticSession) { s.UID = "before" }), now)
		}, creating(nil), true, true},
		{"gone", nil, nil, true, false},
		{"another session of the name", nil, creating(func(s *v1alpha1.AgenticSession) { s.UID = "other" }), true, false},
		{"in another phase", nil, creating(func(s *v1alpha1.AgenticSession) { s.Status.Phase = v1alpha1.PhaseCompleted }), true, false},
		{"in another run", nil, creating(func(s *v1alpha1.AgenticSession) { s.Status.Run = 3 }), true, false},
		{"with its Job in the status", nil, creating(func(s *v1alpha1.AgenticSession) { s.Status.JobUID = "job" }), true, false},
		{"to be stopped", nil, creating(func(s *v1alpha1.AgenticSession) {
			s.Annotations = map[string]string{v1alpha1.AnnotationDesiredPhase: v1alpha1.DesiredStopped}
		}), true, false},
		{"being deleted", nil, creating(func(s *v1alpha1.AgenticSession) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: now}, []string{"example.com/keep"}
		}), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := fake.NewClientBuilder().WithScheme(sessionsOnly(t))
			if c.stored != nil {
				server = server.WithObjects(c.stored.DeepCopy())
			}
			asked := false
			r := &AgenticSessionReconciler{Clock: clocktesting.NewFakePassiveClock(now), Live: server.WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					asked = true
					return c.Get(ctx, key, object, options...)
				},
			}).Build()}
			known := creating(nil)
			if c.told != nil {
				c.told(&r.starts, known)
			}
			due, err := r.jobIsDue(t.Context(), known)
			if err != nil || due != c.due || asked != c.asked {
				t.Errorf("due: %t, want %t; asked: %t, want %t (%v)", due, c.due, asked, c.asked, err)
			}
			if !due {
				return
			}
			asked = false
			if due, err := r.jobIsDue(t.Context(), known); !due || err != nil || asked {
				t.Errorf("asked again at once: %t (due: %t, %v)", asked, due, err)
			}
		})
	}
}

// TestCase9TheProcessKnowsTheJobItMade: a status that could not be written does not make it forget its Job.
func TestCase9TheProcessKnowsTheJobItMade(t *testing.T) {
	known := &starts{}
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: "p", Name: "a", UID: "uid"}}
	s.Status.Run = 1
	known.made(s, "job")
	known.confirmed(s, time.Now())
	if job := known.of(s).job; job != "job" {
		t.Errorf("it knows of Job %q", job)
	}
	if s.Status.Run = 2; known.of(s).job != "" {
		t.Error("the next run is taken to have the Job of the last")
	}
	s.Status.Run = 1
	if known.forget(client.ObjectKeyFromObject(s)); known.of(s).job != "" {
		t.Error("it knows what it was to forget")
	}
}

// TestMappingsInsist: what maps events under --legacy-watch asks until it is answered.
func TestMappingsInsist(t *testing.T) {
	refusals := 2
	server := fake.NewClientBuilder().WithScheme(sessionsOnly(t)).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			if refusals--; refusals >= 0 {
				return errors.New("the API server is away")
			}
			return nil
		},
	}).Build()
	reader := patientReader{server}
	if err := reader.List(t.Context(), &v1alpha1.AgenticSessionList{}); err != nil || refusals >= 0 {
		t.Errorf("%v, with %d refusals left", err, refusals)
	}
	if err := reader.Get(t.Context(), client.ObjectKey{Namespace: "p", Name: "a"}, &v1alpha1.AgenticSession{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("what is not there: %v", err)
	}
	refusals = 1 << 20
	ended, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	if err := reader.List(ended, &v1alpha1.AgenticSessionList{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("when its time is up: %v", err)
	}
}

// TestTimesOfRequests: the time of a request that was overtaken goes with the one that overtook it, that of
// one that is still to come stays.
func TestTimesOfRequests(t *testing.T) {
	const start, stop = v1alpha1.AnnotationStartRequestedAt, v1alpha1.AnnotationStopRequestedAt
	for name, c := range map[string]struct {
		annotations map[string]string
		times       int
	}{
		"alone":        {map[string]string{start: "2026-01-01T12:00:00Z"}, 1},
		"without time": {map[string]string{stop: "2026-01-01T12:00:00Z"}, 1},
		"overtook one": {map[string]string{start: "2026-01-01T12:00:01Z", stop: "2026-01-01T12:00:00Z"}, 2},
		"before one":   {map[string]string{start: "2026-01-01T12:00:00Z", stop: "2026-01-01T12:00:01Z"}, 1},
		"no time":      {map[string]string{start: "2026-01-01T12:00:01Z", stop: "noon"}, 1},
	} {
		s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
		s.Annotations[v1alpha1.AnnotationDesiredPhase] = v1alpha1.DesiredRunning
		if times := requestTimes(s); len(times) != c.times || times[0] != start {
			t.Errorf("%s: %v", name, times)
		}
	}
}
