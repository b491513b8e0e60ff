package workload_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

func TestParent(t *testing.T) {
	for _, c := range []struct {
		name, annotation, variable, parent string
	}{
		{"none", "", "", ""},
		{"annotation", " session-0 ", "", "session-0"},
		{"variable", "", "session-1", "session-1"},
		{"annotation before variable", "session-0", "session-1", "session-0"},
		// The platform names the session itself when it is started again.
		{"itself", "hello", "", ""},
	} {
		s := small().Session
		s.Annotations = map[string]string{v1alpha1.AnnotationParentSessionID: c.annotation}
		s.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"PARENT_SESSION_ID": v1alpha1.EnvironmentValue(c.variable)}
		if got := workload.Parent(s); got != c.parent {
			t.Errorf("%s: the parent is %q, want %q", c.name, got, c.parent)
		}
		if got := workload.WantsParentWorkspace(s); got != (c.parent != "") {
			t.Errorf("%s: it wants the workspace of a parent: %v", c.name, got)
		}
		s.Annotations[v1alpha1.AnnotationParentWorkspace] = "false"
		if workload.WantsParentWorkspace(s) {
			t.Errorf("%s: it wants what it refused", c.name)
		}
	}
}

func TestARunGoesOnInTheWorkspaceOfAnother(t *testing.T) {
	p := small()
	p.Continued = "session-0"
	job := p.Job(1)
	claims := 0
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims++
			if v.PersistentVolumeClaim.ClaimName != "ambient-workspace-session-0" {
				t.Errorf("the pod mounts %s", v.PersistentVolumeClaim.ClaimName)
			}
		}
	}
	if claims != 1 {
		t.Errorf("the pod mounts %d claims, want 1", claims)
	}
	if next := small(); next.Continued == "" {
		if next.Follow(job); next.Continued != "session-0" {
			t.Errorf("a plan that follows the Job goes on in the workspace of %q", next.Continued)
		}
		if next.Follow(small().Job(1)); next.Continued != "" {
			t.Error("a plan that follows a Job of its own workspace goes on in that of another")
		}
	}
}

func TestHoldIsReadAsItWasWritten(t *testing.T) {
	hold := workload.HoldFor(small().Session, 3)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationWorkspaceUser: hold.String()}}}
	if got := workload.HoldOf(claim); got != hold {
		t.Errorf("%+v was written and %+v read", hold, got)
	}
	for _, text := range []string{"", "somebody", "a/b", "a/b/c", "a/b/1/2"} {
		claim.Annotations[v1alpha1.AnnotationWorkspaceUser] = text
		if got := workload.HoldOf(claim); got != (workload.Hold{}) {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestHoldStandsForOneRun(t *testing.T) {
	for _, c := range []struct {
		phase  v1alpha1.Phase
		run    int64
		stands bool
	}{
		{"", 0, true}, {v1alpha1.PhasePending, 0, true}, {v1alpha1.PhaseCreating, 1, true}, {v1alpha1.PhaseRunning, 1, true},
		{v1alpha1.PhaseStopping, 1, true}, {v1alpha1.PhaseStopped, 1, false}, {v1alpha1.PhaseCompleted, 1, false},
		{v1alpha1.PhaseFailed, 1, false}, {v1alpha1.PhasePending, 1, false}, {v1alpha1.PhaseCreating, 2, false},
	} {
		s := small().Session
		hold := workload.HoldFor(s, 1)
		s.Status.Phase, s.Status.Run = c.phase, c.run
		if got := hold.Stands(s); got != c.stands {
			t.Errorf("%q in run %d: the hold for run 1 stands: %v", c.phase, c.run, got)
		}
		if s.UID = "another"; hold.Stands(s) {
			t.Errorf("%q: the hold of a deleted session stands for one of its name", c.phase)
		}
	}
}

func TestMounts(t *testing.T) {
	pod := &corev1.Pod{Spec: small().Job(1).Spec.Template.Spec}
	if !workload.Mounts(pod, "ambient-workspace-hello") || workload.Mounts(pod, "another") {
		t.Error("a pod does not mount its claim alone")
	}
	for _, ended := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		pod.Status.Phase = ended
		if workload.Mounts(pod, "ambient-workspace-hello") {
			t.Errorf("a pod that is %s still counts", ended)
		}
	}
}
