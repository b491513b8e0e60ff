//go:build e2e

package olm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/test/rig/olm"
)

// targets are namespaces that an OperatorGroup in a namespace names to ask for an install mode.
var targets = map[string]func(own string) []string{
	"OwnNamespace":    func(own string) []string { return []string{own} },
	"SingleNamespace": func(own string) []string { return []string{own + "-watched"} },
	"MultiNamespace":  func(own string) []string { return []string{own + "-watched", own + "-too"} },
}

// TestInstallModes: a mode that the bundle supports is installed, and serves the namespaces that it is
// for and no other. One that it does not support is refused at once, by name, and nothing of the operator
// is started. TestUpgrade installs in the mode AllNamespaces. (Case 57.)
func TestInstallModes(t *testing.T) {
	modes := installModes(t, current)
	if !modes["AllNamespaces"] {
		t.Error("the bundle does not support AllNamespaces")
	}
	for mode, watched := range targets {
		own := site("mode-" + strings.ToLower(mode))
		all := append(watched(string(own)), string(own), own.elsewhere())
		slices.Sort(all)
		namespaces(t, slices.Compact(all)...)
	}
	// Side by side, as their namespaces are apart. What they share on the cluster goes with the first
	// that is uninstalled.
	for _, step := range []struct {
		name string
		do   func(t *testing.T, own site, mode string, watched []string)
	}{
		{"Install", func(t *testing.T, own site, mode string, watched []string) {
			if modes[mode] {
				own.serves(t, watched)
			} else {
				own.refused(t, current, mode, watched)
			}
		}},
		{"Uninstall", func(t *testing.T, own site, mode string, _ []string) {
			if modes[mode] {
				own.readme(t, "delete subscription")
				gone(t, string(own))
			}
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			for mode, watched := range targets {
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					own := "mode-" + strings.ToLower(mode)
					step.do(t, site(own), mode, watched(own))
				})
			}
		})
	}
}

// manifest reads the ClusterServiceVersion of a bundle.
func manifest(t *testing.T, v olm.Version) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(v.Bundle, "manifests", "agentic-operator.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func installModes(t *testing.T, v olm.Version) map[string]bool {
	t.Helper()
	listed, _, err := unstructured.NestedSlice(manifest(t, v).Object, "spec", "installModes")
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]bool{}
	for _, mode := range listed {
		m, ok := mode.(map[string]any)
		if !ok {
			t.Fatalf("%v is no install mode", mode)
		}
		modes[fmt.Sprint(m["type"])] = m["supported"] == true
	}
	return modes
}

func (s site) refused(t *testing.T, v olm.Version, mode string, watched []string) {
	t.Helper()
	group := s.object("operators.coreos.com/v1", "OperatorGroup", "agentic-operator")
	group.Object["spec"] = map[string]any{"targetNamespaces": list(watched)}
	if err := cluster.Client.Create(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	o := manifest(t, v)
	o.SetNamespace(string(s))
	if err := cluster.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "OLM to refuse", func(ctx context.Context) (bool, string) {
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		return field(o, "status", "phase") == "Failed", fmt.Sprintf("%v, %v", o.Object["status"], err)
	})
	if reason, message := field(o, "status", "reason"), field(o, "status", "message"); reason != "UnsupportedOperatorGroup" || !strings.Contains(message, mode) {
		t.Errorf("OLM says %s: %s; want UnsupportedOperatorGroup and the name of the mode", reason, message)
	}
	pods := &corev1.PodList{}
	if err := cluster.Client.List(t.Context(), pods, client.InNamespace(string(s))); err != nil || len(pods.Items) != 0 {
		t.Errorf("%d pods run, %v; want none", len(pods.Items), err)
	}
	if err := cluster.Client.Delete(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// namespaces makes namespaces for one test.
func namespaces(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
		if err := cluster.Client.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cluster.Client.Delete(context.Background(), ns); client.IgnoreNotFound(err) != nil {
				t.Errorf("removing namespace %s: %v", name, err)
			}
		})
	}
}

func list(values []string) []any {
	converted := make([]any, 0, len(values))
	for _, v := range values {
		converted = append(converted, v)
	}
	return converted
}
