package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestCase18ActivityAtTheLastMoment: activity that is recorded just when an idle session is about to be
// stopped puts the end off.
func TestCase18ActivityAtTheLastMoment(t *testing.T) {
	const limit = 4 * time.Second
	p := share(t)
	s := p.session("late", "hang", timeout(0), func(s *v1alpha1.AgenticSession) { s.Spec.InactivityTimeout = ptr(int64(limit / time.Second)) })
	var recorded atomic.Bool
	p.operator.gate.hookInto(t, p.name, func(request *http.Request) *http.Response {
		if request.Method != http.MethodPatch || !strings.HasSuffix(request.URL.Path, "/agenticsessions/late/status") {
			return nil
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"phase":"Stopping"`)) || recorded.Swap(true) {
			return nil
		}
		status := fmt.Appendf(nil, `{"status":{"lastActivityTime":%q}}`, time.Now().UTC().Format(time.RFC3339))
		if err := suite.admin.Status().Patch(p.ctx, s.object(), client.RawPatch("application/merge-patch+json", status)); err != nil {
			t.Errorf("recording activity: %v", err)
		}
		return nil
	})
	object := s.tells(stopped, v1alpha1.ReasonInactivityTimeout)
	if !recorded.Load() || object.Status.LastActivityTime == nil {
		t.Fatal("no activity was recorded")
	}
	for _, v := range suite.recorder.Versions(s.uid) {
		if v.Object.Status.Phase == stopping {
			if idle := v.At.Sub(object.Status.LastActivityTime.Time); idle < limit {
				t.Errorf("stopped %s after its last activity", idle)
			}
			break
		}
	}
	s.expectHistory(pending, creating, running, stopping, stopped)
}

// TestAStopIsBounded: a pod that is still there long after its grace period, as on a node that is
// lost, does not hold up a stop for ever, and the session says what was done.
func TestAStopIsBounded(t *testing.T) {
	clock := &aheadClock{}
	run, r := withClock(t, clock)
	p := newProject(t, run)
	s := p.session("deaf", "ignore-sigterm\nhang", timeout(0), func(s *v1alpha1.AgenticSession) { s.Spec.InactivityTimeout = ptr(int64(0)) })
	s.reaches(running)
	pod := s.pod()
	s.stop()
	s.reaches(stopping)
	p.eventually("the pod is told to end", func() error {
		if err := suite.admin.Get(p.ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	})
	// As a node does that is no longer there, the simulated one leaves the pod alone.
	p.patch(pod, `{"metadata":{"annotations":{"simnode.ambient-code.io/manual":"true"}}}`)
	p.always(2*time.Second, "the stop waits for the pod", func() error { return s.phaseIs(stopping) })
	clock.step(4 * time.Minute)
	s.annotate("team/x", "wake")
	object := s.reaches(stopped)
	if err := p.absent(pod.Name, &corev1.Pod{}); err != nil {
		t.Error(err)
	}
	if object.Status.StoppedReason != v1alpha1.StoppedByUser {
		t.Errorf("stoppedReason is %q", object.Status.StoppedReason)
	}
	told := ""
	for _, v := range suite.recorder.Versions(s.uid) {
		if ready := condition(v.Object, v1alpha1.ConditionReady); ready.Reason == v1alpha1.ReasonForcedStop {
			told = ready.Message
		}
	}
	if !strings.Contains(told, pod.Name) {
		t.Errorf("the session does not say that its pod was removed by force: %q", told)
	}
	s.expectHistory(pending, creating, running, stopping, stopped)

	// A session that is gone when its turn comes is no error.
	p.remove(s)
	if result, err := r.Reconcile(p.ctx, ctrl.Request{NamespacedName: p.key(s.name)}); err != nil || result != (ctrl.Result{}) {
		t.Errorf("of a session that is gone it is said: %+v, %v", result, err)
	}
}
