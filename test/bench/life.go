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
	return b.makeProject(ctx, name)
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

// renewal has the tokens of all sessions of a burst fall due at once.
func renewal(ctx context.Context, b *bench) error {
	const namespace = "renewal"
	if err := b.project(ctx, namespace); err != nil {
		return err
	}
	if _, err := b.untilRunning(ctx, namespace, b.renewals); err != nil {
		return err
	}
	due := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	long := time.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339)
	t := b.follow(ctx, &corev1.SecretList{}, namespace, b.renewals, func(object client.Object) (string, bool) {
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
	if err := m.end(values, b.renewals); err != nil {
		return err
	}
	b.results.add("renewal", "tokens", b.renewals, values)
	return b.remove(ctx, namespace)
}
