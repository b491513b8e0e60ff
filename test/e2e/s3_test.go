//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig"
)

// keptInS3 is a runner type whose workspaces are kept in S3.
const keptInS3 = "kept-in-s3"

// register lists the runner types: the usual one, and one that differs only in what keeps its
// workspaces. Its grace period makes the interval between copies the longest there is, a minute:
// what a shorter run leaves in S3 was copied at its end.
func register(ctx context.Context) error {
	container := map[string]any{"image": rig.RunnerImage.Name}
	types, err := json.Marshal([]map[string]any{
		{"id": "claude-agent-sdk", "container": container},
		{"id": keptInS3, "container": container, "sandbox": map[string]any{"persistence": "s3", "terminationGracePeriod": 120}},
	})
	if err != nil {
		return fmt.Errorf("writing the registry: %w", err)
	}
	registry := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: rig.OperatorNamespace, Name: "ambient-agent-registry"},
		Data:       map[string]string{"agent-registry.json": string(types)},
	}
	if err := cluster.Client.Create(ctx, registry); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("making the registry: %w", err)
	}
	return nil
}

// inS3 has a session keep its workspace in S3, with more variables as NAME=VALUE.
func inS3(variables ...string) func(*v1alpha1.AgenticSession) {
	return func(s *v1alpha1.AgenticSession) {
		s.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"RUNNER_TYPE": keptInS3}
		for _, v := range variables {
			name, value, _ := strings.Cut(v, "=")
			s.Spec.EnvironmentVariables[name] = v1alpha1.EnvironmentValue(value)
		}
	}
}

// kept waits until the bucket has what it should under a session's name, and fails where something
// lies beside it.
func kept(t *testing.T, namespace, name string, wanted ...string) {
	t.Helper()
	var keys []string
	for deadline := time.Now().Add(long); ; time.Sleep(time.Second) {
		var err error
		if keys, err = cluster.Objects(t.Context(), namespace+"/"); err != nil {
			t.Fatal(err)
		}
		missing := slices.ContainsFunc(wanted, func(path string) bool {
			return !slices.Contains(keys, namespace+"/"+name+"/"+path)
		})
		if !missing {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s the bucket has %v under %s/, want %v under %s/%s/", long, keys, namespace, wanted, namespace, name)
		}
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, namespace+"/"+name+"/") || strings.HasSuffix(key, ".git") {
			t.Errorf("the bucket has %s, which is not the session's", key)
		}
	}
}

// hidden fails where the credentials of S3 stand in what is not a Secret.
func hidden(t *testing.T, namespace string) {
	t.Helper()
	text, err := cluster.RunKubectl(t.Context(), "-n", namespace, "get", "as,job,pod,configmap,events", "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "AWS_SECRET_ACCESS_KEY") || strings.Contains(string(text), rig.S3SecretKey) || strings.Contains(string(text), rig.S3AccessKey) {
		t.Error("credentials of S3 are not, or not only by reference, in the project's objects")
	}
}

// What a session leaves is in the bucket when its run has ended, and is found again on a new, empty
// volume by the next run and by a later session of its name. The runner numbers its runs by what it
// finds in the workspace, which is what tells.
func TestS3KeepsTheWorkspace(t *testing.T) {
	t.Parallel()
	ns := project(t)
	told := session(t, ns, "kept", "sleep 3s", inS3("RESUME_EXIT=0"))
	told.reaches(t, v1alpha1.PhaseRunning, long)
	hidden(t, ns)
	s := told.reaches(t, v1alpha1.PhaseCompleted, long)
	kept(t, ns, "kept", "metadata.json", "artifacts/run-1/report.md", "artifacts/run-1/report.json")
	if ran := s.Status.CompletionTime.Sub(s.Status.StartTime.Time); ran > 50*time.Second {
		t.Logf("the run took %s: a copy in its middle may have been enough", ran)
	}

	ask(t, ns, "kept", v1alpha1.DesiredRunning)
	told.until(t, long, "completed again", func(s *v1alpha1.AgenticSession) bool {
		return s.Status.Run == 2 && s.Status.Phase == v1alpha1.PhaseCompleted
	})
	kept(t, ns, "kept", "artifacts/run-1/report.json", "artifacts/run-2/report.json")

	object := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "kept"}}
	if err := cluster.Client.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	gone := func() bool {
		return client.IgnoreNotFound(cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)) == nil && len(pods(t, ns, "kept")) == 0
	}
	for deadline := time.Now().Add(long); !gone(); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("the session is not gone after %s", long)
		}
	}
	again := session(t, ns, "kept", "sleep 1s", inS3())
	again.reaches(t, v1alpha1.PhaseCompleted, long)
	kept(t, ns, "kept", "artifacts/run-1/report.json", "artifacts/run-2/report.json", "artifacts/run-3/report.json")
}

