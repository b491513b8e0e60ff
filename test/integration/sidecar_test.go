package integration

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestSidecarThatDoesNotStayUp: while the runner runs on, the status says that its workspace is not
// copied to S3, once however often the sidecar is started again, and that it is again.
func TestSidecarThatDoesNotStayUp(t *testing.T) {
	p := newProject(t, alone(t, nil))
	shareStorage(t, "not-a-key")
	register(t, keeping("s3", "s3"))
	s := p.session("kept", "hang", ofType("s3"))
	s.reaches(running)
	pod := s.pod()
	// The test is the kubelet from here on.
	p.patch(pod, `{"metadata":{"annotations":{"simnode.ambient-code.io/manual":"true"}}}`)
	time.Sleep(200 * time.Millisecond)
	kubelet := func(restarts int, state string) {
		t.Helper()
		status := fmt.Sprintf(`{"status":{"initContainerStatuses":[
			{"name":"init-hydrate","image":"i","imageID":"","ready":true,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},
			{"name":"state-sync","image":"i","imageID":"","ready":false,"restartCount":%d,"state":%s,
			 "lastState":{"terminated":{"exitCode":1,"reason":"Error","message":"syncing\nERROR: no such bucket\n"}}}]}}`, restarts, state)
		if err := suite.admin.Status().Patch(p.ctx, pod, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	kubelet(1, `{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 10s"}}`)
	told := s.tells(running, v1alpha1.ReasonStateSyncFailing)
	says(t, told, "exit code 1", "ERROR: no such bucket")
	if ready := condition(told, v1alpha1.ConditionReady); ready.Status != metav1.ConditionFalse {
		t.Errorf("Ready is %s", ready.Status)
	}
	kubelet(2, fmt.Sprintf(`{"running":{"startedAt":%q}}`, time.Now().UTC().Format(time.RFC3339)))
	kubelet(2, `{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 20s"}}`)
	p.always(2*time.Second, "the status is at rest", func() error {
		if now := s.latest(); now.ResourceVersion != told.ResourceVersion {
			return fmt.Errorf("it was written again: %+v", condition(now, v1alpha1.ConditionReady))
		}
		return nil
	})
	kubelet(3, fmt.Sprintf(`{"running":{"startedAt":%q}}`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)))
	if ready := condition(s.tells(running, v1alpha1.ReasonRunnerStarted), v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue {
		t.Errorf("when the sidecar stays up Ready is %s", ready.Status)
	}
	s.ranOnce()
}
