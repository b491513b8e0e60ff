package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// continues has a session continue another.
func continues(parent *session) edit {
	return func(s *v1alpha1.AgenticSession) {
		s.Annotations = map[string]string{v1alpha1.AnnotationParentSessionID: parent.name}
	}
}

// claimOf is the volume claim that a pod mounts.
func claimOf(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// worksIn fails unless the newest pod of the session works in the workspace of another.
func (s *session) worksIn(owner *session) {
	s.t.Helper()
	if claim := claimOf(s.latestPod()); claim != workload.WorkspaceName(owner.name) {
		s.t.Errorf("session %s works in %s, want that of session %s", s.name, claim, owner.name)
	}
}

// TestContinuationOverAGap: sessions that wait for a workspace are woken although the session between them and
// its owner is gone.
func TestContinuationOverAGap(t *testing.T) {
	p := share(t)
	owner := p.session("owner", "hang")
	owner.reaches(running)
	between := p.session("between", "hang", continues(owner))
	between.tells(pending, v1alpha1.ReasonWorkspaceInUse)
	last := p.session("last", "hang", continues(between))
	last.tells(pending, v1alpha1.ReasonWorkspaceInUse)
	between.stop()
	between.reaches(stopped)
	owner.stop()
	last.reaches(running)
	last.worksIn(owner)

	p.delete(between.latest())
	owner.start()
	owner.tells(pending, v1alpha1.ReasonWorkspaceInUse)
	last.stop()
	last.reaches(stopped)
	owner.reachesInRun(2, running)
}

// TestContinuation: a session that continues another goes on in its workspace, when that is free.
func TestContinuation(t *testing.T) {
	p := share(t)
	parent := p.session("parent", "hang")
	parent.reaches(running)
	claim := &corev1.PersistentVolumeClaim{}
	p.get(workload.WorkspaceName(parent.name), claim)

	child := p.session("child", "hang", continues(parent))
	object := child.tells(pending, v1alpha1.ReasonWorkspaceInUse)
	if message := condition(object, v1alpha1.ConditionReady).Message; !strings.Contains(message, "session parent") || !strings.Contains(message, v1alpha1.AnnotationParentWorkspace+"=false") {
		t.Errorf("the message does not say for whom it waits and what to do: %s", message)
	}
	grandchild := p.session("grandchild", "hang", environment("PARENT_SESSION_ID", child.name))
	grandchild.tells(pending, v1alpha1.ReasonWorkspaceInUse)

	parent.stop()
	parent.reaches(stopped)
	// One of the two, as both name the same workspace in the end.
	first, second := child, grandchild
	p.eventually("one of those that wait goes on", func() error {
		if grandchild.phaseIs(running) == nil {
			first, second = grandchild, child
			return nil
		}
		return child.phaseIs(running)
	})
	first.worksIn(parent)
	second.tells(pending, v1alpha1.ReasonWorkspaceInUse)
	if err := p.absent(workload.WorkspaceName(first.name), &corev1.PersistentVolumeClaim{}); err != nil {
		t.Errorf("a session that goes on in the workspace of another has one of its own: %v", err)
	}
	if c := condition(first.latest(), v1alpha1.ConditionPVCReady); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonContinued {
		t.Errorf("condition PVCReady is %+v", c)
	}

	// The parent, started again, waits for the one that works in its workspace.
	parent.start()
	parent.until("waits for the one that continues it", func(object *v1alpha1.AgenticSession) error {
		ready := condition(object, v1alpha1.ConditionReady)
		if ready.Reason != v1alpha1.ReasonWorkspaceInUse || !strings.Contains(ready.Message, first.name) {
			return fmt.Errorf("%s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
	parent.stop()
	parent.reaches(stopped)
	first.does("exit 0")
	first.reaches(completed)
	second.reaches(running)
	second.worksIn(parent)

	still := &corev1.PersistentVolumeClaim{}
	p.get(claim.Name, still)
	if still.UID != claim.UID || still.OwnerReferences[0].UID != parent.uid || len(still.OwnerReferences) != 1 {
		t.Errorf("the workspace changed hands: %+v", still.OwnerReferences)
	}

	// With the parent goes its workspace, as soon as nobody works in it.
	p.delete(parent.object())
	second.until("is told of the end of its workspace", func(object *v1alpha1.AgenticSession) error {
		if c := condition(object, v1alpha1.ConditionPVCReady); c.Reason != v1alpha1.ReasonBeingDeleted || !strings.Contains(c.Message, "belongs to session parent") {
			return fmt.Errorf("it says %s: %s", c.Reason, c.Message)
		}
		return is(running)(object)
	})
	second.stop()
	second.reaches(stopped)
	p.delete(first.object()) // its finished pod still refers to the claim
	p.eventually("the workspace is gone", func() error { return p.absent(claim.Name, &corev1.PersistentVolumeClaim{}) })
	second.start()
	second.reachesInRun(2, running)
	second.worksIn(second)
}

// TestContinuationWithoutAWorkspace: whoever continues a session that has none gets one of their
// own, or waits if they asked for that; whoever does not want that of the parent has one at once.
func TestContinuationWithoutAWorkspace(t *testing.T) {
	p := share(t)
	nobody := &session{project: p, name: "nobody"}
	alone := p.session("alone", "hang", continues(nobody))
	object := alone.reaches(running)
	alone.worksIn(alone)
	if c := condition(object, v1alpha1.ConditionPVCReady); !strings.Contains(c.Message, "session nobody") {
		t.Errorf("it is not told why it has a workspace of its own: %s", c.Message)
	}
	aside := p.session("aside", "hang", continues(alone), func(s *v1alpha1.AgenticSession) {
		s.Annotations[v1alpha1.AnnotationParentWorkspace] = "false"
	})
	aside.reaches(running)
	aside.worksIn(aside)

	strict := p.session("strict", "hang", continues(nobody), func(s *v1alpha1.AgenticSession) {
		s.Annotations[v1alpha1.AnnotationParentWorkspace] = "true"
	})
	strict.tells(pending, v1alpha1.ReasonWorkspaceInUse)
	late := p.session("nobody", "exit 0")
	late.reaches(completed)
	strict.reaches(running)
	strict.worksIn(nobody)
}

// TestContinuationsTakeTurns: of many that continue one session and are started at the same time,
// and of that one itself, no two ever have a pod in its workspace at once.
func TestContinuationsTakeTurns(t *testing.T) {
	p := share(t)
	parent := p.session("shared", "sleep 300ms\nexit 0")
	parent.reaches(completed)
	var children []*session
	for i := range 6 {
		children = append(children, p.session(fmt.Sprintf("turn-%d", i), "sleep 300ms\nexit 0", continues(parent)))
	}
	parent.start()
	for _, child := range children {
		child.reaches(completed)
	}
	parent.reachesInRun(2, completed)
	for _, child := range children[:3] {
		child.start()
	}
	parent.start()
	for _, child := range children[:3] {
		child.reachesInRun(2, completed)
	}
	parent.reachesInRun(3, completed)
	var all []moment[*corev1.Pod]
	for _, s := range append(children, parent) {
		all = append(all, s.pods()...)
		s.worksIn(parent)
	}
	slices.SortStableFunc(all, func(a, b moment[*corev1.Pod]) int { return a.At.Compare(b.At) })
	if most := mostAtOnce(all); most != 1 {
		t.Errorf("%d pods were in the workspace at once, want 1", most)
	}
}
