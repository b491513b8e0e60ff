//go:build e2e

package olm

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// elsewhere is a namespace that an installation is not for.
func (s site) elsewhere() string { return string(s) + "-elsewhere" }

// serves installs the version being worked on for some namespaces, and wants it to run a session in each
// of them and to leave one elsewhere alone.
func (s site) serves(t *testing.T, watched []string) {
	t.Cleanup(func() {
		if t.Failed() {
			s.describe(t, watched[0])
		}
	})
	s.install(t, current, "spec: {}", "spec: {targetNamespaces: ["+strings.Join(watched, ", ")+"]}")
	t.Logf("version %s is Succeeded %s after the Subscription", current.Number, s.succeeded(t, current))
	s.deployed(t, current)
	for _, project := range append(watched, s.elsewhere()) {
		manage(t, project)
		start(t, project, "works", "sleep 1s", nil)
	}
	for _, project := range watched {
		reaches(t, project, "works", v1alpha1.PhaseCompleted)
	}
	// Pending is what the API server makes of no phase.
	if left := get(t, s.elsewhere(), "works"); left.Status.Phase != v1alpha1.PhasePending || len(left.Status.Conditions) > 0 || left.Status.Run > 0 {
		t.Errorf("the session in %s, which the operator is not for, has the status %+v", s.elsewhere(), left.Status)
	}
}

// manage makes a namespace a project with the Secret that its runners need.
func manage(t *testing.T, name string) {
	t.Helper()
	target := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, v1alpha1.LabelManaged)
	if err := cluster.Client.Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: runnerSecret}, StringData: map[string]string{"ANTHROPIC_API_KEY": "not-a-key"}}
	if err := cluster.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
