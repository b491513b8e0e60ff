package controllers

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// A workspace can be mounted by one run at a time. Its owner is the session that it was made for;
// sessions that continue that one go on in it, one after another. Who does writes its run on the
// claim, as long as the claim is as it was read, and only then looks whether the owner is at rest.
// The owner writes its phase first and looks at the claim then. So of two that begin at the same
// time at least one sees the other, and nothing has to be given back at the end of a run: what a
// session wrote is void once the session has ended.

// lookAgain is when something is looked at again of which no watch tells that it is gone.
const lookAgain = time.Minute

// lent is the workspace of another session.
type lent struct {
	owner *v1alpha1.AgenticSession
	claim *corev1.PersistentVolumeClaim
}

// observeWorkspace finds out in whose workspace the run works.
func (r *AgenticSessionReconciler) observeWorkspace(ctx context.Context, o *seen) error {
	s, w := o.world.Session, &o.world
	if o.plan.Volumeless() != "" {
		return nil
	}
	if o.plan.Continued != "" {
		claim, err := read(ctx, r, o.key(workload.WorkspaceName(o.plan.Continued)), &corev1.PersistentVolumeClaim{})
		o.borrow(o.plan.Continued, claim)
		return err
	}
	if !o.beginning() {
		if workload.WantsParentWorkspace(s) && w.Job != nil {
			w.Uncontinued = uncontinued(s)
		}
		return nil
	}
	own := o.objects.workspace != nil && owned(o.objects.workspace, s)
	if !workload.WantsParentWorkspace(s) || own && !workload.NeedsParentWorkspace(s) {
		return r.observeBorrower(ctx, o)
	}
	from, err := r.lender(ctx, s)
	switch {
	case err != nil:
		return err
	case from == nil && workload.NeedsParentWorkspace(s):
		w.Awaited = fmt.Sprintf("session %s, which this one continues, has no workspace: run it first, or set the annotation %s=false to begin in a workspace of its own", workload.Parent(s), v1alpha1.AnnotationParentWorkspace)
	case from == nil:
		w.Uncontinued = uncontinued(s)
	case w.Phase() == v1alpha1.PhaseCreating:
		if workload.HoldOf(from.claim) == workload.HoldFor(s, s.Status.Run) {
			o.borrow(from.owner.Name, from.claim)
		}
	default:
		o.lent = from
		w.Unheld = true
		w.Awaited = resting(from.owner)
	}
	return nil
}

// uncontinued says why a session that continues another works in a workspace of its own.
func uncontinued(s *v1alpha1.AgenticSession) string {
	return "session " + workload.Parent(s) + ", which this one continues, had none when this one began"
}

// lender finds the workspace that the parent of a session has, or goes on in itself; nil for none.
func (r *AgenticSessionReconciler) lender(ctx context.Context, s *v1alpha1.AgenticSession) (*lent, error) {
	passed := map[string]bool{s.Name: true}
	for at := s; workload.WantsParentWorkspace(at); {
		name := workload.Parent(at)
		if passed[name] {
			return nil, nil
		}
		passed[name] = true
		owner, err := read(ctx, r, types.NamespacedName{Namespace: s.Namespace, Name: name}, &v1alpha1.AgenticSession{})
		if err != nil || owner == nil || owner.DeletionTimestamp != nil {
			return nil, err
		}
		claim, err := read(ctx, r, types.NamespacedName{Namespace: s.Namespace, Name: workload.WorkspaceName(name)}, &corev1.PersistentVolumeClaim{})
		if err != nil {
			return nil, err
		}
		if claim != nil && owned(claim, owner) && claim.DeletionTimestamp == nil {
			return &lent{owner, claim}, nil
		}
		at = owner
	}
	return nil, nil
}

// resting says why the owner of a workspace cannot lend it; empty when it can.
func resting(owner *v1alpha1.AgenticSession) string {
	if owner.Status.Phase.Terminal() {
		return ""
	}
	phase := owner.Status.Phase
	if phase == "" {
		phase = v1alpha1.PhasePending
	}
	return fmt.Sprintf("session %s, in whose workspace this one is to go on, is %s: this one begins when that has ended; stop it, or set the annotation %s=false on this one to begin in a workspace of its own", owner.Name, phase, v1alpha1.AnnotationParentWorkspace)
}

// hold takes the workspace of another session for the run that is to begin.
func (r *AgenticSessionReconciler) hold(ctx context.Context, o *seen) error {
	s, w := o.world.Session, &o.world
	claim := &corev1.PersistentVolumeClaim{}
	if found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(o.lent.claim), claim); err != nil {
		return err
	} else if !found || claim.UID != o.lent.claim.UID || claim.DeletionTimestamp != nil {
		return nil // the event of that makes the next pass
	}
	mine, theirs := workload.HoldFor(s, s.Status.Run+1), workload.HoldOf(claim)
	var err error
	if w.Awaited, err = r.usedBy(ctx, s, theirs); err != nil || w.Awaited != "" {
		return err
	}
	if w.Awaited, err = r.mounted(ctx, o, claim.Name); err != nil || w.Awaited != "" {
		return err
	}
	if theirs != mine {
		if err := r.mark(ctx, claim, mine.String()); err != nil {
			return ignoreChanged(err)
		}
	}
	owner := &v1alpha1.AgenticSession{}
	found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(o.lent.owner), owner)
	if err != nil {
		return err
	}
	if !found || owner.UID != o.lent.owner.UID {
		return nil
	}
	if w.Awaited = resting(owner); w.Awaited != "" {
		return ignoreChanged(r.mark(ctx, claim, ""))
	}
	w.Unheld = false
	o.borrow(owner.Name, claim)
	return nil
}

