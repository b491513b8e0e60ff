//go:build e2e

package olm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/olm"
)

// until waits for something, and says at the end what there was instead.
func until(t *testing.T, patience time.Duration, wanted string, is func(context.Context) (bool, string)) {
	t.Helper()
	last := "nothing"
	for deadline := time.Now().Add(patience); ; {
		ok, seen := is(t.Context())
		if ok {
			return
		}
		if seen != "" {
			last = seen
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s; last seen: %s", patience, wanted, last)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("interrupted while waiting for %s; last seen: %s", wanted, last)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// site is a namespace that the operator is installed into, or is to be.
type site string

// team is where upgrades are tested: not where the bundle suggests.
const team site = "tools-of-the-team"

// object is one of OLM's, which have no Go types here.
func (s site) object(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(string(s))
	o.SetName(name)
	return o
}

func (s site) csv(v olm.Version) *unstructured.Unstructured {
	return s.object("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "agentic-operator.v"+v.Number)
}

func field(o *unstructured.Unstructured, path ...string) string {
	value, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		return err.Error()
	}
	return value
}

// install applies what the README tells to apply, with another namespace and with the catalog as it
// is when that version is the newest. More replacements are given in pairs, old and new.
func (s site) install(t *testing.T, newest olm.Version, replacements ...string) {
	t.Helper()
	image, err := lifecycle.PublishCatalog(t.Context(), newest)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(cluster.Root(), "config", "olm", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	replacements = append(replacements, rig.OperatorNamespace, string(s),
		"agentic-operator-catalog:latest", image[strings.LastIndex(image, "/")+1:])
	for pair := range slices.Chunk(replacements, 2) {
		if !bytes.Contains(content, []byte(pair[0])) {
			t.Fatalf("config/olm/install.yaml does not hold %q", pair[0])
		}
		content = bytes.ReplaceAll(content, []byte(pair[0]), []byte(pair[1]))
	}
	file := filepath.Join(t.TempDir(), "install.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s.readme(t, "kubectl apply -f", "config/olm/install.yaml", file)
}

// succeeded waits until a version is installed and works, and returns how long that took.
func (s site) succeeded(t *testing.T, v olm.Version) time.Duration {
	t.Helper()
	began := time.Now()
	until(t, soon, v.Number+" to be Succeeded", func(ctx context.Context) (bool, string) {
		found := s.csv(v)
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return false, err.Error()
		}
		return field(found, "status", "phase") == "Succeeded",
			fmt.Sprintf("%s, %s: %s", field(found, "status", "phase"), field(found, "status", "reason"), field(found, "status", "message"))
	})
	return time.Since(began).Round(time.Second)
}

// operatorPods are the pods of the operator that are not being deleted.
func (s site) operatorPods(ctx context.Context, t *testing.T) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.Client.List(ctx, list, client.InNamespace(string(s)), client.MatchingLabels{"app.kubernetes.io/name": rig.OperatorName}); err != nil {
		t.Fatal(err)
	}
	var pods []corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, list.Items[i])
		}
	}
	return pods
}

// deployed checks that the operator runs as that version's bundle says: in its image, as its own
// ServiceAccount, as often as the bundle wants it.
func (s site) deployed(t *testing.T, v olm.Version) {
	t.Helper()
	// OLM is content with one of them.
	until(t, soon, "both pods to be ready", func(ctx context.Context) (bool, string) {
		d := &appsv1.Deployment{}
		err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: string(s), Name: rig.OperatorName}, d)
		return err == nil && allReady(d), fmt.Sprintf("%+v, %v", d.Status, err)
	})
	for _, pod := range s.operatorPods(t.Context(), t) {
		container := pod.Spec.Containers[0]
		if want := "quay.io/ambient_code/agentic-operator:" + v.Number; container.Image != want {
			t.Errorf("pod %s runs %s, want %s", pod.Name, container.Image, want)
		}
		if pod.Spec.ServiceAccountName != rig.OperatorName {
			t.Errorf("pod %s runs as %s, want %s", pod.Name, pod.Spec.ServiceAccountName, rig.OperatorName)
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.RestartCount != 0 {
				t.Errorf("pod %s was restarted %d times", pod.Name, status.RestartCount)
			}
		}
	}
}

// allReady says that a Deployment has both its replicas, both of its newest template and ready.
func allReady(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == 2 && s.AvailableReplicas == 2 && s.Replicas == 2
}

// describe prints what is known of an installation that failed.
func (s site) describe(t *testing.T, project string) {
	for _, args := range [][]string{
		{"-n", string(s), "get", "catsrc,sub,ip,csv,og,pod,job", "-o", "wide"},
		{"-n", string(s), "get", "sub,csv", "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name} {.status}{\"\\n\"}{end}"},
		{"-n", string(s), "get", "events", "--sort-by=.lastTimestamp"},
		{"-n", string(s), "logs", "--tail=40", "--prefix", "-l", "app.kubernetes.io/name=agentic-operator"},
		{"-n", "olm", "get", "pod", "-o", "wide"},
		{"-n", "olm", "logs", "--tail=30", "deploy/catalog-operator"},
		{"-n", "olm", "logs", "--tail=30", "deploy/olm-operator"},
		{"-n", project, "get", "as,job,pod,events", "-o", "wide"},
	} {
		text, err := cluster.RunKubectl(context.Background(), args...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}
