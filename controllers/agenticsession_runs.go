package controllers

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// observeRuns reads the Jobs and pods of the session.
func (r *AgenticSessionReconciler) observeRuns(ctx context.Context, o *seen) error {
	s := o.world.Session
	if err := r.observeJob(ctx, o); err != nil {
		return err
	}
	jobs := &batchv1.JobList{}
	if err := r.Client.List(ctx, jobs, r.ofSession(s)...); err != nil {
		return fmt.Errorf("listing the Jobs of the session: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if belongs(job, s) {
			o.addJob(job)
		}
	}
	if err := r.observePods(ctx, o, r.Client, r.ofSession(s)...); err != nil {
		return err
	}
	if o.world.Job == nil && o.world.Holds(session.RunnerLost) {
		// The pod may have been seen before its Job.
		if err := r.observeJob(ctx, o); err != nil {
			return err
		}
	}
	if o.world.EndUnseen() {
		// The cause of a failure is written once and cannot be mended later.
		live := []client.ListOption{client.InNamespace(s.Namespace), client.MatchingLabels{v1alpha1.LabelSession: s.Name}}
		if err := r.observePods(ctx, o, r.Live, live...); err != nil {
			return err
		}
	}
	return r.observeRefusal(ctx, o)
}

// addJob takes a Job for one of the session's, the run's own or one that is left of an earlier run.
func (o *seen) addJob(job *batchv1.Job) {
	if o.hasJob(job.UID) {
		return
	}
	o.jobs = append(o.jobs, *job)
	if o.world.Job == nil || o.world.Job.Name != job.Name {
		o.world.Leftovers++
	}
}

// number finds out which run goes on where the status does not say: somebody else wrote the phase, or
// the number was dropped before it was recorded. It is that of the newest Job, by its name: its label
// may say anything.
func (r *AgenticSessionReconciler) number(ctx context.Context, s *v1alpha1.AgenticSession) error {
	if s.Status.Run > 0 || !underWay(s) || s.Status.Phase == "" || s.Status.Phase == v1alpha1.PhasePending {
		return nil
	}
	jobs := &batchv1.JobList{}
	if err := r.Client.List(ctx, jobs, r.ofSession(s)...); err != nil {
		return fmt.Errorf("looking for the run that goes on: %w", err)
	}
	s.Status.Run = 1
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if run := workload.RunOfJob(job.Name); run > s.Status.Run && ofThis(job, s) && workload.SessionOfJob(job.Name) == s.Name {
			s.Status.Run = run
		}
	}
	return nil
}

// observePods reads the pods of the session from a cache or from the API server.
func (r *AgenticSessionReconciler) observePods(ctx context.Context, o *seen, from client.Reader, options ...client.ListOption) error {
	s := o.world.Session
	pods := &corev1.PodList{}
	if err := from.List(ctx, pods, options...); err != nil {
		return fmt.Errorf("listing the pods of the session: %w", err)
	}
	o.world.Pods, o.orphans = nil, nil
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !belongs(pod, s) {
			continue
		}
		r.addPod(o, pod)
		if pod.Annotations[v1alpha1.AnnotationSessionUID] == string(s.UID) && !o.looksAfter(pod) {
			o.orphans = append(o.orphans, *pod)
		}
	}
	return nil
}

// observeJob reads the Job of the current run. When the status knows of one that the cache does
// not have, the API server is asked: taking a finished run for a lost one cannot be undone.
func (r *AgenticSessionReconciler) observeJob(ctx context.Context, o *seen) error {
	s := o.world.Session
	if s.Status.Run == 0 {
		return nil
	}
	key := types.NamespacedName{Namespace: s.Namespace, Name: workload.JobName(s.Name, s.Status.Run)}
	job, err := read(ctx, r, key, &batchv1.Job{})
	if err != nil {
		return err
	}
	if job == nil && o.world.Holds(session.RunnerLost) && !s.Status.Phase.Terminal() {
		live := &batchv1.Job{}
		switch err := r.Live.Get(ctx, key, live); {
		case err == nil:
			job = live
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("looking for the Job %s: %w", key.Name, err)
		}
	}
	if job != nil && belongs(job, s) {
		o.world.Job = job
		o.addJob(job) // no list has it when its label was taken off
	}
	return nil
}

// looksAfter says that the Job of a pod is there, so that the pod is the Job's business. A Job that is
// being deleted looks after nothing: somebody's finalizer may keep it for ever.
func (o *seen) looksAfter(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOf(pod)
	if controller == nil {
		return false
	}
	for i := range o.jobs {
		if o.jobs[i].UID == controller.UID {
			return o.jobs[i].DeletionTimestamp == nil
		}
	}
	job := o.world.Job
	return job != nil && job.UID == controller.UID && job.DeletionTimestamp == nil
}

// observeRefusal reads why the Job controller could not make the pod. It says so in Events alone.
func (r *AgenticSessionReconciler) observeRefusal(ctx context.Context, o *seen) error {
	job := o.world.Job
	if job == nil || len(o.world.Pods) > 0 || o.world.Phase() != v1alpha1.PhaseCreating {
		return nil
	}
	refusals := &corev1.EventList{}
	if err := r.Client.List(ctx, refusals, client.InNamespace(job.Namespace), client.MatchingFields{indexInvolvedUID: string(job.UID)}); err != nil {
		return fmt.Errorf("listing the events of Job %s: %w", job.Name, err)
	}
	var newest metav1.Time
	for i := range refusals.Items {
		event := &refusals.Items[i]
		if event.Reason == reasonFailedCreate && !event.LastTimestamp.Before(&newest) {
			newest = event.LastTimestamp
			o.world.PodRefusal = event.Message
		}
	}
	return nil
}

// ofSession selects what carries the session's label, as cheaply as the client can.
func (r *AgenticSessionReconciler) ofSession(s *v1alpha1.AgenticSession) []client.ListOption {
	options := []client.ListOption{client.InNamespace(s.Namespace), client.DisableReadYourWritesConsistency}
	if r.Indexed {
		return append(options, client.MatchingFields{indexSession: s.Name})
	}
	name := s.Name
	if len(validation.IsValidLabelValue(name)) > 0 {
		name = "" // no object can have it as a label, and the API server refuses to look for it
	}
	return append(options, client.MatchingLabels{v1alpha1.LabelSession: name})
}

// belongs says that a Job or pod with the session's label is really one of its runs, or of those
// of an earlier session of that name: anyone may set labels, and copy an object with them.
func belongs(object client.Object, s *v1alpha1.AgenticSession) bool {
	controller := metav1.GetControllerOf(object)
	switch {
	case controller == nil:
		_, pod := object.(*corev1.Pod)
		return object.GetAnnotations()[v1alpha1.AnnotationSessionUID] == string(s.UID) &&
			(pod || workload.SessionOfJob(object.GetName()) == s.Name)
	case controller.Kind == "Job":
		return workload.SessionOfJob(controller.Name) == s.Name
	default:
		return controller.Kind == "AgenticSession" && controller.Name == s.Name
	}
}

// ofThis says that a Job belongs to this very session, and not to an earlier one of its name.
func ofThis(job *batchv1.Job, s *v1alpha1.AgenticSession) bool {
	return owned(job, s) || metav1.GetControllerOf(job) == nil && job.Annotations[v1alpha1.AnnotationSessionUID] == string(s.UID)
}