// letGo gives back what the session took for a run that cannot begin, so that nobody waits for it
// while it waits itself.
func (r *AgenticSessionReconciler) letGo(ctx context.Context, o *seen) error {
	if s := o.world.Session; o.lent == nil || workload.HoldOf(o.lent.claim) != workload.HoldFor(s, s.Status.Run+1) {
		return nil
	}
	return ignoreChanged(r.mark(ctx, o.lent.claim.DeepCopy(), ""))
}

// mark writes on a claim who uses it, as long as it is as it was read.
func (r *AgenticSessionReconciler) mark(ctx context.Context, claim *corev1.PersistentVolumeClaim, by string) error {
	read := claim.DeepCopy()
	delete(claim.Annotations, v1alpha1.AnnotationWorkspaceUser)
	if by != "" {
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[v1alpha1.AnnotationWorkspaceUser] = by
	}
	return r.applier().Change(ctx, claim, read)
}

// ignoreChanged takes it for no error that an object changed meanwhile: its event makes the next pass.
func ignoreChanged(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// usedBy says that another session than this one goes on in a workspace; empty when none does.
func (r *AgenticSessionReconciler) usedBy(ctx context.Context, s *v1alpha1.AgenticSession, h workload.Hold) (string, error) {
	if h == (workload.Hold{}) || h.UID == string(s.UID) {
		return "", nil
	}
	other := &v1alpha1.AgenticSession{}
	found, err := lookup(ctx, r.Live, types.NamespacedName{Namespace: s.Namespace, Name: h.Session}, other)
	if err != nil || !found || !h.Stands(other) {
		return "", err
	}
	return fmt.Sprintf("session %s goes on in the workspace that this one is to use: this one begins when that has ended; stop it to begin now", h.Session), nil
}

// mounted says that a pod of whomever has a claim mounted, or that a Job may make one yet: it may be left
// for a moment of a session that was deleted. Empty when there is none. Pods of others are in no cache, so that
// nothing tells when they go.
func (r *AgenticSessionReconciler) mounted(ctx context.Context, o *seen, claim string) (string, error) {
	pods := &corev1.PodList{}
	if err := r.Live.List(ctx, pods, client.InNamespace(o.world.Session.Namespace)); err != nil {
		return "", fmt.Errorf("looking for pods that use volume claim %s: %w", claim, err)
	}
	made := map[types.UID]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if job := metav1.GetControllerOf(pod); job != nil {
			made[job.UID] = true
		}
		if workload.Mounts(pod, claim) {
			o.world.Again = o.world.Now.Add(lookAgain)
			return fmt.Sprintf("pod %s still has volume claim %s mounted, in which this session is to work: it begins when that pod is gone", pod.Name, claim), nil
		}
	}
	jobs := &batchv1.JobList{}
	if err := r.Live.List(ctx, jobs, client.InNamespace(o.world.Session.Namespace)); err != nil {
		return "", fmt.Errorf("looking for Jobs that use volume claim %s: %w", claim, err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if !made[job.UID] && !session.Finished(job) && !ofThis(job, o.world.Session) && workload.Mounts(&corev1.Pod{Spec: job.Spec.Template.Spec}, claim) {
			o.world.Again = o.world.Now.Add(lookAgain)
			return fmt.Sprintf("Job %s may still make a pod with volume claim %s, in which this session is to work: it begins when that Job has ended or is gone", job.Name, claim), nil
		}
	}
	return "", nil
}

// observeBorrower looks whether another session goes on in the workspace of this one, which is to
// begin anew. Only where there is reason to is the API server asked.
func (r *AgenticSessionReconciler) observeBorrower(ctx context.Context, o *seen) error {
	s, known := o.world.Session, o.objects.workspace
	if known != nil && !owned(known, s) || o.world.Phase() != v1alpha1.PhasePending {
		return nil
	}
	if known == nil || workload.HoldOf(known) == (workload.Hold{}) {
		children, err := r.children(ctx, s.Namespace, s.Name)
		if err != nil || len(children) == 0 {
			return err
		}
	}
	if known == nil {
		// Somebody may have deleted it, and a pod that was to mount it takes the next claim of its name.
		return r.observeMounts(ctx, o)
	}
	claim := &corev1.PersistentVolumeClaim{}
	if found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(known), claim); err != nil || !found {
		return err
	}
	by := workload.HoldOf(claim)
	if by == (workload.Hold{}) || by.UID == string(s.UID) {
		return nil
	}
	var err error
	if o.world.Awaited, err = r.usedBy(ctx, s, by); err != nil || o.world.Awaited != "" {
		return err
	}
	return r.observeMounts(ctx, o)
}

// observeMounts looks whether the workspace of a session that is to begin is mounted by another.
func (r *AgenticSessionReconciler) observeMounts(ctx context.Context, o *seen) (err error) {
	if len(o.world.Pods) == 0 {
		o.world.Awaited, err = r.mounted(ctx, o, workload.WorkspaceName(o.world.Session.Name))
	}
	return err
}

// borrow has the run work in the workspace of another session.
func (o *seen) borrow(owner string, claim *corev1.PersistentVolumeClaim) {
	o.plan.Continued, o.world.Continued = owner, owner
	o.objects.workspace, o.world.Workspace = claim, claim
}

// key names an object in the namespace of the session.
func (o *seen) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: o.world.Session.Namespace, Name: name}
}
