//go:build e2e

package monitoring

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig"
)

// endings is how many sessions of one round end in which way.
var endings = map[v1alpha1.Phase]int{v1alpha1.PhaseCompleted: 4, v1alpha1.PhaseFailed: 1, v1alpha1.PhaseStopped: 1}

// prompts are scripts of the reference runner, by the phase that they lead to.
var prompts = map[v1alpha1.Phase]string{
	v1alpha1.PhaseCompleted: "sleep 6s\nexit 0",
	v1alpha1.PhaseFailed:    "sleep 6s\nexit 1",
	v1alpha1.PhaseStopped:   "hang", // until it is told to stop
}

// round runs a round of sessions in a project, side by side, each to its end.
func round(t *testing.T, namespace string, number int) {
	t.Helper()
	wanted := map[string]v1alpha1.Phase{}
	for phase, count := range endings {
		for i := range count {
			name := fmt.Sprintf("round-%d-%s-%d", number, short[phase], i)
			wanted[name] = phase
			s := &v1alpha1.AgenticSession{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec:       v1alpha1.AgenticSessionSpec{InitialPrompt: prompts[phase]},
			}
			if err := cluster.Client.Create(t.Context(), s); err != nil {
				t.Fatalf("creating session %s: %v", name, err)
			}
		}
	}
	for name, phase := range wanted {
		if phase == v1alpha1.PhaseStopped {
			reaches(t, namespace, name, v1alpha1.PhaseRunning)
			stop(t, namespace, name)
		}
		reaches(t, namespace, name, phase)
	}
}

var short = map[v1alpha1.Phase]string{v1alpha1.PhaseCompleted: "works", v1alpha1.PhaseFailed: "fails", v1alpha1.PhaseStopped: "stops"}

func stop(t *testing.T, namespace, name string) {
	t.Helper()
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationDesiredPhase, v1alpha1.DesiredStopped)
	if err := cluster.Client.Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatalf("stopping %s: %v", name, err)
	}
}

func reaches(t *testing.T, namespace, name string, phase v1alpha1.Phase) {
	t.Helper()
	s := &v1alpha1.AgenticSession{}
	eventually(t, fmt.Sprintf("session %s is %s", name, phase), func(ctx context.Context) (bool, string, error) {
		err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)
		return s.Status.Phase == phase, fmt.Sprintf("%+v", s.Status), err
	})
}

// eventually waits until something is so; what it sees instead is part of the failure.
func eventually(t *testing.T, what string, is func(context.Context) (yes bool, sees string, err error)) {
	t.Helper()
	if err := within(t.Context(), what, is); err != nil {
		t.Fatal(err)
	}
}

func within(ctx context.Context, what string, is func(context.Context) (yes bool, sees string, err error)) error {
	seen := ""
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, soon, true, func(ctx context.Context) (bool, error) {
		yes, sees, err := is(ctx)
		seen = sees
		return yes, err
	})
	if err != nil {
		return fmt.Errorf("after %s it is not so that %s (%w); last seen: %s", soon, what, err, seen)
	}
	return nil
}

// restart ends all pods of the operator, as a node does that goes down, and waits for others.
func restart(t *testing.T) {
	t.Helper()
	pods := operatorPods(t)
	for i := range pods {
		if err := cluster.Client.Delete(t.Context(), &pods[i]); err != nil {
			t.Fatalf("ending the operator: %v", err)
		}
	}
	eventually(t, "the operator's old pods are gone", func(ctx context.Context) (bool, string, error) {
		for i := range pods {
			if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(&pods[i]), &corev1.Pod{}); err == nil {
				return false, pods[i].Name, nil
			}
		}
		return true, "", nil
	})
	if err := cluster.ReadyIn(t.Context(), operatorNamespace); err != nil {
		t.Fatal(err)
	}
}

func operatorPods(t *testing.T) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	err := cluster.Client.List(t.Context(), pods, client.InNamespace(operatorNamespace), client.MatchingLabels{"app.kubernetes.io/name": rig.OperatorName})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}
