package controllers

import (
	"context"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// observePrerequisites looks for what the project must hold before a run begins.
func (r *AgenticSessionReconciler) observePrerequisites(ctx context.Context, o *seen) error {
	if !o.beginning() {
		return nil
	}
	namespace := o.world.Session.Namespace
	required := map[string]string{o.plan.RunnerSecret(): "the runner's keys (ANTHROPIC_API_KEY and the like)"}
	if o.plan.UsesVertex() {
		required = map[string]string{workload.VertexSecret: "the credentials of Vertex AI"}
	}
	for name, holds := range required {
		found, err := r.get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, partial("v1", "Secret"))
		if err != nil {
			return err
		}
		if !found {
			missing, err := r.missingSecret(ctx, namespace, name, holds)
			if err != nil {
				return err
			}
			o.world.Missing = append(o.world.Missing, missing)
		}
	}
	if len(o.world.Missing) == 0 {
		lacking, err := r.missingKeys(ctx, o)
		if err != nil {
			return err
		}
		o.world.Missing = lacking
	}
	if long := o.plan.Oversized(); long != "" {
		o.world.Missing = append(o.world.Missing, long)
	}
	return r.observeTrustedCA(ctx, o)
}

// observeTrustedCA looks whether the project has certificates that its runners are to trust. OpenShift, for
// instance, fills the ConfigMap a moment after somebody made it: a pod that mounts what is not there would not
// start.
func (r *AgenticSessionReconciler) observeTrustedCA(ctx context.Context, o *seen) error {
	key := o.key(workload.TrustedCAConfigMap)
	found, err := r.get(ctx, key, partial("v1", "ConfigMap"))
	if err != nil || !found {
		return err
	}
	o.plan.TrustedCA = true
	if o.world.Phase() != v1alpha1.PhasePending {
		return nil
	}
	bundle := &corev1.ConfigMap{}
	if found, err := lookup(ctx, r.Live, key, bundle); err != nil || !found {
		return err
	}
	if bundle.Data[workload.TrustedCAKey] == "" {
		o.world.Missing = append(o.world.Missing, fmt.Sprintf("key %q is missing in ConfigMap %q of namespace %s, which holds the certificates that runners are to trust: put it in, or delete the ConfigMap; the session then goes on", workload.TrustedCAKey, workload.TrustedCAConfigMap, key.Namespace))
	}
	return nil
}

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
