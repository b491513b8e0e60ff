package integration

import (
	"context"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestRunnersGoWhereTheOperatorGoes: the node selector and tolerations that OLM puts into the
// operator's own pod, as its Subscription says, reach runners, unless that is switched off.
func TestRunnersGoWhereTheOperatorGoes(t *testing.T) {
	no, selector := false, map[string]string{"example.com/pool": "agents"}
	toleration := corev1.Toleration{Key: "example.com/dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	own := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: suite.access.namespace, GenerateName: "operator-"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			NodeSelector:                 selector,
			Tolerations:                  []corev1.Toleration{toleration},
			Containers:                   []corev1.Container{{Name: "operator", Image: "example.com/operator"}},
		},
	}
	if err := suite.admin.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := suite.admin.Delete(context.Background(), own, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
	env := map[string]string{"POD_NAME": own.Name, "MONITORING": "off"}
	operator := alone(t, env)
	p := newProject(t, operator)
	placed := p.session("placed", "hang")
	placed.tells(creating, v1alpha1.ReasonUnschedulable)
	if spec := placed.job().Spec.Template.Spec; !reflect.DeepEqual(spec.NodeSelector, selector) || !reflect.DeepEqual(spec.Tolerations, []corev1.Toleration{toleration}) {
		t.Errorf("the runner's pod has node selector %v and tolerations %v", spec.NodeSelector, spec.Tolerations)
	}
	p.remove(placed)
	if err := operator.stop(); err != nil {
		t.Fatal(err)
	}

	env["RUNNER_PLACEMENT"] = "any"
	p.operator = alone(t, env)
	anywhere := p.session("anywhere", "hang")
	anywhere.reaches(running)
	if spec := anywhere.job().Spec.Template.Spec; spec.NodeSelector != nil || spec.Tolerations != nil {
		t.Errorf("a runner that may go anywhere has node selector %v and tolerations %v", spec.NodeSelector, spec.Tolerations)
	}
}
