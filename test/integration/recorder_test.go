package integration

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/record"
)

// What was recorded (test/record) in the words of these tests.
type moment[T client.Object] = record.Moment[T]

func phases(versions []moment[*v1alpha1.AgenticSession]) []v1alpha1.Phase {
	return record.Phases(versions)
}

func uids[T client.Object](moments []moment[T]) []types.UID { return record.UIDs(moments) }

func remaining[T client.Object](moments []moment[T]) []T { return record.Remaining(moments) }

func mostAtOnce(moments []moment[*corev1.Pod]) int { return record.MostAtOnce(moments) }

func sessionList() *v1alpha1.AgenticSessionList          { return &v1alpha1.AgenticSessionList{} }
func projectSettingsList() *v1alpha1.ProjectSettingsList { return &v1alpha1.ProjectSettingsList{} }

func itemCount(list client.ObjectList) int { return meta.LenList(list) }

func ptr[T any](value T) *T { return &value }
