package controllers

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

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
	if due, err := r.jobIsDue(ctx, w.Session); err != nil || !due {
		return err
	}
	job, err := r.applier().Ensure(ctx, desired, nil)
	if err != nil {
		return err
	}
	w.Job = job.(*batchv1.Job)
	r.starts.made(w.Session, w.Job.UID)
	if ignored := o.plan.Ignored(); len(ignored) > 0 {
		r.Events.Eventf(w.Session, nil, corev1.EventTypeWarning, v1alpha1.ReasonVariableIgnored, "MakeJob",
			"%s of spec.environmentVariables is not used: a Secret of the project, an annotation of the session or the operator sets it; take it out of the spec, or change it there", short(strings.Join(ignored, ", ")))
	}
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
