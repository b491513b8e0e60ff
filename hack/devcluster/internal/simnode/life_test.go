package simnode

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// scene is a pod, what it needs, and a clock that the test moves.
type scene struct {
	pod     *corev1.Pod
	secrets map[string]map[string]bool
	life    *life
	now     time.Time
}

func newScene(script string, edit ...func(*corev1.Pod)) *scene {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "img", Env: []corev1.EnvVar{{Name: scriptVariable, Value: script}}}},
		},
	}
	for _, e := range edit {
		e(pod)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &scene{pod: pod, secrets: map[string]map[string]bool{}, now: now, life: newLife(pod, "10.244.0.1", "127.0.0.1", now)}
}

// after moves the clock, following every moment at which the life wants to be looked at.
func (s *scene) after(d time.Duration) corev1.PodStatus {
	find := func(_, name string) (map[string]bool, bool) { keys, ok := s.secrets[name]; return keys, ok }
	w := world{secrets: find, configMaps: find}
	end := s.now.Add(d)
	for {
		s.life.advance(s.pod, w, s.now)
		status := s.life.status(s.pod, s.now)
		if s.life.wakes.IsZero() || s.life.wakes.After(end) {
			s.now = end
			return status
		}
		s.now = s.life.wakes
	}
}

func (s *scene) delete(grace int64) {
	s.pod.DeletionTimestamp = ptr.To(metav1.NewTime(s.now.Add(time.Duration(grace) * time.Second)))
	s.pod.DeletionGracePeriodSeconds = &grace
}

func mainState(status corev1.PodStatus) corev1.ContainerState {
	return status.ContainerStatuses[0].State
}

func isReady(status corev1.PodStatus) bool {
	for _, c := range status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func wantPhase(t *testing.T, status corev1.PodStatus, want corev1.PodPhase) {
	t.Helper()
	if status.Phase != want {
		t.Fatalf("phase is %s, want %s (status %+v)", status.Phase, want, status)
	}
}

func wantExit(t *testing.T, status corev1.PodStatus, code int32, reason string) {
	t.Helper()
	got := mainState(status).Terminated
	if got == nil || got.ExitCode != code || got.Reason != reason {
		t.Fatalf("container ended as %+v, want code %d, reason %s", mainState(status), code, reason)
	}
}

func wantWaiting(t *testing.T, status corev1.PodStatus, reason string) {
	t.Helper()
	if got := mainState(status).Waiting; got == nil || got.Reason != reason {
		t.Fatalf("container is %+v, want waiting with reason %s", mainState(status), reason)
	}
}

func TestRunsAndExits(t *testing.T) {
	s := newScene("sleep 2s\nexit 3")
	wantPhase(t, s.after(time.Second), corev1.PodRunning)
	status := s.after(2 * time.Second)
	wantPhase(t, status, corev1.PodFailed)
	wantExit(t, status, 3, "Error")

	status = newScene("exit 0").after(0)
	wantPhase(t, status, corev1.PodSucceeded)
	wantExit(t, status, 0, "Completed")

	status = newScene("oom").after(0)
	wantPhase(t, status, corev1.PodFailed)
	wantExit(t, status, 137, "OOMKilled")

	status = newScene("evict").after(0)
	wantPhase(t, status, corev1.PodFailed)
	if status.Reason != "Evicted" {
		t.Errorf("reason is %q, want Evicted", status.Reason)
	}
}

func TestReadiness(t *testing.T) {
	probed := func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} }
	if !isReady(newScene("").after(0)) {
		t.Error("without a probe the pod is not ready at once")
	}
	s := newScene("", probed)
	if isReady(s.after(10 * time.Millisecond)) {
		t.Error("with a probe the pod is ready at once")
	}
	if !isReady(s.after(100 * time.Millisecond)) {
		t.Error("with a probe the pod is not ready after it passed")
	}
	s = newScene("ready-after 5s", probed)
	if isReady(s.after(4 * time.Second)) {
		t.Error("ready before its time")
	}
	if !isReady(s.after(2 * time.Second)) {
		t.Error("not ready after its time")
	}
	if isReady(newScene("never-ready", probed).after(time.Hour)) {
		t.Error("never-ready became ready")
	}
}

func TestStop(t *testing.T) {
	s := newScene("")
	s.after(0)
	s.delete(30)
	status := s.after(time.Second)
	wantPhase(t, status, corev1.PodFailed)
	wantExit(t, status, 143, "Error")

	s = newScene("ignore-sigterm")
	s.after(0)
	s.delete(5)
	wantPhase(t, s.after(4*time.Second), corev1.PodRunning)
	status = s.after(2 * time.Second)
	wantPhase(t, status, corev1.PodFailed)
	wantExit(t, status, 137, "Error")

	s = newScene("", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "img:nope" })
	wantWaiting(t, s.after(0), "ErrImagePull")
	s.delete(30)
	wantPhase(t, s.after(0), corev1.PodFailed)
}

