package controllers

import (
	"context"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/internal/workload"
)

// missingSecret says that a Secret that a run needs is not there, and what to do about it.
func (r *AgenticSessionReconciler) missingSecret(ctx context.Context, namespace, name, holds string) (string, error) {
	if name != workload.VertexSecret {
		return fmt.Sprintf("Secret %q with %s is missing in namespace %s: create it, for instance with kubectl -n %s create secret generic %s --from-literal=ANTHROPIC_API_KEY=...; the session then goes on", name, holds, namespace, namespace, name), nil
	}
	source := r.Config.Namespace
	found, err := r.get(ctx, types.NamespacedName{Namespace: source, Name: name}, partial("v1", "Secret"))
	if err != nil {
		return "", err
	}
	if found {
		return fmt.Sprintf("Secret %q with %s is not yet in namespace %s: the operator is about to copy it from namespace %s, after which the session goes on; where it cannot, its log says why", name, holds, namespace, source), nil
	}
	key := path.Base(r.Config.Vertex.Credentials)
	return fmt.Sprintf("Secret %q with %s is missing in the operator's namespace %s, from which every project gets a copy: create it there, for instance with kubectl -n %s create secret generic %s --from-file=%s; the session then goes on", name, holds, source, source, name, key), nil
}
