package session_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// TestCase9APodTellsOfAJobThatNobodyRecorded: the operator may have died between making a Job and saying
// so. When somebody then removes the Job, its pod shows that the work has begun: it is not run again. One that
// could not say so knows it itself.
func TestCase9APodTellsOfAJobThatNobodyRecorded(t *testing.T) {
	pod := func(run, uid string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a-run-1-x", Labels: map[string]string{v1alpha1.LabelRun: run}, Annotations: map[string]string{v1alpha1.AnnotationSessionUID: uid}}}
	}
	for name, c := range map[string]struct {
		pods []corev1.Pod
		made types.UID
		lost bool
	}{
		"no pod":                                {nil, "", false},
		"a pod of this run":                     {[]corev1.Pod{pod("1", "session-uid")}, "", true},
		"a pod of another run":                  {[]corev1.Pod{pod("2", "session-uid")}, "", false},
		"a pod of another session of this name": {[]corev1.Pod{pod("1", "other-uid")}, "", false},
		"a Job of this process":                 {nil, "job", true},
	} {
		w := inPhase(v1alpha1.PhaseCreating)
		w.Pods, w.Made = c.pods, c.made
		if lost := w.Holds(session.RunnerLost); lost != c.lost {
			t.Errorf("%s: the run is lost: %t, want %t", name, lost, c.lost)
		}
		if d := session.Decide(w); (d.To == v1alpha1.PhaseFailed) != c.lost {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