func TestImageThatCanNotBePulled(t *testing.T) {
	s := newScene("", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "registry.example/img:nope" })
	wantWaiting(t, s.after(0), "ErrImagePull")
	wantWaiting(t, s.after(1500*time.Millisecond), "ImagePullBackOff")
	wantWaiting(t, s.after(3*time.Second), "ErrImagePull")
	s.pod.Spec.Containers[0].Image = "registry.example/img:good"
	wantPhase(t, s.after(time.Second), corev1.PodRunning)
}

func TestMissingSecret(t *testing.T) {
	s := newScene("", func(p *corev1.Pod) {
		ref := corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "key"}}
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &ref}}
	})
	status := s.after(3 * time.Second)
	wantPhase(t, status, corev1.PodPending)
	wantWaiting(t, status, "CreateContainerConfigError")
	if got := mainState(status).Waiting.Message; got != `secret "key" not found` {
		t.Errorf("message is %q", got)
	}
	s.secrets["key"] = map[string]bool{}
	wantPhase(t, s.after(time.Second), corev1.PodRunning)
}

func TestMissingKeyAndVolume(t *testing.T) {
	s := newScene("", func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "key"}, Key: "token"},
		}})
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "files"}}}}
	})
	s.secrets["key"] = map[string]bool{"other": true}
	wantWaiting(t, s.after(0), "ContainerCreating")
	if want := (warning{"FailedMount", `MountVolume.SetUp failed for volume "v" : secret "files" not found`}); s.life.warning != want {
		t.Errorf("warning is %+v, want %+v", s.life.warning, want)
	}
	s.secrets["files"] = map[string]bool{}
	status := s.after(2 * time.Second)
	wantWaiting(t, status, "CreateContainerConfigError")
	if got := mainState(status).Waiting.Message; got != "couldn't find key token in Secret ns/key" {
		t.Errorf("message is %q", got)
	}
	s.secrets["key"]["token"] = true
	wantPhase(t, s.after(2*time.Second), corev1.PodRunning)
}

func TestInitContainersAndSidecars(t *testing.T) {
	s := newScene("sleep 3s\nexit 0", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "first", Image: "img", Env: []corev1.EnvVar{{Name: scriptVariable, Value: "sleep 1s\nexit 0"}}},
			{Name: "sidecar", Image: "img", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
			{Name: "last", Image: "img"},
		}
	})
	status := s.after(500 * time.Millisecond)
	wantPhase(t, status, corev1.PodPending)
	wantWaiting(t, status, "PodInitializing")
	status = s.after(time.Second)
	wantPhase(t, status, corev1.PodRunning)
	if status.InitContainerStatuses[1].State.Running == nil {
		t.Errorf("the sidecar does not run: %+v", status.InitContainerStatuses[1].State)
	}
	status = s.after(4 * time.Second)
	wantPhase(t, status, corev1.PodSucceeded)
	if status.InitContainerStatuses[1].State.Terminated == nil {
		t.Error("the sidecar outlives the pod")
	}

	failing := newScene("", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "img", Env: []corev1.EnvVar{{Name: scriptVariable, Value: "exit 1"}}}}
	})
	wantPhase(t, failing.after(0), corev1.PodFailed)
}

func TestScriptAnnotationAndRestart(t *testing.T) {
	s := newScene("hang")
	wantPhase(t, s.after(time.Hour), corev1.PodRunning)
	s.pod.Annotations = map[string]string{ScriptAnnotation: "sleep 1s\nexit 2"}
	wantPhase(t, s.after(500*time.Millisecond), corev1.PodRunning)
	status := s.after(time.Second)
	wantPhase(t, status, corev1.PodFailed)
	wantExit(t, status, 2, "Error")

	again := newScene("exit 1", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure })
	status = again.after(500 * time.Millisecond)
	wantPhase(t, status, corev1.PodRunning)
	wantWaiting(t, status, "CrashLoopBackOff")
	if status = again.after(time.Second); status.ContainerStatuses[0].RestartCount != 2 {
		t.Errorf("restarted %d times, want 2", status.ContainerStatuses[0].RestartCount)
	}
}

func TestActiveDeadline(t *testing.T) {
	s := newScene("", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To(int64(10)) })
	wantPhase(t, s.after(9*time.Second), corev1.PodRunning)
	status := s.after(2 * time.Second)
	wantPhase(t, status, corev1.PodFailed)
	if status.Reason != "DeadlineExceeded" {
		t.Errorf("reason is %q, want DeadlineExceeded", status.Reason)
	}
}
