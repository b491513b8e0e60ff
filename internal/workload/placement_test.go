package workload_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/internal/workload"
)

func TestRunnersGoWhereTheOperatorGoes(t *testing.T) {
	hour := int64(3600)
	dedicated := corev1.Toleration{Key: "example.com/dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &hour}
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	got := workload.PlacementOf(&corev1.PodSpec{
		NodeSelector: map[string]string{
			"example.com/pool": "agents", "node-role.kubernetes.io/infra": "", "kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux",
		},
		Tolerations: []corev1.Toleration{
			dedicated,
			{Key: "node-role.kubernetes.io/infra", Operator: corev1.TolerationOpExists},
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &hour},
			everything,
		},
	})
	want := workload.Placement{NodeSelector: map[string]string{"example.com/pool": "agents"}, Tolerations: []corev1.Toleration{dedicated, everything}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("runners are placed by\n%+v, want\n%+v", got, want)
	}
	if empty := workload.PlacementOf(&corev1.PodSpec{NodeSelector: map[string]string{"kubernetes.io/os": "linux"}}); !reflect.DeepEqual(empty, workload.Placement{}) {
		t.Errorf("without a wish of the administrator runners are placed by %+v", empty)
	}
}
