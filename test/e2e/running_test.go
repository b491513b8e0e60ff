//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/policy"
	"github.com/ambient-code/agentic-operator/test/rig"
)

// state is what a running reference runner says of itself.
type state struct {
	Repos []struct {
		Name   string `json:"name"`
		Commit string `json:"commit"`
	} `json:"repos"`
	Workflow *struct {
		GitURL string `json:"gitUrl"`
		Branch string `json:"branch"`
	} `json:"workflow"`
	TokenSHA256 string `json:"tokenSHA256"`
}

// runnerState asks the runner of a session, as the platform's backend would.
func runnerState(t *testing.T, namespace, name string) state {
	t.Helper()
	secret := &corev1.Secret{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "ambient-runner-token-" + name}, secret); err != nil {
		t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := clientset.CoreV1().RESTClient().Get().Namespace(namespace).Resource("services").
		Name("session-"+name+":agui").SubResource("proxy").Suffix("state").
		SetHeader("X-Ambient-Session-Token", string(secret.Data["agui-token"])).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("asking the runner: %v: %s", err, answer)
	}
	said := state{}
	if err := json.Unmarshal(answer, &said); err != nil {
		t.Fatal(err)
	}
	return said
}

// A repository that is added to, and taken out of, the spec of a running session reaches its
// runner, and the status says so. Another edit is said to wait for the next start.
func TestRepositoryAddedWhileRunning(t *testing.T) {
	t.Parallel()
	ns := project(t)
	if err := cluster.GitServer(t.Context(), ns, "sample", "docs"); err != nil {
		t.Fatal(err)
	}
	told := session(t, ns, "edited", "hang", func(s *v1alpha1.AgenticSession) {
		s.Spec.Repos = []v1alpha1.Repo{{URL: rig.RepositoryURL(ns, "sample")}}
	})
	s := told.reaches(t, v1alpha1.PhaseRunning, long)
	if len(s.Status.ReconciledRepos) != 1 || s.Status.ReconciledRepos[0].Name != "sample" || s.Status.ReconciledRepos[0].Status != "Ready" {
		t.Errorf("a running session starts with reconciledRepos %+v, want sample, Ready", s.Status.ReconciledRepos)
	}
	job := s.Status.JobUID
	edit := func(patch string) {
		t.Helper()
		target := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "edited"}}
		if err := cluster.Client.Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	edit(fmt.Sprintf(`{"spec":{"repos":[{"url":%q},{"url":%q}]}}`, rig.RepositoryURL(ns, "sample"), rig.RepositoryURL(ns, "docs")))
	told.until(t, soon, "with two repositories", func(s *v1alpha1.AgenticSession) bool {
		return len(s.Status.ReconciledRepos) == 2 && s.Status.ReconciledRepos[1].Status == "Ready"
	})
	if has := runnerState(t, ns, "edited").Repos; len(has) != 2 || has[1].Commit == "" {
		t.Errorf("the runner has the repositories %+v, want two clones", has)
	}
	edit(fmt.Sprintf(`{"spec":{"repos":[{"url":%q}]}}`, rig.RepositoryURL(ns, "docs")))
	told.until(t, soon, "with docs alone", func(s *v1alpha1.AgenticSession) bool {
		return len(s.Status.ReconciledRepos) == 1 && s.Status.ReconciledRepos[0].Name == "docs"
	})
	edit(`{"spec":{"initialPrompt":"exit 0"}}`)
	s = told.until(t, soon, "told of an edit that waits", func(s *v1alpha1.AgenticSession) bool {
		return s.Status.ObservedGeneration == s.Generation && s.Generation == 4
	})
	if status, reason, _ := condition(t, s, v1alpha1.ConditionReconciled); status != "False" || reason != v1alpha1.ReasonSpecChanged {
		t.Errorf("condition Reconciled is %s, %s; want False, SpecChanged", status, reason)
	}
	if s.Status.JobUID != job || s.Status.Phase != v1alpha1.PhaseRunning {
		t.Errorf("the edits changed the run: phase %s, Job %s, before %s", s.Status.Phase, s.Status.JobUID, job)
	}
}

// A repository that cannot be cloned is told in the status and tried again, and the session runs on.
func TestRepositoryThatCannotBeCloned(t *testing.T) {
	t.Parallel()
	ns := project(t)
	told := session(t, ns, "edited", "hang", nil)
	told.reaches(t, v1alpha1.PhaseRunning, long)
	target := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "edited"}}
	patch := fmt.Sprintf(`{"spec":{"repos":[{"url":%q}]}}`, rig.RepositoryURL(ns, "sample"))
	if err := cluster.Client.Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	s := told.until(t, soon, "told of a failure", func(s *v1alpha1.AgenticSession) bool {
		return len(s.Status.ReconciledRepos) == 1 && s.Status.ReconciledRepos[0].Status == "Failed"
	})
	if status, reason, message := condition(t, s, v1alpha1.ConditionReposReconciled); status != "False" || reason != v1alpha1.ReasonRunnerCallFailed {
		t.Errorf("condition ReposReconciled is %s, %s (%s); want False, RunnerCallFailed", status, reason, message)
	}
	// The server appears: the next attempt succeeds.
	if err := cluster.GitServer(t.Context(), ns, "sample"); err != nil {
		t.Fatal(err)
	}
	told.until(t, long, "mended by itself", func(s *v1alpha1.AgenticSession) bool {
		return s.Status.ReconciledRepos[0].Status == "Ready" && s.Status.Phase == v1alpha1.PhaseRunning
	})
}

