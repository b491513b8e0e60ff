package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig"
)

// asked is how often each request is made whose price is measured.
const asked = 300

// price is the cost of a kind of request that a session takes.
type price struct {
	what string
	ask  func(ctx context.Context, c client.Client, i int) error
}

// prices measures what single requests cost the control plane and how long they take, made by the
// operator's own ServiceAccount while nothing else goes on: what a burst is made of.
func prices(ctx context.Context, b *bench) error {
	const namespace = "prices"
	if err := b.project(ctx, namespace); err != nil {
		return err
	}
	if _, err := b.untilRunning(ctx, namespace, 1); err != nil {
		return err
	}
	sample := &v1alpha1.AgenticSession{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "s-0"}, sample); err != nil {
		return fmt.Errorf("reading a session that runs: %w", err)
	}
	role := &rbacv1.Role{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "ambient-session-s-0-role"}, role); err != nil {
		return fmt.Errorf("reading the Role of its runner: %w", err)
	}
	if err := b.stopOperator(); err != nil {
		return err
	}
	operator, err := b.asOperator(ctx)
	if err != nil {
		return err
	}
	for i := range asked {
		if err := b.client.Create(ctx, session(namespace, fmt.Sprintf("p-%d", i), "hang")); err != nil {
			return fmt.Errorf("creating a session: %w", err)
		}
	}
	list, err := priceList(namespace, sample, role)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := b.price(ctx, operator, p); err != nil {
			return err
		}
	}
	return b.remove(ctx, namespace)
}

func priceList(namespace string, sample *v1alpha1.AgenticSession, role *rbacv1.Role) ([]price, error) {
	meta := func(i int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("p-%d", i)}
	}
	status, err := json.Marshal(map[string]any{"status": sample.Status})
	if err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	patch := func(text []byte, of func(client.Client) client.SubResourceWriter) func(context.Context, client.Client, int) error {
		return func(ctx context.Context, c client.Client, i int) error {
			return of(c).Patch(ctx, &v1alpha1.AgenticSession{ObjectMeta: meta(i)}, client.RawPatch(types.MergePatchType, text))
		}
	}
	create := func(make func(i int) client.Object) func(context.Context, client.Client, int) error {
		return func(ctx context.Context, c client.Client, i int) error { return c.Create(ctx, make(i)) }
	}
	return []price{
		{"first status of a session", patch(status, client.Client.Status)},
		{"one field of a full status", patch([]byte(`{"status":{"podName":"another"}}`), client.Client.Status)},
		{"annotations of a session", func(ctx context.Context, c client.Client, i int) error {
			return c.Patch(ctx, &v1alpha1.AgenticSession{ObjectMeta: meta(i)}, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)))
		}},
		{"ServiceAccount", create(func(i int) client.Object { return &corev1.ServiceAccount{ObjectMeta: meta(i)} })},
		{"Role", create(func(i int) client.Object { return &rbacv1.Role{ObjectMeta: meta(i), Rules: role.Rules} })},
		{"RoleBinding", create(func(i int) client.Object {
			return &rbacv1.RoleBinding{ObjectMeta: meta(i),
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta(i).Name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: meta(i).Name}}}
		})},
		{"Service", create(func(i int) client.Object {
			return &corev1.Service{ObjectMeta: meta(i), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8001}}}}
		})},
	}, nil
}

// price has one kind of request made, ten at once.
func (b *bench) price(ctx context.Context, c client.Client, p price) error {
	const atOnce = 10
	before, err := b.cluster.CPU()
	if err != nil {
		return err
	}
	took, errs := make([]time.Duration, asked), make([]error, atOnce)
	var workers sync.WaitGroup
	began := time.Now()
	for worker := range atOnce {
		workers.Go(func() {
			for i := worker; i < asked && errs[worker] == nil; i += atOnce {
				at := time.Now()
				errs[worker] = p.ask(ctx, c, i)
				took[i] = time.Since(at)
			}
		})
	}
	workers.Wait()
	all := time.Since(began).Seconds()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("measuring %s: %w", p.what, err)
		}
	}
	// What controllers do about it belongs to its price.
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	after, err := b.cluster.CPU()
	if err != nil {
		return err
	}
	slices.Sort(took)
	b.results.add("prices", p.what, asked, map[string]float64{
		"all_s": all, "per_s": asked / all, "p50_s": took[asked/2].Seconds(), "p95_s": took[asked*95/100].Seconds(),
		"server_ms": float64((after - before).Milliseconds()) / asked,
	})
	return nil
}

// asOperator is a client of the operator's ServiceAccount without a limit of its own.
func (b *bench) asOperator(ctx context.Context) (client.Client, error) {
	path := filepath.Join(b.dir, "operator.kubeconfig")
	if err := b.cluster.ServiceAccountKubeconfig(ctx, types.NamespacedName{Namespace: rig.OperatorNamespace, Name: rig.OperatorName}, path); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: b.client.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}
