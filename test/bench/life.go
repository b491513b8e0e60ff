package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// project starts an operator where none runs, and makes a project.
func (b *bench) project(ctx context.Context, name string) error {
	if b.operator == nil {
		if err := b.startOperator(ctx); err != nil {
			return err
		}
	}
	return b.cluster.Project(ctx, name)
}

// request asks all sessions s-0 to s-(n-1) for something and waits until they are in a phase.
func (b *bench) request(ctx context.Context, namespace string, n int, wish string, phase v1alpha1.Phase) (*times, error) {
	t := b.follow(ctx, &v1alpha1.AgenticSessionList{}, namespace, n, func(object client.Object) (string, bool) {
		name, reached := inPhase(phase)(object)
		_, asked := object.GetAnnotations()[v1alpha1.AnnotationDesiredPhase]
		return name, reached && !asked
	})
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationDesiredPhase, wish)
	err := each(n, func(i int) error {
		name := fmt.Sprintf("s-%d", i)
		t.create(name)
		return b.client.Patch(ctx, &v1alpha1.AgenticSession{ObjectMeta: session(namespace, name, "").ObjectMeta}, client.RawPatch(types.MergePatchType, patch))
	})
	if err != nil {
		return nil, err
	}
	return t, t.wait(ctx)
}

// cycle stops and restarts all sessions of a burst.
func cycle(ctx context.Context, b *bench) error {
	const namespace = "cycle"
	if err := b.project(ctx, namespace); err != nil {
		return err
	}
	if _, err := b.untilRunning(ctx, namespace, b.sessions); err != nil {
		return err
	}
	for _, step := range []struct {
		wish    string
		phase   v1alpha1.Phase
		subject string
	}{{"Stopped", v1alpha1.PhaseStopped, "stop"}, {"Running", v1alpha1.PhaseRunning, "start again"}} {
		m, err := b.measure()
		if err != nil {
			return err
		}
		t, err := b.request(ctx, namespace, b.sessions, step.wish, step.phase)
		if err != nil {
			return err
		}
		values := arrivals(t)
		if err := m.end(values, b.sessions); err != nil {
			return err
		}
		b.results.add("cycle", step.subject, b.sessions, values)
	}
	return b.remove(ctx, namespace)
}

// restart ends the operator beside many finished and some running sessions and starts another: how long
// until a new session is Running, and what it asks of the API server about the old ones.
func restart(ctx context.Context, b *bench) error {
	const old, fresh = "restart-old", "restart-new"
	for _, namespace := range []string{old, fresh} {
		if err := b.project(ctx, namespace); err != nil {
			return err
		}
	}
	if _, err := b.through(ctx, old, b.finished, "sleep 1s\nexit 0", v1alpha1.PhaseCompleted); err != nil {
		return err
	}
	if err := b.stopOperator(); err != nil {
		return err
	}
	mark, err := b.mark()
	if err != nil {
		return err
	}
	b.runs++
	began := time.Now()
	if b.operator, err = b.cluster.RunOperator(ctx, fmt.Sprintf("%s/operator-%d.log", b.dir, b.runs), nil); err != nil {
		return err
	}
	t, err := b.untilRunning(ctx, fresh, 1)
	if err != nil {
		return err
	}
	values := map[string]float64{"all_s": time.Since(began).Seconds()}
	_, values["p50_s"] = t.each()
	all, writes, err := b.since(mark)
	if err != nil {
		return err
	}
	memory, err := b.operator.Memory()
	if err != nil {
		return err
	}
	values["requests"], values["writes"], values["peak_mb"] = float64(all.total()), float64(writes), float64(memory)/(1<<20)
	b.results.add("restart", fmt.Sprintf("beside %d finished", b.finished), 1, values)
	for _, namespace := range []string{old, fresh} {
		if err := b.remove(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// atRest is how long nothing happens.
const atRest = time.Minute

// resting looks at what running sessions cost while nothing happens.
func resting(ctx context.Context, b *bench) error {
	const namespace = "rest"
	if err := b.stopOperator(); err != nil {
		return err
	}
	if err := b.project(ctx, namespace); err != nil {
		return err
	}
	base, err := b.settledMemory(ctx)
	if err != nil {
		return err
	}
	if _, err := b.untilRunning(ctx, namespace, b.idle); err != nil {
		return err
	}
	memory, err := b.settledMemory(ctx)
	if err != nil {
		return err
	}
	m, err := b.measure()
	if err != nil {
		return err
	}
	time.Sleep(atRest)
	values := map[string]float64{"base_mb": float64(base) / (1 << 20), "kb_each": float64(memory-base) / 1024 / float64(b.idle)}
	if err := m.end(values, 1); err != nil {
		return err
	}
	b.results.add("rest", fmt.Sprintf("%s with %d running", atRest, b.idle), b.idle, values)
	return b.remove(ctx, namespace)
}

// settledMemory waits until garbage has been collected: the least within a while.
func (b *bench) settledMemory(ctx context.Context) (int64, error) {
	least := int64(0)
	for range 20 {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Second):
		}
		now, err := b.operator.Memory()
		if err != nil {
			return 0, err
		}
		if least == 0 || now < least {
			least = now
		}
	}
	return least, nil
}

// renewal has the tokens of all sessions of a burst fall due at once.
func renewal(ctx context.Context, b *bench) error {
	const namespace = "renewal"
	if err := b.project(ctx, namespace); err != nil {
		return err
	}
	if _, err := b.untilRunning(ctx, namespace, b.sessions); err != nil {
		return err
	}
	due := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	long := time.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339)
	t := b.follow(ctx, &corev1.SecretList{}, namespace, b.sessions, func(object client.Object) (string, bool) {
		at := object.GetAnnotations()[v1alpha1.AnnotationTokenExpiresAt]
		return object.GetName(), at != "" && at > due && object.GetAnnotations()["bench"] != ""
	})
	secrets := &corev1.SecretList{}
	if err := b.client.List(ctx, secrets, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelSession}); err != nil {
		return fmt.Errorf("listing the token Secrets: %w", err)
	}
	m, err := b.measure()
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q,%q:%q,"bench":"due"}}}`, v1alpha1.AnnotationTokenExpiresAt, due, v1alpha1.AnnotationTokenRefreshedAt, long)
	err = each(len(secrets.Items), func(i int) error {
		t.create(secrets.Items[i].Name)
		return b.client.Patch(ctx, &secrets.Items[i], client.RawPatch(types.MergePatchType, patch))
	})
	if err != nil {
		return fmt.Errorf("having tokens fall due: %w", err)
	}
	if err := t.wait(ctx); err != nil {
		return err
	}
	values := arrivals(t)
	if err := m.end(values, b.sessions); err != nil {
		return err
	}
	b.results.add("renewal", "tokens", b.sessions, values)
	return b.remove(ctx, namespace)
}
