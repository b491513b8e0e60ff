//go:build e2e

package olm

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

const (
	project = "team-a"
	// late is a project without the Secret that its runners need.
	late         = "team-without-keys"
	runnerSecret = "ambient-runner-secrets"
)

// start makes a session.
func start(t *testing.T, project, name, prompt string, change func(*v1alpha1.AgenticSession)) {
	t.Helper()
	s := &v1alpha1.AgenticSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name},
		Spec:       v1alpha1.AgenticSessionSpec{InitialPrompt: prompt},
	}
	if change != nil {
		change(s)
	}
	if err := cluster.Client.Create(t.Context(), s); err != nil {
		t.Fatalf("creating session %s: %v", name, err)
	}
}

func get(t *testing.T, project, name string) *v1alpha1.AgenticSession {
	t.Helper()
	s := &v1alpha1.AgenticSession{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: project, Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// reaches waits until a session is in a phase.
func reaches(t *testing.T, project, name string, phase v1alpha1.Phase) *v1alpha1.AgenticSession {
	t.Helper()
	s := &v1alpha1.AgenticSession{}
	until(t, soon, fmt.Sprintf("session %s to be %s", name, phase), func(ctx context.Context) (bool, string) {
		if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: project, Name: name}, s); err != nil {
			return false, err.Error()
		}
		return s.Status.Phase == phase, fmt.Sprintf("%+v", s.Status)
	})
	return s
}

// ask sets the request of a user on a session.
func ask(t *testing.T, project, name, desired string) {
	t.Helper()
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationDesiredPhase, desired)
	if err := cluster.Client.Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatalf("asking for %s: %v", desired, err)
	}
}

// projects makes the projects that sessions are made in.
func projects(t *testing.T) {
	t.Helper()
	if err := errors.Join(cluster.Project(t.Context(), project), cluster.Project(t.Context(), late)); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: late, Name: runnerSecret}}
	if err := cluster.Client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// everyPhase makes sessions and waits until they are in the phases that can last: one that is queued until
// its project has a Secret, one that runs, and one that ended in each way.
func everyPhase(t *testing.T) {
	t.Helper()
	start(t, project, "runs", "hang", func(s *v1alpha1.AgenticSession) { s.Spec.Timeout = new(int64(7200)) })
	start(t, project, "works", "sleep 1s", nil)
	start(t, project, "fails", "exit 3", nil)
	start(t, project, "stopped", "hang", nil)
	start(t, late, "queued", "sleep 1s", nil)
	reaches(t, project, "stopped", v1alpha1.PhaseRunning)
	ask(t, project, "stopped", v1alpha1.DesiredStopped)
	for name, phase := range map[string]v1alpha1.Phase{
		"runs": v1alpha1.PhaseRunning, "works": v1alpha1.PhaseCompleted, "fails": v1alpha1.PhaseFailed, "stopped": v1alpha1.PhaseStopped,
	} {
		reaches(t, project, name, phase)
	}
	until(t, soon, "session queued to say that its Secret is missing", func(ctx context.Context) (bool, string) {
		s := &v1alpha1.AgenticSession{}
		if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: late, Name: "queued"}, s); err != nil {
			return false, err.Error()
		}
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionSecretsReady)
		return c != nil && c.Status == metav1.ConditionFalse, fmt.Sprintf("%+v", s.Status)
	})
}

// begin makes a session that is being started until it is stopped, or for five minutes: then its runner is
// taken for dead. All that is made for it is there when begin returns, so that nothing about it changes by
// itself.
func begin(t *testing.T) {
	t.Helper()
	start(t, project, "starts", "never-ready\nhang", nil)
	until(t, soon, "session starts to have its pod", func(ctx context.Context) (bool, string) {
		s, pods := &v1alpha1.AgenticSession{}, &corev1.PodList{}
		if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: project, Name: "starts"}, s); err != nil {
			return false, err.Error()
		}
		if err := cluster.Client.List(ctx, pods, client.InNamespace(project), client.MatchingLabels{v1alpha1.LabelSession: s.Name}); err != nil {
			return false, err.Error()
		}
		return s.Status.Phase == v1alpha1.PhaseCreating && s.Status.JobUID != "" && len(pods.Items) == 1, fmt.Sprintf("%+v", s.Status)
	})
}

