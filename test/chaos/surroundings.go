package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	keysSecret  = "ambient-runner-secrets"
	tokenPrefix = "ambient-runner-token-"
	// manual keeps the simulated node from a pod.
	manual = "simnode.ambient-code.io/manual"
)

// deleteTokens deletes the token Secrets of all runners of a project.
func deleteTokens(ctx context.Context, r *round, dice *rand.Rand) error {
	namespace := r.good[dice.IntN(len(r.good))]
	secrets := &corev1.SecretList{}
	if err := insist(ctx, func() error { return r.cluster.Client.List(ctx, secrets, client.InNamespace(namespace)) }); err != nil {
		return fmt.Errorf("listing Secrets: %w", err)
	}
	for i := range secrets.Items {
		if secret := &secrets.Items[i]; strings.HasPrefix(secret.Name, tokenPrefix) {
			if err := insist(ctx, func() error { return client.IgnoreNotFound(r.cluster.Client.Delete(ctx, secret)) }); err != nil {
				return fmt.Errorf("deleting a token: %w", err)
			}
		}
	}
	return nil
}

// deleteKeys takes the Secret of a project that its runners need away for a while.
func deleteKeys(ctx context.Context, r *round, dice *rand.Rand) error {
	namespace := r.good[dice.IntN(len(r.good))]
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keysSecret}}
	if err := insist(ctx, func() error { return client.IgnoreNotFound(r.cluster.Client.Delete(ctx, secret)) }); err != nil {
		return fmt.Errorf("deleting the API keys: %w", err)
	}
	pause(ctx, 4*time.Second)
	return r.giveKeys(ctx, namespace)
}

// project makes a managed namespace with an API key of its own, which nobody may log.
func (r *round) project(ctx context.Context, namespace string) error {
	if err := insist(ctx, func() error { return r.cluster.Project(ctx, namespace) }); err != nil {
		return err
	}
	return r.giveKeys(ctx, namespace)
}

func (r *round) giveKeys(ctx context.Context, namespace string) error {
	key := "secret-key-of-" + namespace
	r.chaos.mu.Lock()
	r.keys = append(r.keys, key)
	r.chaos.mu.Unlock()
	err := insist(ctx, func() error {
		if err := r.cluster.Project(ctx, namespace); err != nil {
			return err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keysSecret}}
		patch := fmt.Appendf(nil, `{"stringData":{"ANTHROPIC_API_KEY":%q}}`, key)
		return r.cluster.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch))
	})
	if err != nil {
		return fmt.Errorf("giving %s its API key: %w", namespace, err)
	}
	return nil
}

// deleteNamespace makes a project with running sessions, and deletes it as it is.
func deleteNamespace(ctx context.Context, r *round, _ *rand.Rand) error {
	r.mu.Lock()
	namespace := fmt.Sprintf("%sdoomed-%d", r.prefix, len(r.doomed))
	r.doomed = append(r.doomed, namespace)
	r.mu.Unlock()
	if err := r.project(ctx, namespace); err != nil {
		return err
	}
	for i := range 5 {
		w := &wish{key: types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("d-%d", i)}, prompt: "hang", gone: true}
		if err := r.bring(ctx, w); err != nil {
			return err
		}
	}
	pause(ctx, 3*time.Second)
	return r.deleteNow(ctx, namespace)
}

func (r *round) deleteNow(ctx context.Context, namespace string) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := insist(ctx, func() error { return client.IgnoreNotFound(r.cluster.Client.Delete(ctx, object)) }); err != nil {
		return fmt.Errorf("deleting namespace %s: %w", namespace, err)
	}
	return nil
}

// silenceNode has one of the nodes tell nothing for a while: neither of itself nor of its pods, which
// neither end nor go. After 50 s Kubernetes takes it for lost and its pods for not ready.
func silenceNode(ctx context.Context, r *round, dice *rand.Rand) error {
	name := fmt.Sprintf("simulated-%d", 1+dice.IntN(3))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name}}
	if err := insist(ctx, func() error { return client.IgnoreNotFound(r.cluster.Client.Delete(ctx, lease)) }); err != nil {
		return fmt.Errorf("silencing node %s: %w", name, err)
	}
	until := time.Now().Add(min(70*time.Second, r.lasts/5))
	for time.Now().Before(until) {
		if err := r.manual(ctx, name, "true"); err != nil {
			return err
		}
		pause(ctx, time.Second)
	}
	lease = &coordinationv1.Lease{ObjectMeta: lease.ObjectMeta}
	lease.ResourceVersion, lease.UID = "", ""
	lease.Spec.HolderIdentity = &name
	if err := insist(ctx, func() error { return client.IgnoreAlreadyExists(r.cluster.Client.Create(ctx, lease)) }); err != nil {
		return fmt.Errorf("bringing node %s back: %w", name, err)
	}
	return r.manual(ctx, name, "false")
}

// manual keeps the simulated kubelet from the pods of a node, or lets it go on.
func (r *round) manual(ctx context.Context, node, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, manual, value)
	err := insist(ctx, func() error {
		pods := &corev1.PodList{}
		if err := r.cluster.Client.List(ctx, pods); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			is := pod.Annotations[manual]
			if pod.Spec.NodeName != node || is == value || is == "" && value == "false" {
				continue
			}
			if err := client.IgnoreNotFound(r.cluster.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("silencing the pods of node %s: %w", node, err)
	}
	return nil
}
