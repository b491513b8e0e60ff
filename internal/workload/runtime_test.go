package workload_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

func TestASessionPicksItsType(t *testing.T) {
	s := &v1alpha1.AgenticSession{}
	if got := workload.RunnerType(s); got != "claude-agent-sdk" {
		t.Errorf("a session that picks none has %s", got)
	}
	s.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"RUNNER_TYPE": "gemini-cli"}
	if got := workload.RunnerType(s); got != "gemini-cli" {
		t.Errorf("a session that picks gemini-cli has %s", got)
	}
}

// Case 27: the objects of a run in progress are made from what its Job says, whatever the registry
// says by then.
func TestCase27ARunStaysAsItBegan(t *testing.T) {
	for _, c := range plans {
		began := c.plan()
		job := began.Job(1)
		job.Spec.Template.Spec = small().Job(1).Spec.Template.Spec // caches do not keep it
		later := c.plan()
		later.Runtime = runtimes.Default("registry.example/edited:2")
		later.Storage = workload.Storage{}
		later.Follow(job)
		if got, want := later.Service().Spec.Ports[0], began.Service().Spec.Ports[0]; got != want {
			t.Errorf("%s: the Service's port becomes %+v, was %+v", c.name, got, want)
		}
		if later.Volumeless() != began.Volumeless() || later.KeptInS3() != began.KeptInS3() || later.Storage.Shared != began.Storage.Shared {
			t.Errorf("%s: the workspace is kept otherwise: %q, was %q", c.name, later.Volumeless(), began.Volumeless())
		}
	}
}

// A Job of an operator that knew the built-in type alone, or one that somebody spoilt.
func TestAJobThatDoesNotSayItsType(t *testing.T) {
	for _, annotations := range []map[string]string{nil, {v1alpha1.AnnotationRunnerPort: "many", v1alpha1.AnnotationPersistence: "?"}, {v1alpha1.AnnotationRunnerPort: "0"}} {
		p := small()
		job := &batchv1.Job{}
		job.Annotations = annotations
		p.Follow(job)
		if port := p.Service().Spec.Ports[0].Port; port != 8001 || p.Volumeless() != "" {
			t.Errorf("%v: port %d, %q", annotations, port, p.Volumeless())
		}
	}
}

func TestATypeWithoutVertex(t *testing.T) {
	p := full()
	p.Runtime.Auth.NoVertex = true
	if got, _ := value(t, p, "USE_VERTEX"); got != "0" {
		t.Errorf("USE_VERTEX is %s", got)
	}
	pod := p.Job(1).Spec.Template.Spec
	for _, volume := range pod.Volumes {
		if volume.Name == "vertex" {
			t.Error("the credentials of Vertex AI are mounted")
		}
	}
	if optional := pod.Containers[0].EnvFrom[0].SecretRef.Optional; *optional {
		t.Error("the runner starts without its keys")
	}
}

func TestTheVariablesOfAType(t *testing.T) {
	p := small()
	p.SecretKeys = []string{"ANTHROPIC_API_KEY"}
	p.Runtime.Env = map[string]string{
		"LLM_MODEL": "of the type", "SESSION_ID": "of the type", "AGUI_PORT": "1", "ANTHROPIC_API_KEY": "of the type", "OWN": "of the type", "EXTRA": "of the type",
	}
	p.Session.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"OWN": "of the session"}
	for name, want := range map[string]string{"LLM_MODEL": "claude-sonnet-4-6", "SESSION_ID": "hello", "AGUI_PORT": "8001", "OWN": "of the session", "EXTRA": "of the type"} {
		if got, _ := value(t, p, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got, found := value(t, p, "ANTHROPIC_API_KEY"); found {
		t.Errorf("ANTHROPIC_API_KEY is %q; it hides the Secret's", got)
	}
}

func TestTheStateFolder(t *testing.T) {
	p := other()
	if got := stateMount(p); got != "/app/.other/state of .other/state" {
		t.Errorf("the type's: %s", got)
	}
	p.Session.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"RUNNER_STATE_DIR": ".mine"}
	if got := stateMount(p); got != "/app/.mine of .mine" {
		t.Errorf("the session's: %s", got)
	}
	p.Session.Spec.EnvironmentVariables["RUNNER_STATE_DIR"] = "../../etc"
	if got := stateMount(p); got != "/app/.other/state of .other/state" {
		t.Errorf("one outside of the workspace: %s", got)
	}
	if problems := workload.Problems(p.Session); len(problems) != 1 {
		t.Errorf("one outside of the workspace: %v", problems)
	}
}

func stateMount(p *workload.Plan) string {
	for _, m := range p.Job(1).Spec.Template.Spec.Containers[0].VolumeMounts {
		if m.Name == "workspace" && m.SubPath != "" {
			return m.MountPath + " of " + m.SubPath
		}
	}
	return "none"
}
