package runtimes_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/internal/runtimes"
)

// The example of the documentation can be used as it is.
func TestTheExampleOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/runner-types.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatal("there is no example")
	}
	registry := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(example[1], registry); err != nil {
		t.Fatal(err)
	}
	r := runtimes.Of(registry.Data, defaults)
	if registry.Name != runtimes.RegistryConfigMap || len(r.Problems()) > 0 || !slices.Equal(r.Known(), []string{"claude-agent-sdk", "gemini-cli"}) {
		t.Errorf("ConfigMap %s has %v, problems %v", registry.Name, r.Known(), r.Problems())
	}
}
