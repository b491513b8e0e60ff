package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// enforce makes the cluster match the phase. What stands in the way is put into the world, for the
// status to tell; the error says that the pass is to be tried again.
func (r *AgenticSessionReconciler) enforce(ctx context.Context, o *seen) error {
	err := errors.Join(r.consumeRequests(ctx, o), r.force(ctx, o))
	switch o.world.Phase() {
	case v1alpha1.PhaseCreating, v1alpha1.PhaseRunning:
		err = errors.Join(err, r.provide(ctx, o))
	case v1alpha1.PhasePending:
		err = errors.Join(err, r.removeRuns(ctx, o))
		if o.world.Takes() {
			err = errors.Join(err, r.hold(ctx, o))
		} else {
			err = errors.Join(err, r.letGo(ctx, o))
		}
	case v1alpha1.PhaseStopping:
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
	apply.LookFirst = o.world.Obstructed()
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
			if o.plan.Volumeless() != "" || o.plan.Continued != "" {
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
	add(o.plan.Volumeless() == "" && o.objects.workspace == nil, "PersistentVolumeClaim", workload.WorkspaceName(cmp.Or(o.plan.Continued, name)))
	add(o.objects.service == nil, "Service", workload.ServiceName(name))
	add(o.world.Token == nil, "Secret", workload.TokenSecretName(name))
	return names
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
