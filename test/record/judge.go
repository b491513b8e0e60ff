package record

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Edges are the legal phase changes, written down anew: the operator is judged by them.
var Edges = map[v1alpha1.Phase][]v1alpha1.Phase{
	v1alpha1.PhasePending:   {v1alpha1.PhaseCreating, v1alpha1.PhaseStopped, v1alpha1.PhaseFailed},
	v1alpha1.PhaseCreating:  {v1alpha1.PhaseRunning, v1alpha1.PhaseStopping, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed},
	v1alpha1.PhaseRunning:   {v1alpha1.PhaseStopping, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed},
	v1alpha1.PhaseStopping:  {v1alpha1.PhaseStopped},
	v1alpha1.PhaseStopped:   {v1alpha1.PhasePending},
	v1alpha1.PhaseCompleted: {v1alpha1.PhasePending},
	v1alpha1.PhaseFailed:    {v1alpha1.PhasePending},
}

// Step says what is wrong with a change of a session; empty when nothing is.
func Step(was, is *v1alpha1.AgenticSession) string {
	from, to := was.Status.Phase, is.Status.Phase
	switch {
	case from != to && from != "" && !slices.Contains(Edges[from], to):
		return fmt.Sprintf("went from %s to %s", from, to)
	case is.Status.ObservedGeneration < was.Status.ObservedGeneration || is.Status.ObservedGeneration > is.Generation:
		return fmt.Sprintf("observed generation %d after %d, of %d", is.Status.ObservedGeneration, was.Status.ObservedGeneration, is.Generation)
	case is.Status.Run < was.Status.Run:
		return fmt.Sprintf("run %d after %d", is.Status.Run, was.Status.Run)
	}
	for i := range is.Status.Conditions {
		c := &is.Status.Conditions[i]
		if c.Reason == "" || c.Message == "" {
			return fmt.Sprintf("condition %s has reason %q and message %q", c.Type, c.Reason, c.Message)
		}
		if before := meta.FindStatusCondition(was.Status.Conditions, c.Type); before != nil && before.Status == c.Status && !before.LastTransitionTime.Equal(&c.LastTransitionTime) {
			return fmt.Sprintf("condition %s has another time of transition although it is still %s", c.Type, c.Status)
		}
	}
	return ""
}
