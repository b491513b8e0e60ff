package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

func keeping(id, persistence string) entry {
	return plainEntry(id, entry{"sandbox": entry{
		"persistence": persistence, "stateSyncImage": "registry.example/state-sync:1", "workspaceSize": "1Gi",
		"seed": entry{"cloneRepos": true, "hydrateState": true},
	}})
}

// restricted makes a project in which Pod Security refuses what is not restricted.
func restricted(t *testing.T, operator *operatorRun) *project {
	t.Helper()
	p := newProject(t, operator)
	p.label("pod-security.kubernetes.io/enforce", "restricted")
	return p
}

// shareStorage makes the Secret with the credentials that all projects share.
func shareStorage(t *testing.T, key string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: suite.access.namespace, Name: workload.SharedStorageSecret},
		StringData: map[string]string{"access-key": key, "secret-key": "not-a-secret", "root-password": "not for projects"},
	}
	if err := suite.admin.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := suite.admin.Delete(context.Background(), secret); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return secret
}

func names(containers []corev1.Container) string {
	var all []string
	for i := range containers {
		all = append(all, containers[i].Name)
	}
	return strings.Join(all, " ")
}

// TestPersistence: each kind has the volumes and the containers it needs, and Pod Security
// "restricted" accepts them. (Case 37.)
func TestPersistence(t *testing.T) {
	p := restricted(t, alone(t, nil))
	shareStorage(t, "not-a-key")
	register(t, keeping("none", "none"), keeping("pvc", "pvc"), keeping("s3", "s3"))
	for _, c := range []struct {
		kind, prepared string
		claim          bool
	}{
		{"none", "init-hydrate", false},
		{"pvc", "init-hydrate", true},
		{"s3", "init-hydrate state-sync", false},
	} {
		s := p.session(c.kind, "hang", ofType(c.kind))
		object := s.reaches(running)
		pod := s.pod()
		if got := names(pod.Spec.InitContainers); got != c.prepared {
			t.Errorf("%s: before the runner there are %q, want %q", c.kind, got, c.prepared)
		}
		if volume := pod.Spec.Volumes[0]; (volume.EmptyDir == nil) == !c.claim || (volume.PersistentVolumeClaim == nil) == c.claim {
			t.Errorf("%s: the workspace is %+v", c.kind, volume)
		}
		err := p.absent(workload.WorkspaceName(s.name), &corev1.PersistentVolumeClaim{})
		ready := condition(object, v1alpha1.ConditionPVCReady)
		want := map[bool]string{true: v1alpha1.ReasonPresent, false: v1alpha1.ReasonNotNeeded}[c.claim]
		if (err != nil) != c.claim || ready.Status != metav1.ConditionTrue || ready.Reason != want {
			t.Errorf("%s: claim there: %v; PVCReady is %s for %s: %s", c.kind, err, ready.Status, ready.Reason, ready.Message)
		}
		s.stop()
		object = s.reaches(stopped)
		if got := condition(object, v1alpha1.ConditionPVCReady); got.Reason != want {
			t.Errorf("%s: when it has stopped PVCReady is %s for %s: %s", c.kind, got.Status, got.Reason, got.Message)
		}
		s.start()
		s.reachesInRun(2, running)
	}
}

// TestStorage: the storage of a session of type s3 must be there before it begins, its credentials
// are in no pod, and the copy of the shared ones follows their source and goes with the run.
func TestStorage(t *testing.T) {
	p := restricted(t, alone(t, nil))
	register(t, keeping("s3", "s3"))
	s := p.session("kept", "hang", ofType("s3"))
	says(t, s.tells(pending, v1alpha1.ReasonPrerequisiteMissing), workload.SharedStorageSecret, suite.access.namespace, "STORAGE_MODE=custom")
	source := shareStorage(t, "first-key")
	s.reaches(running)
	refersTo(t, s.pod(), workload.StorageSecretName(s.name))
	liesAt(t, s.pod(), "")

	copied := func() *corev1.Secret {
		secret := &corev1.Secret{}
		if err := suite.admin.Get(p.ctx, p.key(workload.StorageSecretName(s.name)), secret); err != nil {
			return &corev1.Secret{}
		}
		return secret
	}
	holds := func(key string) func() error {
		return func() error {
			if data := copied().Data; string(data["access-key"]) != key || len(data) != 2 {
				return fmt.Errorf("it has %d keys, access-key %q", len(data), data["access-key"])
			}
			return nil
		}
	}
	p.eventually("the copy is made", holds("first-key"))
	checkOwner(t, copied(), s.latest())
	if err := suite.admin.Patch(p.ctx, source, client.RawPatch("application/merge-patch+json", []byte(`{"stringData":{"access-key":"second-key"}}`))); err != nil {
		t.Fatal(err)
	}
	p.eventually("the copy follows its source", holds("second-key"))
	p.delete(copied())
	p.eventually("the copy is made again", holds("second-key"))
	if err := is(running)(s.latest()); err != nil {
		t.Error(err)
	}
	s.ranOnce()
	s.stop()
	s.reaches(stopped)
	p.eventually("the copy is removed", func() error { return p.absent(workload.StorageSecretName(s.name), &corev1.Secret{}) })

	// A project with a storage of its own.
	p.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: workload.IntegrationsSecret}, StringData: map[string]string{
		"STORAGE_MODE": "custom", "S3_ENDPOINT": "https://s3.example.com", "S3_BUCKET": "team"}})
	own := p.session("own", "hang", ofType("s3"))
	says(t, own.tells(pending, v1alpha1.ReasonPrerequisiteMissing), "S3_ACCESS_KEY", workload.IntegrationsSecret)
	p.patch(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: workload.IntegrationsSecret}}, `{"stringData":{"S3_ACCESS_KEY":"own-key","S3_SECRET_KEY":"own-secret"}}`)
	own.reaches(running)
	refersTo(t, own.pod(), workload.IntegrationsSecret)
	liesAt(t, own.pod(), workload.IntegrationsSecret)
	if err := p.absent(workload.StorageSecretName(own.name), &corev1.Secret{}); err != nil {
		t.Errorf("the shared credentials are copied for a session that does not use them: %v", err)
	}
}

