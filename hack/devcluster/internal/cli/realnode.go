package cli

import (
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/realnode"
)

// realNode is the kind of node that runs containers.
func realNode() cluster.RealNode { return realnode.Node{} }
