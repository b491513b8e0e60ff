package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// observeRuntime finds out how the session's runner runs. A run in progress is as its Job says: an
// edit of the registry does not concern it. A run that is to begin needs its type from there.
func (r *AgenticSessionReconciler) observeRuntime(ctx context.Context, o *seen) error {
	if job := o.world.Job; job != nil && o.world.Phase() != v1alpha1.PhasePending {
		o.plan.Follow(job)
		o.world.Volumeless = o.plan.Volumeless()
		return nil
	}
	if !o.beginning() {
		return nil
	}
	registry, err := readRegistry(ctx, r.Own, r.Config)
	if err != nil {
		return err
	}
	runtime, err := registry.Lookup(workload.RunnerType(o.world.Session))
	if unknown := (*runtimes.Unknown)(nil); errors.As(err, &unknown) {
		// The type may have come just before the session, and the cache may lag behind: failing a
		// session is not undone by itself.
		if registry, err = readRegistry(ctx, r.Live, r.Config); err != nil {
			return err
		}
		runtime, err = registry.Lookup(workload.RunnerType(o.world.Session))
	}
	if err != nil {
		o.untyped(err, r.Config.Namespace)
		return nil
	}
	o.plan.Runtime = runtime
	o.world.Volumeless = o.plan.Volumeless()
	return nil
}

// beginning says that a run is to begin and has no Job yet.
func (o *seen) beginning() bool {
	phase := o.world.Phase()
	return phase == v1alpha1.PhasePending || phase == v1alpha1.PhaseCreating && o.world.Job == nil
}

// readRegistry reads the registry of runner types; the built-in one where there is none.
func readRegistry(ctx context.Context, from client.Reader, settings *config.Config) (*runtimes.Registry, error) {
	defaults := runtimes.Defaults{RunnerImage: settings.RunnerImage, StateSyncImage: settings.StateSyncImage}
	stored := &corev1.ConfigMap{}
	err := from.Get(ctx, types.NamespacedName{Namespace: settings.Namespace, Name: runtimes.RegistryConfigMap}, stored)
	switch {
	case apierrors.IsNotFound(err):
		return runtimes.BuiltIn(defaults), nil
	case err != nil:
		return nil, fmt.Errorf("reading the registry of runner types: %w", err)
	default:
		return runtimes.Of(stored.Data, defaults), nil
	}
}

// untyped notes why the session's type cannot be had. A type that the registry does not have is the
// session's mistake; a broken registry is not, so the session waits until it is mended.
func (o *seen) untyped(err error, namespace string) {
	obstacle := session.Obstacle{
		Object: "ConfigMap " + runtimes.RegistryConfigMap, Reason: v1alpha1.ReasonRegistryInvalid,
		Message: fmt.Sprintf("%v; the registry is ConfigMap %s in namespace %s", err, runtimes.RegistryConfigMap, namespace),
	}
	var unknown *runtimes.Unknown
	if errors.As(err, &unknown) {
		o.world.Problems = append(o.world.Problems, err.Error())
		obstacle.Reason, obstacle.Message, obstacle.Final = v1alpha1.ReasonInvalidSpec, err.Error(), true
	} else {
		obstacle.Message += ": the session goes on when an administrator has mended it"
		o.world.Registry = obstacle.Message
	}
	o.blocked = &apply.Blocked{Obstacle: obstacle}
}

// missingKeys says which keys of the project's Secrets the runner type asks for in vain. Only the
// names of keys are looked at, and only for a type that asks for any.
func (r *AgenticSessionReconciler) missingKeys(ctx context.Context, o *seen) ([]string, error) {
	auth := o.plan.Runtime.Auth
	if o.world.Phase() != v1alpha1.PhasePending || len(auth.Keys) == 0 || o.plan.UsesVertex() {
		return nil, nil
	}
	have := map[string]bool{}
	for _, name := range []string{o.plan.RunnerSecret(), workload.IntegrationsSecret} {
		data, err := r.secretData(ctx, o.world.Session.Namespace, name)
		if err != nil {
			return nil, err
		}
		for key := range data {
			have[key] = true
		}
	}
	lacking := slices.DeleteFunc(slices.Clone(auth.Keys), func(key string) bool { return have[key] })
	if len(lacking) == 0 || auth.AnyKey && len(lacking) < len(auth.Keys) {
		return nil, nil
	}
	asked := "the keys " + strings.Join(lacking, ", ")
	switch {
	case len(lacking) == 1:
		asked = "the key " + lacking[0]
	case auth.AnyKey:
		asked = "one of the keys " + strings.Join(lacking, ", ")
	}
	return []string{fmt.Sprintf("Secret %q in namespace %s lacks %s, which the runner type %s needs: add it; the session then goes on", o.plan.RunnerSecret(), o.world.Session.Namespace, asked, o.plan.Runtime.ID)}, nil
}

// secretData reads a Secret past the cache, which keeps no data; nil when there is none.
func (r *AgenticSessionReconciler) secretData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s of namespace %s: %w", name, namespace, err)
	}
	return secret.Data, nil
}
