//go:build e2e

// Package e2e runs the operator as pods of its own image on a real node, with the reference runner
// as real containers: what simulated nodes cannot show. It needs root; "make e2e" runs it.
package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig"
)

// cluster is shared by all tests; each has a project of its own.
var cluster *rig.Cluster

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "e2e", Prepare: install}.Run(m.Run))
}

// install puts the operator onto the cluster, with all that sessions may use.
func install(ctx context.Context, up *rig.Cluster, _ string) (func() error, error) {
	cluster = up
	if err := cluster.Load(ctx, rig.OperatorImage, rig.RunnerImage, rig.GitServerImage, rig.StateSyncImage, rig.S3ServerImage); err != nil {
		return nil, err
	}
	env := map[string]string{
		"AMBIENT_CODE_RUNNER_IMAGE": rig.RunnerImage.Name, "IMAGE_PULL_POLICY": "IfNotPresent",
		"STATE_SYNC_IMAGE": rig.StateSyncImage.Name, "S3_ENDPOINT": rig.S3Endpoint, "S3_BUCKET": rig.S3Bucket,
	}
	if err := cluster.Install(ctx, env); err != nil {
		return nil, err
	}
	if err := register(ctx); err != nil {
		return nil, err
	}
	if err := cluster.S3Server(ctx); err != nil {
		return nil, err
	}
	return nil, cluster.Ready(ctx)
}

// project makes a managed namespace, enforcing Pod Security "restricted", for one test.
func project(t *testing.T) string {
	t.Helper()
	name := "e2e-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	if err := cluster.Project(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			describe(t, name)
		}
		// The node has two processors: what a test leaves running keeps others from starting.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := cluster.Client.Delete(context.Background(), namespace); err != nil {
			t.Errorf("removing the project: %v", err)
		}
	})
	return name
}

// describe prints what is known of a project whose test failed.
func describe(t *testing.T, namespace string) {
	for _, args := range [][]string{
		{"-n", namespace, "get", "as,job,pod,pvc,events", "-o", "wide"},
		{"-n", namespace, "get", "as", "-o", "yaml"},
		{"-n", namespace, "logs", "--tail=50", "-l", "app=ambient-code-runner"},
		{"-n", rig.OperatorNamespace, "logs", "--tail=50", "-l", "app.kubernetes.io/name=agentic-operator"},
	} {
		text, err := cluster.RunKubectl(context.Background(), args...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// session makes a session and follows it.
func session(t *testing.T, namespace, name, prompt string, change func(*v1alpha1.AgenticSession)) *story {
	t.Helper()
	s := &v1alpha1.AgenticSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.AgenticSessionSpec{InitialPrompt: prompt},
	}
	if change != nil {
		change(s)
	}
	told := follow(t, namespace, name)
	if err := cluster.Client.Create(t.Context(), s); err != nil {
		t.Fatalf("creating session %s: %v", name, err)
	}
	return told
}

// pods lists the runner pods of a session.
func pods(t *testing.T, namespace, name string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.Client.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelSession: name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// ask sets the request of a user on a session.
func ask(t *testing.T, namespace, name, desired string) {
	t.Helper()
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationDesiredPhase, desired)
	if err := cluster.Client.Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatalf("asking for %s: %v", desired, err)
	}
}