// refersTo fails unless the credentials of the state containers come from a Secret.
func refersTo(t *testing.T, pod *corev1.Pod, secret string) {
	t.Helper()
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		seen := 0
		for _, v := range container.Env {
			if v.Name == "AWS_ACCESS_KEY_ID" || v.Name == "AWS_SECRET_ACCESS_KEY" {
				seen++
				if v.Value != "" || v.ValueFrom == nil || v.ValueFrom.SecretKeyRef.Name != secret {
					t.Errorf("%s: %s is %+v, want a key of Secret %s", container.Name, v.Name, v, secret)
				}
			}
		}
		if seen != 2 {
			t.Errorf("%s has %d credentials", container.Name, seen)
		}
	}
}

// liesAt fails unless the state containers have server and bucket from a Secret, or from the
// operator where none is named.
func liesAt(t *testing.T, pod *corev1.Pod, secret string) {
	t.Helper()
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		seen := 0
		for _, v := range container.Env {
			if v.Name != "S3_ENDPOINT" && v.Name != "S3_BUCKET" {
				continue
			}
			seen++
			from := ""
			if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
				from = v.ValueFrom.SecretKeyRef.Name
			}
			if from != secret || (v.Value == "") != (secret != "") {
				t.Errorf("%s: %s is %+v, want it from Secret %q", container.Name, v.Name, v, secret)
			}
		}
		if seen != 2 {
			t.Errorf("%s has %d of server and bucket", container.Name, seen)
		}
	}
}

// TestCase10NativeSidecar: the runner's end decides while the sidecar still copies the last changes
// away, and the Job is left to complete.
func TestCase10NativeSidecar(t *testing.T) {
	p := newProject(t, alone(t, nil))
	shareStorage(t, "not-a-key")
	register(t, keeping("s3", "s3"))
	s := p.session("kept", "hang", ofType("s3"))
	s.reaches(running)
	pod := s.pod()
	if sidecar := pod.Spec.InitContainers[1]; sidecar.RestartPolicy == nil || *sidecar.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Fatalf("container %s is no sidecar", sidecar.Name)
	}
	// The test is the kubelet from here on.
	p.patch(pod, `{"metadata":{"annotations":{"simnode.ambient-code.io/manual":"true"}}}`)
	time.Sleep(200 * time.Millisecond)
	kubelet := func(phase, sidecar string) {
		t.Helper()
		status := fmt.Sprintf(`{"status":{"phase":%q,
			"initContainerStatuses":[
				{"name":"init-hydrate","image":"i","imageID":"","ready":true,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},
				{"name":"state-sync","image":"i","imageID":"","ready":true,"restartCount":0,"state":%s}],
			"containerStatuses":[
				{"name":"ambient-code-runner","image":"i","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}`, phase, sidecar)
		if err := suite.admin.Status().Patch(p.ctx, pod, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	kubelet("Running", `{"running":{"startedAt":"2026-01-01T00:00:00Z"}}`)
	s.tells(completed, v1alpha1.ReasonRunnerCompleted)
	p.always(2*time.Second, "the pod may finish", func() error {
		if jobs := remaining(s.jobs()); len(jobs) != 1 || jobs[0].DeletionTimestamp != nil {
			return fmt.Errorf("%d Jobs are left", len(jobs))
		}
		return nil
	})
	kubelet("Succeeded", `{"terminated":{"exitCode":143,"reason":"Error"}}`)
	p.eventually("the Job is complete and kept for a while", func() error {
		if job := s.job(); job.Status.Succeeded != 1 || job.Spec.TTLSecondsAfterFinished == nil {
			return fmt.Errorf("it has succeeded %d times, TTL %v", job.Status.Succeeded, job.Spec.TTLSecondsAfterFinished)
		}
		return nil
	})
	s.expectHistory(pending, creating, running, completed)
	p.delete(pod, client.GracePeriodSeconds(0))
}
