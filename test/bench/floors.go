package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/workload"
)

// model stands in the objects of a session where its name does.
const model = "model-session"

// unmanaged makes a namespace that the operator does not look at, with the Secret of its runners.
func (b *bench) unmanaged(ctx context.Context, name string) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "ambient-runner-secrets"}, StringData: map[string]string{"ANTHROPIC_API_KEY": "not-a-key"}},
	} {
		if err := b.client.Create(ctx, object); err != nil {
			return fmt.Errorf("making %s: %w", name, err)
		}
	}
	return nil
}

// bareJobs is the floor of Kubernetes: Jobs with a pod that needs nothing.
func (b *bench) bareJobs(ctx context.Context, namespace string, n int) (*times, error) {
	if err := b.unmanaged(ctx, namespace); err != nil {
		return nil, err
	}
	t := b.follow(ctx, &corev1.PodList{}, namespace, n, podRuns)
	err := each(n, func(i int) error {
		never := int32(0)
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("bare-%d", i)},
			Spec: batchv1.JobSpec{BackoffLimit: &never, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "bare", Image: "bare", Env: []corev1.EnvVar{{Name: "INITIAL_PROMPT", Value: "hang"}}}},
			}}},
		}
		t.create(job.Name)
		if err := b.client.Create(ctx, job); err != nil {
			return fmt.Errorf("creating Job %s: %w", job.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, t.wait(ctx)
}

// objects are those of a session, as JSON, in the order in which they can be made.
type objects struct {
	kinds []func() client.Object
	texts []string
}

// learn has the operator run a session and keeps what it made for it, so that the plain client makes
// exactly that.
func (b *bench) learn(ctx context.Context) (*objects, error) {
	const namespace = "model"
	if err := b.makeProject(ctx, namespace); err != nil {
		return nil, err
	}
	if err := b.client.Create(ctx, session(namespace, model, "hang")); err != nil {
		return nil, fmt.Errorf("creating the session that is copied: %w", err)
	}
	job := workload.JobName(model, 1)
	err := b.until(ctx, "the session that is copied has its Job", func(ctx context.Context) (bool, error) {
		err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: job}, &batchv1.Job{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, err
	}
	o := &objects{}
	for _, of := range []struct {
		name string
		make func() client.Object
	}{
		{workload.ServiceAccountName(model), func() client.Object { return &corev1.ServiceAccount{} }},
		{workload.RoleName(model), func() client.Object { return &rbacv1.Role{} }},
		{workload.RoleBindingName(model), func() client.Object { return &rbacv1.RoleBinding{} }},
		{workload.TokenSecretName(model), func() client.Object { return &corev1.Secret{} }},
		{workload.WorkspaceName(model), func() client.Object { return &corev1.PersistentVolumeClaim{} }},
		{workload.ServiceName(model), func() client.Object { return &corev1.Service{} }},
		{job, func() client.Object { return &batchv1.Job{} }},
	} {
		object := of.make()
		if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of.name}, object); err != nil {
			return nil, fmt.Errorf("reading what the session has: %w", err)
		}
		bare(object)
		text, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("keeping what the session has: %w", err)
		}
		o.kinds, o.texts = append(o.kinds, of.make), append(o.texts, string(text))
	}
	return o, b.remove(ctx, namespace)
}

// bare takes off an object what the API server and controllers put there.
func bare(object client.Object) {
	labels, annotations, name := object.GetLabels(), object.GetAnnotations(), object.GetName()
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		o.ObjectMeta, o.Spec.VolumeName = metav1.ObjectMeta{}, ""
		o.Status = corev1.PersistentVolumeClaimStatus{}
		for _, key := range []string{"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"} {
			delete(annotations, key)
		}
	case *corev1.Service:
		o.ObjectMeta, o.Spec.ClusterIP, o.Spec.ClusterIPs = metav1.ObjectMeta{}, "", nil
	case *batchv1.Job:
		o.ObjectMeta, o.Spec.Selector, o.Status = metav1.ObjectMeta{}, nil, batchv1.JobStatus{}
		for _, key := range []string{"batch.kubernetes.io/controller-uid", "controller-uid", "batch.kubernetes.io/job-name", "job-name"} {
			delete(o.Spec.Template.Labels, key)
		}
	case *corev1.ServiceAccount:
		o.ObjectMeta = metav1.ObjectMeta{}
	case *corev1.Secret:
		o.ObjectMeta = metav1.ObjectMeta{}
	case *rbacv1.Role:
		o.ObjectMeta = metav1.ObjectMeta{}
	case *rbacv1.RoleBinding:
		o.ObjectMeta = metav1.ObjectMeta{}
	}
	object.SetName(name)
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// plainClient makes the objects of sessions one after another for each, several sessions at a time,
// with a token that is asked for, and no reads.
func (b *bench) plainClient(ctx context.Context, o *objects, namespace string, n int) (*times, error) {
	if err := b.unmanaged(ctx, namespace); err != nil {
		return nil, err
	}
	t := b.follow(ctx, &corev1.PodList{}, namespace, n, podRuns)
	err := each(n, func(i int) error {
		name := fmt.Sprintf("plain-%d", i)
		t.create(workload.JobName(name, 1))
		for k, text := range o.texts {
			object := o.kinds[k]()
			if err := json.Unmarshal([]byte(strings.ReplaceAll(text, model, name)), object); err != nil {
				return fmt.Errorf("copying what a session has: %w", err)
			}
			object.SetNamespace(namespace)
			if err := b.client.Create(ctx, object); err != nil {
				return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
			}
			if account, is := object.(*corev1.ServiceAccount); is {
				day := int64(24 * time.Hour / time.Second)
				request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
				if err := b.client.SubResource("token").Create(ctx, account, request); err != nil {
					return fmt.Errorf("asking for a token: %w", err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, t.wait(ctx)
}