// A stop is told to the runner and then to the sidecar, which makes a last copy within the grace
// period.
func TestS3LastCopyAtAStop(t *testing.T) {
	t.Parallel()
	ns := project(t)
	told := session(t, ns, "long", "hang", inS3())
	told.reaches(t, v1alpha1.PhaseRunning, long)
	ask(t, ns, "long", v1alpha1.DesiredStopped)
	told.reaches(t, v1alpha1.PhaseStopped, long)
	keys, err := cluster.Objects(t.Context(), ns+"/long/")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(keys, ns+"/long/artifacts/run-1/report.json") {
		t.Errorf("when the session is stopped the bucket has %v", keys)
	}
	report, err := cluster.Object(t.Context(), ns+"/long/artifacts/run-1/report.json")
	if err != nil || !strings.Contains(string(report), `"long"`) {
		t.Errorf("the report in the bucket is %s (%v)", report, err)
	}
}

// A storage that cannot be used fails the run before its runner starts, once, and says why.
func TestS3ThatRefuses(t *testing.T) {
	t.Parallel()
	ns := project(t)
	own := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "ambient-non-vertex-integrations"},
		StringData: map[string]string{"STORAGE_MODE": "custom", "S3_ACCESS_KEY": rig.S3AccessKey, "S3_SECRET_KEY": "not-the-key"},
	}
	if err := cluster.Client.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, change, says string }{
		{"credentials", `{"stringData":{"S3_SECRET_KEY":"not-the-key"}}`, "check the credentials"},
		{"bucket", fmt.Sprintf(`{"stringData":{"S3_SECRET_KEY":%q,"S3_BUCKET":"no-such-bucket"}}`, rig.S3SecretKey), `no bucket "no-such-bucket"`},
	} {
		if err := cluster.Client.Patch(t.Context(), own, client.RawPatch("application/merge-patch+json", []byte(c.change))); err != nil {
			t.Fatal(err)
		}
		told := session(t, ns, c.name, "exit 0", inS3())
		s := told.reaches(t, v1alpha1.PhaseFailed, long)
		_, reason, message := condition(t, s, v1alpha1.ConditionFailed)
		if reason != v1alpha1.ReasonWorkspaceNotPrepared || !strings.Contains(message, c.says) || strings.Contains(message, rig.S3SecretKey) {
			t.Errorf("%s: it failed for %s: %s; want WorkspaceNotPrepared, ...%s...", c.name, reason, message, c.says)
		}
		made := pods(t, ns, c.name)
		if len(made) != 1 || made[0].Status.InitContainerStatuses[0].RestartCount != 0 {
			t.Errorf("%s: %d pods were made, want exactly one that tried once", c.name, len(made))
		}
	}
}

// A sidecar that does not stay up is told in the status while the runner runs on.
func TestS3SidecarThatCrashes(t *testing.T) {
	t.Parallel()
	ns := project(t)
	told := session(t, ns, "crashing", "hang", inS3("SYNC_CRASH_AFTER=2"))
	s := told.until(t, long, "told of the sidecar", func(s *v1alpha1.AgenticSession) bool {
		return slices.ContainsFunc(s.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ConditionReady && c.Reason == v1alpha1.ReasonStateSyncFailing
		})
	})
	status, _, message := condition(t, s, v1alpha1.ConditionReady)
	if status != "False" || !strings.Contains(message, "SYNC_CRASH_AFTER") {
		t.Errorf("Ready is %s: %s", status, message)
	}
	ask(t, ns, "crashing", v1alpha1.DesiredStopped)
	told.reaches(t, v1alpha1.PhaseStopped, 2*long)
	if ran := pods(t, ns, "crashing"); len(ran) != 0 {
		t.Errorf("%d pods are left", len(ran))
	}
}
