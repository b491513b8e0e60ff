package session

import (
	"slices"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Edge is a phase change that a rule can make.
type Edge struct {
	From, To v1alpha1.Phase
}

// Edges lists every phase change that the rules allow, each once, in the order of the rules.
func Edges() []Edge {
	var edges []Edge
	for i := range Rules {
		for _, from := range Rules[i].From {
			if e := (Edge{from, Rules[i].To}); from != e.To && !slices.Contains(edges, e) {
				edges = append(edges, e)
			}
		}
	}
	return edges
}
