package workload_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// traced are the variables for traces and the Secrets that they come from; source: the platform.
var traced = map[string]string{
	"LANGFUSE_ENABLED": "ambient-admin-langfuse-secret", "LANGFUSE_HOST": "ambient-admin-langfuse-secret",
	"LANGFUSE_PUBLIC_KEY": "ambient-admin-langfuse-secret", "LANGFUSE_SECRET_KEY": "ambient-admin-langfuse-secret",
	"MLFLOW_TRACING_ENABLED": "ambient-admin-mlflow-observability-secret", "MLFLOW_TRACKING_URI": "ambient-admin-mlflow-observability-secret",
	"MLFLOW_EXPERIMENT_NAME": "ambient-admin-mlflow-observability-secret", "MLFLOW_TRACKING_AUTH": "ambient-admin-mlflow-observability-secret",
	"MLFLOW_WORKSPACE": "ambient-admin-mlflow-observability-secret", "OBSERVABILITY_BACKENDS": "ambient-admin-mlflow-observability-secret",
}

func TestRunnersReportWhereThePlatformAsksForIt(t *testing.T) {
	for _, tracing := range []workload.Tracing{{}, {Langfuse: true}, {MLflow: true}, {Langfuse: true, MLflow: true}} {
		p := small()
		p.Operator.Tracing = tracing
		asked := map[string]bool{"ambient-admin-langfuse-secret": tracing.Langfuse, "ambient-admin-mlflow-observability-secret": tracing.MLflow}
		got := map[string]corev1.EnvVar{}
		for _, v := range environment(p) {
			got[v.Name] = v
		}
		for name, secret := range traced {
			v, found := got[name]
			if found != asked[secret] {
				t.Errorf("%+v: %s is set: %t", tracing, name, found)
			}
			if !found {
				continue
			}
			if ref := v.ValueFrom.SecretKeyRef; ref.Name != secret || ref.Key != name || ref.Optional == nil || !*ref.Optional {
				t.Errorf("%+v: %s comes from %+v; a Secret that is missing may not keep the runner from starting", tracing, name, ref)
			}
		}
	}
}

func TestCase38VariablesForTracesAreNotOverridden(t *testing.T) {
	p := small()
	p.Operator.Tracing = workload.Tracing{Langfuse: true}
	p.Session.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"LANGFUSE_HOST": "https://mine.example.com", "MLFLOW_TRACKING_URI": "https://mine.example.com"}
	p.Runtime.Env = map[string]string{"LANGFUSE_SECRET_KEY": "mine"}
	env := environment(p)
	for _, name := range []string{"LANGFUSE_HOST", "LANGFUSE_SECRET_KEY"} {
		if i := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == name }); env[i].ValueFrom == nil || env[i].Value != "" {
			t.Errorf("%s was overridden: %+v", name, env[i])
		}
	}
	if got, _ := value(t, p, "MLFLOW_TRACKING_URI"); got != "https://mine.example.com" {
		t.Errorf("MLFLOW_TRACKING_URI, which comes from no Secret, is %q", got)
	}
}

func TestWhatAPodRefersTo(t *testing.T) {
	p := full()
	p.Operator.Tracing = workload.Tracing{Langfuse: true}
	pod := &p.Job(1).Spec.Template.Spec
	for secret, want := range map[string]bool{workload.VertexSecret: true, workload.LangfuseSecret: true, workload.MLflowSecret: false} {
		if got := workload.RefersTo(pod, secret); got != want {
			t.Errorf("the pod refers to %s: %t, want %t", secret, got, want)
		}
	}
	bare := &small().Job(1).Spec.Template.Spec
	for _, secret := range workload.SharedSecrets {
		if workload.RefersTo(bare, secret) {
			t.Errorf("a pod that uses nothing refers to %s", secret)
		}
	}
}