// A token that is minted anew while a pod runs reaches the pod as a file, without a restart.
func TestTokenReachesRunningPod(t *testing.T) {
	t.Parallel()
	ns := project(t)
	told := session(t, ns, "long", "hang", nil)
	told.reaches(t, v1alpha1.PhaseRunning, long)
	before := runnerState(t, ns, "long").TokenSHA256
	if before == "" {
		t.Fatal("the runner has no token")
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "ambient-session-long"}}
	if err := cluster.Client.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * long); ; time.Sleep(2 * time.Second) {
		if now := runnerState(t, ns, "long").TokenSHA256; now != before && now != "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the runner still has its first token after %s", 2*long)
		}
	}
	if running := pods(t, ns, "long"); len(running) != 1 {
		t.Errorf("the session had %d pods, want exactly 1", len(running))
	}
}

// A runner that is deaf to SIGTERM is killed at the end of its grace period; the session is Stopped.
func TestStopOfDeafRunner(t *testing.T) {
	t.Parallel()
	ns := project(t)
	told := session(t, ns, "deaf", "ignore-sigterm\nhang", nil)
	told.reaches(t, v1alpha1.PhaseRunning, long)
	ask(t, ns, "deaf", v1alpha1.DesiredStopped)
	told.reaches(t, v1alpha1.PhaseStopped, long)
	told.went(t, v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning, v1alpha1.PhaseStopping, v1alpha1.PhaseStopped)
}

// A workflow that is chosen while a session runs reaches its runner, and the status says so.
func TestWorkflowChosenWhileRunning(t *testing.T) {
	t.Parallel()
	ns := project(t)
	if err := cluster.GitServer(t.Context(), ns, "flows"); err != nil {
		t.Fatal(err)
	}
	told := session(t, ns, "guided", "hang", nil)
	told.reaches(t, v1alpha1.PhaseRunning, long)
	if flow := runnerState(t, ns, "guided").Workflow; flow != nil {
		t.Errorf("the runner begins with the workflow %+v", flow)
	}
	target := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "guided"}}
	patch := fmt.Sprintf(`{"spec":{"activeWorkflow":{"gitUrl":%q}}}`, rig.RepositoryURL(ns, "flows"))
	if err := cluster.Client.Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	s := told.until(t, soon, "with a workflow", func(s *v1alpha1.AgenticSession) bool {
		return s.Status.ReconciledWorkflow != nil && s.Status.ReconciledWorkflow.Status == "Active"
	})
	if status, _, message := condition(t, s, v1alpha1.ConditionWorkflowReconciled); status != "True" || s.Status.ReconciledWorkflow.Branch != "main" {
		t.Errorf("condition WorkflowReconciled is %s (%s), the workflow %+v", status, message, s.Status.ReconciledWorkflow)
	}
	if flow := runnerState(t, ns, "guided").Workflow; flow == nil || flow.GitURL != rig.RepositoryURL(ns, "flows") || flow.Branch != "main" {
		t.Errorf("the runner has the workflow %+v", flow)
	}
}

// The network policy of a project selects its runners, as they are on the node, and opens the port on
// which they serve to the operator's namespace.
func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	ns := project(t)
	told := session(t, ns, "guarded", "hang", nil)
	told.reaches(t, v1alpha1.PhaseRunning, long)
	made := &networkingv1.NetworkPolicy{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "runner-allow-backend-only"}, made); err != nil {
		t.Fatal(err)
	}
	pod := pods(t, ns, "guarded")[0]
	if guards, err := policy.Guards(made, pod.Labels); !guards || err != nil {
		t.Errorf("the policy is not about the runner with %v: %v", pod.Labels, err)
	}
	if guards, err := policy.Guards(made, nil); guards || err != nil {
		t.Errorf("the policy is about pods that are no runners: %v", err)
	}
	container := &pod.Spec.Containers[0]
	for namespace, want := range map[string]bool{rig.OperatorNamespace: true, ns: false} {
		from := policy.Caller{Namespace: namespace, NamespaceLabels: map[string]string{corev1.LabelMetadataName: namespace}, PodLabels: pod.Labels}
		if got, err := policy.Admits(made, from, container, container.Ports[0].ContainerPort); got != want || err != nil {
			t.Errorf("namespace %s is let in to where the runner serves: %t, want %t, %v", namespace, got, want, err)
		}
	}
}
