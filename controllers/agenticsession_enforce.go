package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// enforce makes the cluster match the phase. What stands in the way is put into the world, for the
// status to tell; the error says that the pass is to be tried again.
func (r *AgenticSessionReconciler) enforce(ctx context.Context, o *seen) error {
	err := errors.Join(r.consumeRequests(ctx, o), r.force(ctx, o))
	switch o.world.Phase() {
	case v1alpha1.PhaseCreating, v1alpha1.PhaseRunning:
		err = errors.Join(err, r.provide(ctx, o))
	case v1alpha1.PhasePending, v1alpha1.PhaseStopping:
		err = errors.Join(err, r.removeRuns(ctx, o))
	default:
		err = errors.Join(err, r.removeRuns(ctx, o), r.release(ctx, o), r.expire(ctx, o))
	}
	r.blocked(o, err)
	return err
}

// blocked collects the obstacles among the errors of a pass.
func (r *AgenticSessionReconciler) blocked(o *seen, err error) {
	var one *apply.Blocked
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range many.Unwrap() {
			r.blocked(o, err)
		}
	} else if errors.As(err, &one) {
		o.world.Obstacles = append(o.world.Obstacles, one.Obstacle)
	}
}

// provide ensures all that a run needs, and in Creating its Job, once everything that the Job
// refers to is there.
func (r *AgenticSessionReconciler) provide(ctx context.Context, o *seen) error {
	if o.blocked != nil {
		return o.blocked
	}
	apply, introduced := r.applier(), o.world.Session
	err := together(
		func() (err error) {
			o.objects.serviceAccount, err = ensure(ctx, apply, o.plan.ServiceAccount(), o.objects.serviceAccount)
			if err != nil {
				return err
			}
			return r.ensureToken(ctx, o)
		},
		func() (err error) {
			o.objects.role, err = ensure(ctx, apply, o.plan.Role(), o.objects.role)
			if err != nil {
				return err
			}
			o.objects.roleBinding, err = ensure(ctx, apply, o.plan.RoleBinding(), o.objects.roleBinding)
			return err
		},
		func() error { return r.ensureStorage(ctx, o) },
		func() (err error) {
			if o.plan.Volumeless() != "" {
				return nil
			}
			o.objects.workspace, err = ensure(ctx, apply, o.plan.Workspace(), o.objects.workspace)
			return err
		},
		func() (err error) {
			o.objects.service, err = ensure(ctx, apply, o.plan.Service(), o.objects.service)
			return err
		},
		func() (err error) {
			introduced, err = r.introduce(ctx, o.world.Session)
			return err
		},
	)
	o.take(introduced)
	o.refresh()
	o.world.Absent = o.absent()
	if err != nil {
		return err
	}
	return errors.Join(r.ensureJob(ctx, o), r.tellRunner(ctx, o))
}

