package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// asBackend changes the session as the platform's backend does: it reads all of it, changes something
// and writes all of it back under the version that it read. It says how often it came too late.
func (s *session) asBackend(status bool, change func(*unstructured.Unstructured) error) (conflicts int, err error) {
	for ; ; conflicts++ {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AgenticSession"))
		if err := suite.admin.Get(s.ctx, s.key(s.name), object); err != nil {
			return conflicts, err
		}
		if err := change(object); err != nil {
			return conflicts, err
		}
		if status {
			err = suite.admin.Status().Update(s.ctx, object)
		} else {
			err = suite.admin.Update(s.ctx, object)
		}
		if !apierrors.IsConflict(err) {
			return conflicts, err
		}
	}
}

// asks sets the request and its time as the backend does.
func (s *session) asksAsBackend(phase, timeKey string) {
	s.t.Helper()
	if _, err := s.asBackend(false, func(object *unstructured.Unstructured) error {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AnnotationDesiredPhase], annotations[timeKey] = phase, time.Now().UTC().Format(time.RFC3339)
		object.SetAnnotations(annotations)
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
}

// activity is what the backend writes about the activity of a session, again and again.
type activity struct {
	writes, conflicts int
	last              string
	err               error
}

// keepsActive has the backend write lastActivityTime, much more often than it does, until told to end.
func (s *session) keepsActive(end <-chan struct{}) <-chan activity {
	done := make(chan activity, 1)
	go func() {
		a := activity{}
		for at := time.Now(); a.err == nil; at = at.Add(time.Second) {
			select {
			case <-end:
				done <- a
				return
			case <-time.After(200 * time.Millisecond):
			}
			a.last = at.UTC().Format(time.RFC3339)
			conflicts, err := s.asBackend(true, func(object *unstructured.Unstructured) error {
				return unstructured.SetNestedField(object.Object, a.last, "status", "lastActivityTime")
			})
			a.writes, a.conflicts, a.err = a.writes+1, a.conflicts+conflicts, err
		}
		done <- a
	}()
	return done
}

// TestTheBackendWrites: the backend and the operator write the same objects, the backend all of them at
// once. What each of them wrote is there in the end, and the session goes its way.
func TestTheBackendWrites(t *testing.T) {
	p := share(t)
	s := p.session("talking", "hang", timeout(0))
	end := make(chan struct{})
	done := s.keepsActive(end)
	s.reaches(running)
	s.asksAsBackend(v1alpha1.DesiredStopped, v1alpha1.AnnotationStopRequestedAt)
	object := s.reaches(stopped)
	if object.Status.StoppedReason != v1alpha1.StoppedByUser || object.Status.LastActivityTime == nil {
		t.Errorf("stoppedReason is %q, lastActivityTime %v", object.Status.StoppedReason, object.Status.LastActivityTime)
	}
	s.requestsConsumed()
	if _, err := s.asBackend(false, func(object *unstructured.Unstructured) error {
		return errors.Join(unstructured.SetNestedField(object.Object, "other", "spec", "llmSettings", "model"),
			unstructured.SetNestedField(object.Object, "renamed", "spec", "displayName"))
	}); err != nil {
		t.Fatal(err)
	}
	s.asksAsBackend(v1alpha1.DesiredRunning, v1alpha1.AnnotationStartRequestedAt)
	s.reachesInRun(2, running)
	s.requestsConsumed()
	close(end)
	wrote := <-done
	if wrote.err != nil || wrote.writes < 5 {
		t.Fatalf("the backend wrote %d times: %v", wrote.writes, wrote.err)
	}
	t.Logf("the backend wrote %d times and came too late %d times", wrote.writes, wrote.conflicts)
	p.settles(time.Second)
	object = s.object()
	if err := suite.admin.Get(p.ctx, client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	status := &object.Status
	if status.LastActivityTime == nil || status.LastActivityTime.UTC().Format(time.RFC3339) != wrote.last {
		t.Errorf("lastActivityTime is %v, the backend wrote %s", status.LastActivityTime, wrote.last)
	}
	if status.Run != 2 || status.JobName != fmt.Sprintf("%s-run-2", s.name) || status.JobUID == "" || status.PodName == "" || status.StartTime == nil || status.ObservedGeneration != object.Generation {
		t.Errorf("of what the operator wrote something is lost: %+v", status)
	}
	if object.Spec.LLMSettings.Model != "other" || object.Spec.DisplayName != "renamed" {
		t.Errorf("the spec is %+v", object.Spec)
	}
	s.expectHistory(pending, creating, running, stopping, stopped, pending, creating, running)
}

// TestWritersWithoutPause: somebody annotates a session all the time, faster than a pass over it takes with
// plain watches.
// Its status is written all the same, and a request that comes in between counts.
func TestWritersWithoutPause(t *testing.T) {
	p := share(t)
	s := p.session("restless", "hang", timeout(0))
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan int, 1)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			time.Sleep(10 * time.Millisecond) // other tests need the API server as well
			object := s.object()
			beat := fmt.Sprintf(`{"metadata":{"annotations":{"team/beat":"%d"}}}`, n)
			if err := suite.admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(beat))); err != nil && ctx.Err() == nil {
				t.Error(err)
				break
			}
		}
		done <- n
	}()
	began := time.Now()
	s.reaches(running)
	s.stop()
	s.reaches(stopped)
	s.requestsConsumed()
	cancel()
	t.Logf("%d annotations in %s", <-done, time.Since(began).Round(time.Millisecond))
	s.ranOnce()
	s.expectHistory(pending, creating, running, stopping, stopped)
}
