package session

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Unchanged says that a later version of a session differs from an earlier one only in what no decision
// rests on: annotations, labels and finalizers of others, and those fields of the status that others
// write. When it was last active is among them, so who goes on with the later version decides again.
func Unchanged(was, is *v1alpha1.AgenticSession) bool {
	if was.UID != is.UID || was.Generation != is.Generation || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) {
		return false
	}
	for i := range v1alpha1.Keys {
		key := v1alpha1.Keys[i].Key
		before, had := was.Annotations[key]
		if now, has := is.Annotations[key]; now != before || has != had {
			return false
		}
	}
	before, now := was.Status.DeepCopy(), is.Status.DeepCopy()
	for _, status := range []*v1alpha1.AgenticSessionStatus{before, now} {
		status.LastActivityTime, status.SDKSessionID, status.SDKRestartCount = nil, "", 0
	}
	return equality.Semantic.DeepEqual(before, now)
}