// together runs steps that do not depend on each other at the same time.
func together(steps ...func() error) error {
	errs := make([]error, len(steps))
	var wait sync.WaitGroup
	for i, step := range steps {
		wait.Go(func() { errs[i] = step() })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// ensure is apply.Ensure for one kind of object; nil stands for an absent one.
func ensure[T client.Object](ctx context.Context, a *apply.Applier, desired, observed T) (T, error) {
	var absent T
	var have client.Object
	if any(observed) != any(absent) {
		have = observed
	}
	now, err := a.Ensure(ctx, desired, have)
	if err != nil {
		return observed, err
	}
	return now.(T), nil
}

func (r *AgenticSessionReconciler) applier() *apply.Applier {
	return &apply.Applier{Client: r.Client, Live: r.Live}
}

// absent names the objects that are still not there.
func (o *seen) absent() []string {
	var names []string
	add := func(missing bool, kind, name string) {
		if missing {
			names = append(names, kind+" "+name)
		}
	}
	name := o.world.Session.Name
	add(o.objects.serviceAccount == nil, "ServiceAccount", workload.ServiceAccountName(name))
	add(o.objects.role == nil, "Role", workload.RoleName(name))
	add(o.objects.roleBinding == nil, "RoleBinding", workload.RoleBindingName(name))
	add(o.plan.Storage.Shared && o.objects.storage == nil, "Secret", workload.StorageSecretName(name))
	add(o.plan.Volumeless() == "" && o.objects.workspace == nil, "PersistentVolumeClaim", workload.WorkspaceName(name))
	add(o.objects.service == nil, "Service", workload.ServiceName(name))
	add(o.world.Token == nil, "Secret", workload.TokenSecretName(name))
	return names
}

// ensureJob makes the Job of the run once, and keeps its deadline.
func (r *AgenticSessionReconciler) ensureJob(ctx context.Context, o *seen) error {
	w := &o.world
	if w.Job != nil {
		return r.keepJob(ctx, o)
	}
	if w.Phase() != v1alpha1.PhaseCreating || w.Holds(session.RunnerLost) {
		return nil
	}
	keys, err := r.secretKeys(ctx, o)
	if err != nil {
		return err
	}
	o.plan.SecretKeys = keys
	if timeout := w.Session.Spec.Timeout; timeout != nil {
		o.plan.Operator.JobDeadline = w.JobDeadline(*timeout)
	}
	desired := o.plan.Job(w.Session.Status.Run)
	if o.objects.token != nil {
		desired.Annotations[v1alpha1.AnnotationServiceSecret] = serviceDigest(o.objects.token.Annotations)
	}
	job, err := r.applier().Ensure(ctx, desired, nil)
	if err != nil {
		return err
	}
	w.Job = job.(*batchv1.Job)
	// At once, as the run may be over before the next pass.
	return r.consumeRequests(ctx, o)
}

// keepJob puts back what identifies the Job, and sets its deadline: spec.timeout as it was when
// the run began, counted from the start of the runner.
func (r *AgenticSessionReconciler) keepJob(ctx context.Context, o *seen) error {
	job := o.world.Job
	if job.DeletionTimestamp != nil || session.Finished(job) {
		return nil
	}
	desired := job.DeepCopy()
	if o.world.Phase() == v1alpha1.PhaseCreating {
		one, no := int32(1), false
		desired.Spec.Parallelism, desired.Spec.Suspend = &one, &no
	}
	timeout, err := strconv.ParseInt(job.Annotations[v1alpha1.AnnotationTimeoutSeconds], 10, 64)
	if err == nil && o.world.Phase() == v1alpha1.PhaseRunning {
		desired.Spec.ActiveDeadlineSeconds = nil
		if deadline := o.world.JobDeadline(timeout); deadline > 0 {
			desired.Spec.ActiveDeadlineSeconds = &deadline
		}
	}
	return r.changeJob(ctx, o, desired)
}

// changeJob writes a Job where it differs, with the labels and the owner that it must have.
func (r *AgenticSessionReconciler) changeJob(ctx context.Context, o *seen, desired *batchv1.Job) error {
	run := o.world.Session.Status.Run
	desired.Labels = workload.Labels(o.world.Session.Name)
	desired.Labels[v1alpha1.LabelRun] = strconv.FormatInt(run, 10)
	desired.OwnerReferences = []metav1.OwnerReference{workload.Owner(o.world.Session.Name, o.world.Session.UID)}
	changed, err := r.applier().Ensure(ctx, desired, o.world.Job)
	if err != nil {
		return err
	}
	o.world.Job = changed.(*batchv1.Job)
	return nil
}

// secretKeys are the names of the variables that come from the project's Secrets. They are read
// only where the session or its type sets variables, as those may not override them.
func (r *AgenticSessionReconciler) secretKeys(ctx context.Context, o *seen) ([]string, error) {
	if len(o.world.Session.Spec.EnvironmentVariables) == 0 && len(o.plan.Runtime.Env) == 0 {
		return nil, nil
	}
	var keys []string
	for _, name := range []string{o.plan.RunnerSecret(), workload.IntegrationsSecret} {
		data, err := r.secretData(ctx, o.world.Session.Namespace, name)
		if err != nil {
			return nil, err
		}
		keys = slices.AppendSeq(keys, maps.Keys(data))
	}
	return keys, nil
}

// removeRuns removes the Jobs that must not be there in this phase, and pods of ours that lost
// their Job.
func (r *AgenticSessionReconciler) removeRuns(ctx context.Context, o *seen) error {
	var errs []error
	for i := range o.jobs {
		job := &o.jobs[i]
		if ofThis(job, o.world.Session) && o.world.RemoveJob(job) {
			errs = append(errs, r.applier().Remove(ctx, job))
		}
	}
	for i := range o.orphans {
		errs = append(errs, r.applier().Remove(ctx, &o.orphans[i]))
	}
	return errors.Join(errs...)
}

// force removes pods that should have ended long ago: their node does not answer, and waiting for it
// could take for ever. A run is started again only on request, and its volume is attached to one
// node at a time.
func (r *AgenticSessionReconciler) force(ctx context.Context, o *seen) error {
	var errs []error
	for _, pod := range o.world.Overdue() {
		uid := pod.UID
		err := r.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("removing pod %s by force: %w", pod.Name, err))
		}
	}
	return errors.Join(errs...)
}

// release takes back the identity of an ended run: the token is refused from now on.
func (r *AgenticSessionReconciler) release(ctx context.Context, o *seen) error {
	var errs []error
	for _, secret := range []*metav1.PartialObjectMetadata{o.objects.token, o.objects.storage} {
		if secret != nil && owned(secret, o.world.Session) {
			errs = append(errs, r.applier().Remove(ctx, secret))
		}
	}
	if account := o.objects.serviceAccount; account != nil && owned(account, o.world.Session) {
		errs = append(errs, r.applier().Remove(ctx, account))
	}
	return errors.Join(errs...)
}

// expire lets the finished Job of an ended run be removed after a while. That is said only now
// that the outcome is in the status.
func (r *AgenticSessionReconciler) expire(ctx context.Context, o *seen) error {
	job := o.world.Job
	if job == nil || job.DeletionTimestamp != nil || !session.Finished(job) || job.Spec.TTLSecondsAfterFinished != nil {
		return nil
	}
	if o.world.Phase() == v1alpha1.PhaseStopped {
		return nil
	}
	desired := job.DeepCopy()
	ttl := int32(r.Config.FinishedJobTTL / time.Second)
	desired.Spec.TTLSecondsAfterFinished = &ttl
	if equality.Semantic.DeepEqual(desired.Spec, job.Spec) {
		return nil
	}
	return r.changeJob(ctx, o, desired)
}
