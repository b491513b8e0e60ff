package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
)

// TestAnUnreadRegistryKeepsNothingElseBack: where the runner types cannot be read, groups get their access all
// the same, and the status says what is not in place.
func TestAnUnreadRegistryKeepsNothingElseBack(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	settings := &v1alpha1.ProjectSettings{ObjectMeta: metav1.ObjectMeta{Namespace: "p", Name: projectSettingsName, UID: "settings"}}
	settings.Spec.GroupAccess = []v1alpha1.GroupAccess{{GroupName: "developers", Role: "edit"}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{v1alpha1.LabelManaged: "true"}}}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(settings, namespace).WithStatusSubresource(settings).Build()
	away := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("the API server is away")
		},
	}).Build()
	r := &ProjectSettingsReconciler{Client: server, Live: server, Own: away, Config: &config.Config{Namespace: "operator"}, Clock: clocktesting.NewFakePassiveClock(time.Now())}

	key := types.NamespacedName{Namespace: "p", Name: projectSettingsName}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err == nil {
		t.Error("the pass is not tried again")
	}
	bindings := &rbacv1.RoleBindingList{}
	if err := server.List(t.Context(), bindings, client.InNamespace("p")); err != nil || len(bindings.Items) < 2 {
		t.Errorf("RoleBindings: %+v (%v)", bindings.Items, err)
	}
	if err := server.Get(t.Context(), key, settings); err != nil {
		t.Fatal(err)
	}
	status := &settings.Status
	if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionGroupAccessReady) || status.GroupBindingsCreated != 1 {
		t.Errorf("the access is not told to be in effect: %+v", status)
	}
	for _, condition := range []string{v1alpha1.ConditionNetworkPolicyReady, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(status.Conditions, condition); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonNotApplied {
			t.Errorf("condition %s is %+v", condition, c)
		}
	}
}