// giveUp stops it: versions that hold upgrades would hold the next one for it.
func giveUp(t *testing.T) {
	t.Helper()
	ask(t, project, "starts", v1alpha1.DesiredStopped)
	reaches(t, project, "starts", v1alpha1.PhaseStopped)
}

// goOn has every session go on from where it was: what is queued is given its Secret and completes, what
// runs is stopped, what was stopped is started again.
func goOn(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: late, Name: runnerSecret}, StringData: map[string]string{"ANTHROPIC_API_KEY": "not-a-key"}}
	if err := cluster.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	ask(t, project, "stopped", v1alpha1.DesiredRunning)
	ask(t, project, "runs", v1alpha1.DesiredStopped)
	reaches(t, late, "queued", v1alpha1.PhaseCompleted)
	reaches(t, project, "runs", v1alpha1.PhaseStopped)
	if s := reaches(t, project, "stopped", v1alpha1.PhaseRunning); s.Status.Run != 2 {
		t.Errorf("the session that was started again is in run %d, want 2", s.Status.Run)
	}
	for project, names := range map[string][]string{project: {"works", "fails"}, late: {"queued"}} {
		for _, name := range names {
			if s := get(t, project, name); s.Status.Run != 1 {
				t.Errorf("session %s is in run %d, want 1", name, s.Status.Run)
			}
		}
	}
}

// picture is what must not change in a session that nobody touches.
type picture struct {
	phase     v1alpha1.Phase
	run       int64
	job       string
	pods      string
	started   string
	completed string
	since     string
}

// String is what people are told of it.
func (p picture) String() string {
	if p.phase == "" {
		return "gone"
	}
	text := fmt.Sprintf("%s, run %d", p.phase, p.run)
	if p.job != "" {
		text += ", Job " + p.job
	}
	if p.pods != "" {
		text += ", pod " + p.pods
	}
	return text
}

// pictures takes one of each session of our projects.
func pictures(t *testing.T) map[string]picture {
	t.Helper()
	var sessions []v1alpha1.AgenticSession
	for _, name := range []string{project, late} {
		found := &v1alpha1.AgenticSessionList{}
		if err := cluster.Client.List(t.Context(), found, client.InNamespace(name)); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, found.Items...)
	}
	taken := map[string]picture{}
	for i := range sessions {
		s := &sessions[i]
		p := picture{
			phase: s.Status.Phase, run: s.Status.Run, job: s.Status.JobUID,
			started: fmt.Sprint(s.Status.StartTime), completed: fmt.Sprint(s.Status.CompletionTime),
		}
		if ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			p.since = fmt.Sprintf("%s since %s", ready.Status, ready.LastTransitionTime)
		}
		for _, pod := range runnerPods(t, s.Namespace, s.Name) {
			restarts := int32(0)
			for _, c := range pod.Status.ContainerStatuses {
				restarts += c.RestartCount
			}
			p.pods += fmt.Sprintf("%s (%d restarts)", pod.UID, restarts)
		}
		taken[s.Name] = p
	}
	return taken
}

func runnerPods(t *testing.T, project, name string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.Client.List(t.Context(), list, client.InNamespace(project), client.MatchingLabels{v1alpha1.LabelSession: name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// undisturbed compares pictures and prints them.
func undisturbed(t *testing.T, before, after map[string]picture) {
	t.Helper()
	for name, was := range before {
		is, found := after[name]
		t.Logf("session %s\n  before %s\n  after  %s", name, was, is)
		if !found {
			t.Errorf("session %s is gone", name)
		} else if is != was {
			t.Errorf("session %s is not what it was: before %#v, after %#v", name, was, is)
		}
	}
}
