//go:build e2e

package olm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// nothingForbidden reads in the API server's audit log that the operator was never refused anything:
// OLM gave it what it needs (case 48).
func nothingForbidden(t *testing.T) {
	content, err := os.ReadFile(cluster.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	who := "system:serviceaccount:" + string(team) + ":agentic-operator"
	requests, refused := 0, 0
	for line := range bytes.Lines(content) {
		var event struct {
			Verb       string `json:"verb"`
			RequestURI string `json:"requestURI"`
			User       struct {
				Username string `json:"username"`
			} `json:"user"`
			ResponseStatus struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"responseStatus"`
		}
		// To read every line would take long.
		if !bytes.Contains(line, []byte(who)) || json.Unmarshal(line, &event) != nil || event.User.Username != who {
			continue // the last line may be half written
		}
		requests++
		if event.ResponseStatus.Code == 403 {
			refused++
			t.Errorf("refused: %s %s: %s", event.Verb, event.RequestURI, event.ResponseStatus.Message)
		}
	}
	if requests == 0 {
		t.Error("the audit log has no request of the operator")
	}
	t.Logf("%d requests of the operator, %d of them refused", requests, refused)
}

// uninstall removes the operator the way docs/releases.md tells while a session runs. What is said to
// stay stays, and a project can be deleted without the operator.
func uninstall(t *testing.T) {
	start(t, project, "orphan", "hang", nil)
	reaches(t, project, "orphan", v1alpha1.PhaseRunning)
	before := pictures(t)
	team.readme(t, "delete subscription")
	until(t, soon, "the operator's pods to end", func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		err := cluster.Client.List(ctx, pods, client.InNamespace(string(team)), client.MatchingLabels{"app.kubernetes.io/name": "agentic-operator"})
		return err == nil && len(pods.Items) == 0, fmt.Sprintf("%d pods, %v", len(pods.Items), err)
	})
	until(t, soon, "the operator's rights to be removed", func(ctx context.Context) (bool, string) {
		left := rightsLeft(ctx)
		return left == "", left
	})
	undisturbed(t, before, pictures(t))
	stays(t)
	gone(t, late, project, string(team))
}

// stays wants there to be what the documentation says that OLM leaves on the cluster.
func stays(t *testing.T) {
	t.Helper()
	left := map[string]client.Object{
		"agentic-operator":     &schedulingv1.PriorityClass{},
		"ambient-project-view": &rbacv1.ClusterRole{}, "ambient-project-edit": &rbacv1.ClusterRole{}, "ambient-project-admin": &rbacv1.ClusterRole{},
	}
	for name, o := range left {
		if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
			t.Errorf("reading what stays: %v", err)
		}
	}
}

// rightsLeft names bindings of the operator's ServiceAccount.
func rightsLeft(ctx context.Context) string {
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := cluster.Client.List(ctx, bindings); err != nil {
		return err.Error()
	}
	var left []string
	for i := range bindings.Items {
		for _, subject := range bindings.Items[i].Subjects {
			if subject.Kind == "ServiceAccount" && subject.Namespace == string(team) {
				left = append(left, bindings.Items[i].Name)
			}
		}
	}
	return strings.Join(left, ", ")
}

// gone deletes namespaces and waits until nothing of them is left.
func gone(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := cluster.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		until(t, soon, "namespace "+name+" to be gone", func(ctx context.Context) (bool, string) {
			found := &corev1.Namespace{}
			err := cluster.Client.Get(ctx, client.ObjectKey{Name: name}, found)
			return apierrors.IsNotFound(err), fmt.Sprintf("%+v, %v", found.Status.Conditions, err)
		})
	}
}
