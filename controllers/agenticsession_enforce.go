package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
		err = errors.Join(err, r.removeRuns(ctx, o), r.release(ctx, o), r.expire(ctx, o), r.remember(ctx, o))
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
	apply, asked, known, introduced := r.applier(), r.Clock.Now(), o.world.Session, o.world.Session
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
	moved := !o.take(introduced)
	if introduced != known && !moved {
		r.starts.confirmed(introduced, asked)
	}
	o.refresh()
	o.world.Absent = o.absent()
	if err != nil || moved {
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
	remove := func(object client.Object) {
		behind, err := r.behind(ctx, o, object)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !behind:
			errs = append(errs, r.applier().Remove(ctx, object))
		}
	}
	for i := range o.jobs {
		if job := &o.jobs[i]; ofThis(job, o.world.Session) && o.world.RemoveJob(job) {
			errs = append(errs, r.relabel(ctx, o.world.Session, job))
			remove(job)
		}
	}
	for i := range o.orphans {
		remove(&o.orphans[i])
	}
	return errors.Join(errs...)
}

// relabel gives a Job of the session its label back before it is removed: without it no watch tells when
// the Job and its pods are gone.
func (r *AgenticSessionReconciler) relabel(ctx context.Context, s *v1alpha1.AgenticSession, job *batchv1.Job) error {
	if job.DeletionTimestamp != nil || job.Labels[v1alpha1.LabelSession] == s.Name {
		return nil
	}
	labelled := job.DeepCopy()
	if labelled.Labels == nil {
		labelled.Labels = map[string]string{}
	}
	labelled.Labels[v1alpha1.LabelSession] = s.Name
	return ignoreChanged(r.applier().Change(ctx, labelled, job))
}

// behind says that what we know is older than the object: it belongs to a run that began after the
// session as we know it, or its Job is not in the cache yet. So it may be for an operator that was
// paused or has just taken over. The API server is asked only when something is to be removed that
// looks like that; the event that we lack makes the next pass. It never comes of a Job that lost its label:
// that is given back.
func (r *AgenticSessionReconciler) behind(ctx context.Context, o *seen, object client.Object) (bool, error) {
	s := o.world.Session
	if run, err := strconv.ParseInt(object.GetLabels()[v1alpha1.LabelRun], 10, 64); err == nil && run > s.Status.Run {
		now := &v1alpha1.AgenticSession{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s), now); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading the session before something of run %d is removed: %w", run, err)
		}
		if now.UID == s.UID && now.Status.Run >= run {
			return true, nil
		}
	}
	controller := metav1.GetControllerOf(object)
	if controller == nil || controller.Kind != "Job" || o.hasJob(controller.UID) {
		return false, nil
	}
	job := &batchv1.Job{}
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: controller.Name}, job); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking for the Job of pod %s: %w", object.GetName(), err)
	}
	if job.UID != controller.UID || job.DeletionTimestamp != nil {
		return false, nil
	}
	if ofThis(job, s) {
		return true, r.relabel(ctx, s, job)
	}
	return true, nil
}

// hasJob says that the cache has this Job.
func (o *seen) hasJob(uid types.UID) bool {
	return slices.ContainsFunc(o.jobs, func(job batchv1.Job) bool { return job.UID == uid })
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
