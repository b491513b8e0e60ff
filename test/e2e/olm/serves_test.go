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

// serves installs the version being worked on for some namespaces, wants it to run a session in each
// of them and to leave one elsewhere alone, and uninstalls it.
func serves(t *testing.T, own string, watched []string) {
	t.Helper()
	usual := namespace
	namespace = own
	t.Cleanup(func() {
		if t.Failed() {
			describe(t, watched[0])
		}
		namespace = usual
	})
	elsewhere := own + "-elsewhere"
	namespaces(t, elsewhere)
	install(t, current, "spec: {}", "spec: {targetNamespaces: ["+strings.Join(watched, ", ")+"]}")
	t.Logf("version %s is Succeeded %s after the Subscription", current.Number, succeeded(t, current))
	deployed(t, current)
	for _, project := range append(watched, elsewhere) {
		manage(t, project)
		start(t, project, "works", "sleep 1s", nil)
	}
	for _, project := range watched {
		reaches(t, project, "works", v1alpha1.PhaseCompleted)
	}
	// Pending is what the API server makes of no phase.
	if s := get(t, elsewhere, "works"); s.Status.Phase != v1alpha1.PhasePending || len(s.Status.Conditions) > 0 || s.Status.Run > 0 {
		t.Errorf("the session in %s, which the operator is not for, has the status %+v", elsewhere, s.Status)
	}
	readme(t, "delete subscription")
	gone(t, own)
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
