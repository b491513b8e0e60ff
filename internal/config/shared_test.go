package config_test

import (
	"slices"
	"testing"

	"github.com/ambient-code/agentic-operator/internal/workload"
)

func TestSwitchesAreReadAsThePlatformReadsThem(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "0": false, "false": false, "False": false, " ": false, "false\n": false,
		"1": true, "true": true, "True": true, "yes": true, "on\n": true,
	} {
		c, err := load("LANGFUSE_ENABLED=" + value)
		if err != nil || c.Tracing != (workload.Tracing{Langfuse: want}) {
			t.Errorf("LANGFUSE_ENABLED=%q gives %+v, %v", value, c.Tracing, err)
		}
		c, err = load("MLFLOW_TRACING_ENABLED=" + value)
		if err != nil || c.Tracing != (workload.Tracing{MLflow: want}) {
			t.Errorf("MLFLOW_TRACING_ENABLED=%q gives %+v, %v", value, c.Tracing, err)
		}
	}
}

func TestSecretsAreSharedWhenThePlatformAsksForThem(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{nil, nil},
		{[]string{"USE_VERTEX=1", "CLOUD_ML_REGION=r", "ANTHROPIC_VERTEX_PROJECT_ID=p", "GOOGLE_APPLICATION_CREDENTIALS=/c"}, []string{"ambient-vertex"}},
		{[]string{"LANGFUSE_ENABLED=true"}, []string{"ambient-admin-langfuse-secret"}},
		{[]string{"MLFLOW_TRACING_ENABLED=true", "LANGFUSE_ENABLED=1"}, []string{"ambient-admin-langfuse-secret", "ambient-admin-mlflow-observability-secret"}},
	} {
		got, err := load(c.words...)
		if err != nil || !slices.Equal(got.SharedSecrets(), c.want) {
			t.Errorf("%v: %v are shared, %v; want %v", c.words, got.SharedSecrets(), err, c.want)
		}
		for _, name := range got.SharedSecrets() {
			if !slices.Contains(workload.SharedSecrets, name) {
				t.Errorf("%s is not among all that can be shared", name)
			}
		}
	}
}
