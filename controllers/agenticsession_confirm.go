package controllers

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// What caches select by can be changed by others: the label of a namespace, the label of a pod.
// This file asks the API server before a move that cannot be taken back rests on something that a
// cache does not have. On the ordinary way of a session it asks nothing.

// confirm looks once more, past the caches, at what speaks against a move. It says whether the
// world is as it was.
func (r *AgenticSessionReconciler) confirm(ctx context.Context, o *seen, d session.Decision) (bool, error) {
	switch {
	case d.Rule == "provision" && o.world.Session.Status.Run > 0:
		found, err := r.observeStrays(ctx, o)
		return !found, err
	case d.Rule == "provision":
		found, err := r.observePredecessor(ctx, o)
		return !found, err
	case o.world.Doubtful(d) && !o.world.Namespace.Terminating:
		err := r.observeNamespace(ctx, o)
		return !o.world.Namespace.Terminating, err
	default:
		return true, nil
	}
}

// decide picks the next phase. That a runner is late is believed only of what the API server has: after
// an outage a deadline may have passed that the runner met, and the caches be the last to know.
func (r *AgenticSessionReconciler) decide(ctx context.Context, o *seen) (session.Decision, error) {
	d := session.Decide(&o.world)
	if d.Rule != "start-timeout" {
		return d, nil
	}
	s := o.world.Session
	job := &batchv1.Job{}
	found, err := lookup(ctx, r.Live, o.key(workload.JobName(s.Name, s.Status.Run)), job)
	if err != nil {
		return d, err
	}
	if o.world.Job = nil; found && belongs(job, s) {
		o.world.Job = job
	}
	if err := r.observePods(ctx, o, r.Live, client.InNamespace(s.Namespace), client.MatchingLabels{v1alpha1.LabelSession: s.Name}); err != nil {
		return d, err
	}
	return session.Decide(&o.world), nil
}

// observeNamespace reads the namespace past the cache, which has only managed ones, and those with
// some delay.
func (r *AgenticSessionReconciler) observeNamespace(ctx context.Context, o *seen) error {
	namespace := partial("v1", "Namespace")
	found, err := lookup(ctx, r.Live, types.NamespacedName{Name: o.world.Session.Namespace}, namespace)
	if err != nil {
		return err
	}
	o.world.Namespace.Managed = found && namespace.Labels[v1alpha1.LabelManaged] == "true"
	o.world.Namespace.Terminating = !found || namespace.DeletionTimestamp != nil
	return nil
}

// observePredecessor looks for the Job of a deleted session of the same name, which the pass that made it
// may have made after the session was deleted. Other than a list, this waits for what this process wrote.
func (r *AgenticSessionReconciler) observePredecessor(ctx context.Context, o *seen) (found bool, err error) {
	s := o.world.Session
	job, err := read(ctx, r, o.key(workload.JobName(s.Name, s.Status.Run+1)), &batchv1.Job{})
	if err != nil || job == nil || !belongs(job, s) {
		return false, err
	}
	o.world.Leftovers++
	return true, nil
}

// observeStrays looks for what is left of earlier runs that no cache shows: a Job that somebody put back
// a moment ago, and pods that lost their label and that no Job looks after. A new run must not begin beside
// one; it is removed first. No watch tells when such a pod goes.
func (r *AgenticSessionReconciler) observeStrays(ctx context.Context, o *seen) (found bool, err error) {
	s := o.world.Session
	jobs := partialList("batch/v1", "JobList")
	if err := r.Live.List(ctx, jobs, client.InNamespace(s.Namespace), client.MatchingLabels{v1alpha1.LabelSession: s.Name}); err != nil {
		return false, fmt.Errorf("looking for Jobs of earlier runs: %w", err)
	}
	for i := range jobs.Items {
		if job := (&batchv1.Job{ObjectMeta: jobs.Items[i].ObjectMeta}); belongs(job, s) {
			o.addJob(job)
			found = true
		}
	}
	pods := partialList("v1", "PodList")
	if err := r.Live.List(ctx, pods, client.InNamespace(s.Namespace)); err != nil {
		return false, fmt.Errorf("looking for pods of earlier runs: %w", err)
	}
	for i := range pods.Items {
		pod := &corev1.Pod{ObjectMeta: pods.Items[i].ObjectMeta}
		if !belongs(pod, s) {
			continue
		}
		r.addPod(o, pod)
		o.orphans = append(o.orphans, *pod)
		o.world.Again = o.world.Now.Add(lookAgain)
		found = true
	}
	return found, nil
}
