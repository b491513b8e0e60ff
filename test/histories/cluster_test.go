package histories

import (
	"fmt"
	"slices"
	"strings"
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

const cluster = "the cluster"

// all objects of a kind, as copies that may be changed and written.
func copies[T client.Object](h *history, kind string) []T {
	var found []T
	for _, object := range h.api.list(kind) {
		found = append(found, object.DeepCopyObject().(T))
	}
	return found
}

func (h *history) write(object client.Object, status bool) {
	if err := h.api.update(cluster, object, status); err != nil {
		h.complain("the model of the cluster is wrong: %v", err)
	}
}

func (h *history) remove(by, kind string, object client.Object, options client.DeleteOptions) {
	h.note("%s deletes %s %s", by, kind, object.GetName())
	if err := h.api.remove(by, kind, client.ObjectKeyFromObject(object), &options); err != nil {
		h.complain("the model of the cluster is wrong: %v", err)
	}
}

// podsOf are the pods that a Job controls.
func (h *history) podsOf(job *batchv1.Job) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range copies[*corev1.Pod](h, "Pod") {
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.UID == job.UID {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (h *history) condition(job *batchv1.Job, kind batchv1.JobConditionType, reason string) {
	h.note("Job %s is %s %s", job.Name, kind, reason)
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "as the Job controller says", LastTransitionTime: metav1.NewTime(h.now().Truncate(time.Second)),
	})
	if kind == batchv1.JobComplete || kind == batchv1.JobFailed {
		at := metav1.NewTime(h.now().Truncate(time.Second))
		job.Status.CompletionTime = &at
	}
	h.write(job, true)
}

func hasCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if job.Status.Conditions[i].Type == kind {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// jobStep does one thing that the Job controller has to do about a Job, and says whether there was any.
func (h *history) jobStep(job *batchv1.Job) bool {
	pods := h.podsOf(job)
	active := 0
	for _, pod := range pods {
		if h.account(job, pod) {
			return true
		}
		if !podEnded(pod) {
			active++
		}
	}
	switch {
	case session.Finished(job):
		return job.DeletionTimestamp == nil && h.expire(job)
	case job.DeletionTimestamp != nil && (job.Status.Failed+job.Status.Succeeded == 0 || hasCondition(job, batchv1.JobFailureTarget) != nil):
		return active == 0 && hasCondition(job, batchv1.JobFailureTarget) != nil && h.finish(job, batchv1.JobFailed, "deleted")
	case hasCondition(job, batchv1.JobFailureTarget) != nil:
		return h.endPods(pods) || active == 0 && h.finish(job, batchv1.JobFailed, hasCondition(job, batchv1.JobFailureTarget).Reason)
	case hasCondition(job, batchv1.JobSuccessCriteriaMet) != nil:
		return active == 0 && h.finish(job, batchv1.JobComplete, "")
	case job.Status.StartTime != nil && job.Spec.ActiveDeadlineSeconds != nil && !h.now().Before(job.Status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds)*time.Second)):
		return h.finish(job, batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded)
	case job.Status.Failed > 0:
		return h.finish(job, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)
	case job.Status.Succeeded > 0:
		return h.finish(job, batchv1.JobSuccessCriteriaMet, "")
	case len(pods) > 0:
		return false
	default:
		return h.makePod(job)
	}
}

func (h *history) finish(job *batchv1.Job, kind batchv1.JobConditionType, reason string) bool {
	h.condition(job, kind, reason)
	return true
}

// freeStray lets a pod go whose Job is gone.
func (h *history) freeStray(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	job := h.api.objects["Job"][types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}]
	if job != nil && job.GetUID() == owner.UID || !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
		return false
	}
	pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return f == batchv1.JobTrackingFinalizer })
	h.note("Job controller lets pod %s go, whose Job is gone", pod.Name)
	h.write(pod, false)
	return true
}

// account counts a pod that has ended, and lets go of it.
func (h *history) account(job *batchv1.Job, pod *corev1.Pod) bool {
	forced := pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	if !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) || !podEnded(pod) && !forced {
		return false
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		job.Status.Succeeded++
	} else {
		job.Status.Failed++
	}
	job.Status.Active = 0
	h.write(job, true)
	pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return f == batchv1.JobTrackingFinalizer })
	h.note("Job controller accounts for pod %s", pod.Name)
	h.write(pod, false)
	return true
}

func (h *history) endPods(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && !podEnded(pod) {
			h.remove("Job controller", "Pod", pod, client.DeleteOptions{})
			return true
		}
	}
	return false
}

func (h *history) expire(job *batchv1.Job) bool {
	ttl := job.Spec.TTLSecondsAfterFinished
	if ttl == nil || h.now().Before(job.Status.CompletionTime.Add(time.Duration(*ttl)*time.Second)) {
		return false
	}
	foreground := metav1.DeletePropagationForeground
	h.remove("TTL controller", "Job", job, client.DeleteOptions{PropagationPolicy: &foreground})
	return true
}

func (h *history) makePod(job *batchv1.Job) bool {
	if h.api.objects["Namespace"][types.NamespacedName{Name: job.Namespace}].GetDeletionTimestamp() != nil {
		return false
	}
	h.pods++
	if h.full["Pod"] {
		h.refusePod(job)
		return false
	}
	yes := true
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = job.Namespace, fmt.Sprintf("%s-%d", job.Name, h.pods)
	pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: &yes, BlockOwnerDeletion: &yes}}
	pod.Status.Phase = corev1.PodPending
	h.note("Job controller makes pod %s", pod.Name)
	if err := h.api.create(cluster, pod); err != nil {
		h.complain("the model of the cluster is wrong: %v", err)
		return false
	}
	started := metav1.NewTime(h.now().Truncate(time.Second))
	if job.Status.StartTime == nil {
		job.Status.StartTime = &started
	}
	job.Status.Active = 1
	h.write(job, true)
	return true
}

// refusePod has the Job controller tell that it may make no pod, in an Event, as it does.
func (h *history) refusePod(job *batchv1.Job) {
	h.note("the pod of Job %s is refused", job.Name)
	at := metav1.NewTime(h.now().Truncate(time.Second))
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + ".refused"},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID},
		Reason:         "FailedCreate", LastTimestamp: at,
		Message: fmt.Sprintf("Error creating: pods \"%s-%d\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1", job.Name, h.pods),
	}
	if known := h.api.objects["Event"][client.ObjectKeyFromObject(event)]; known != nil {
		event.SetUID(known.GetUID())
		event.SetResourceVersion(known.GetResourceVersion())
		h.write(event, false)
		return
	}
	if err := h.api.create(cluster, event); err != nil {
		h.complain("the model of the cluster is wrong: %v", err)
	}
}

// limited are the kinds of which a quota may allow no more.
var limited = []string{"Job", "PersistentVolumeClaim", "Pod", "Secret", "Service"}

// refuses is the quota of the project, as the operator meets it.
func (h *history) refuses(by, kind, name string) error {
	if !h.full[kind] || !strings.HasPrefix(by, "operator") {
		return nil
	}
	h.count("creations refused for a quota")
	return apierrors.NewForbidden(resource(kind), name, fmt.Errorf("exceeded quota: team, requested: count/%ss=1", strings.ToLower(kind)))
}

// claimProtection keeps volume claims for as long as pods use them.
const claimProtection = "kubernetes.io/pvc-protection"

// placeable says that a scheduler finds the volume claims of a pod.
func (h *history) placeable(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		claim := h.api.objects["PersistentVolumeClaim"][types.NamespacedName{Namespace: pod.Namespace, Name: source.ClaimName}]
		if claim == nil || claim.GetDeletionTimestamp() != nil {
			return false
		}
	}
	return true
}

// freeClaim lets a claim go that is being deleted and that no pod uses.
func (h *history) freeClaim(object client.Object) bool {
	if object.GetDeletionTimestamp() == nil || !slices.Contains(object.GetFinalizers(), claimProtection) {
		return false
	}
	for _, pod := range h.api.list("Pod") {
		if pod := pod.(*corev1.Pod); pod.Spec.NodeName != "" && workload.Mounts(pod, object.GetName()) {
			return false
		}
	}
	freed := object.DeepCopyObject().(client.Object)
	freed.SetFinalizers(slices.DeleteFunc(freed.GetFinalizers(), func(f string) bool { return f == claimProtection }))
	h.note("volume claim %s is let go", object.GetName())
	h.write(freed, false)
	return true
}

// podStep does one thing that a scheduler or kubelet has to do about a pod. Whether runners end, and
// how, is decided by the caller.
func (h *history) podStep(pod *corev1.Pod, ends bool) bool {
	runner := runnerOf(pod)
	switch {
	case h.freeStray(pod):
	case podEnded(pod):
		if pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0 {
			h.remove("kubelet", "Pod", pod, client.DeleteOptions{})
			return true
		}
		return false
	case pod.DeletionTimestamp != nil && pod.Spec.NodeName == "":
		pod.Status.Phase = corev1.PodFailed
		h.note("pod %s never ran", pod.Name)
		h.write(pod, true)
	case pod.DeletionTimestamp != nil:
		if h.deaf[pod.UID] {
			return false
		}
		if runner != nil && runner.State.Terminated != nil {
			h.endPod(pod) // what outlived the runner ends as well
			return true
		}
		h.exit(pod, []int32{143, 143, 0, 137}[h.pick(4)], false)
	case pod.Spec.NodeName == "" && !h.placeable(pod):
		return false
	case pod.Spec.NodeName == "":
		pod.Spec.NodeName = "node"
		h.note("pod %s is scheduled", pod.Name)
		h.write(pod, false)
	case runner == nil:
		if h.chance(0.05) && pod.Labels[v1alpha1.LabelSession] != "" {
			h.deaf[pod.UID] = true
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: session.RunnerContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(h.now().Truncate(time.Second))}}}}
		h.note("the runner of pod %s starts", pod.Name)
		h.write(pod, true)
	case runner.State.Terminated != nil:
		h.endPod(pod)
	case !runner.Ready:
		runner.Ready = true
		h.note("the runner of pod %s is ready", pod.Name)
		h.write(pod, true)
	case ends:
		h.exit(pod, []int32{0, 0, 0, 1, 2, 137, 143}[h.pick(7)], h.chance(0.3))
	default:
		return false
	}
	return true
}

func runnerOf(pod *corev1.Pod) *corev1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[0]
}

// exit ends the runner of a pod, and the pod unless another container goes on.
func (h *history) exit(pod *corev1.Pod, code int32, lingers bool) {
	ended := &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(h.now().Truncate(time.Second)), Reason: "Error"}
	switch code {
	case 0:
		ended.Reason = "Completed"
	case 137:
		ended.Reason = "OOMKilled"
	}
	runner := runnerOf(pod)
	if runner == nil {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: session.RunnerContainer}}
		runner = runnerOf(pod)
	} else if running := runner.State.Running; running != nil {
		ended.StartedAt = running.StartedAt
	}
	runner.Ready, runner.State = false, corev1.ContainerState{Terminated: ended}
	owner := metav1.GetControllerOf(pod)
	h.exits[owner.UID] = code
	job := h.api.objects["Job"][types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}]
	h.taken[owner.UID] = pod.DeletionTimestamp != nil && (job == nil || job.GetUID() != owner.UID || job.GetDeletionTimestamp() != nil)
	h.note("the runner of pod %s exits with %d", pod.Name, code)
	if lingers {
		h.write(pod, true)
		return
	}
	h.endPod(pod)
}

func (h *history) endPod(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodFailed
	if runner := runnerOf(pod); runner != nil && runner.State.Terminated != nil && runner.State.Terminated.ExitCode == 0 {
		pod.Status.Phase = corev1.PodSucceeded
	}
	h.note("pod %s is %s", pod.Name, pod.Status.Phase)
	h.write(pod, true)
}

// collected are the kinds that the garbage collector looks after here.
var collected = []string{"Pod", "Job", "Secret", "ServiceAccount", "Role", "RoleBinding", "Service", "PersistentVolumeClaim", "LimitRange", "NetworkPolicy"}

// collect does one thing that the garbage collector has to do, and says whether there was any.
func (h *history) collect() bool {
	for _, kind := range collected {
		for _, object := range h.api.list(kind) {
			if h.collectOne(kind, object) {
				return true
			}
		}
	}
	return false
}

func (h *history) collectOne(kind string, object client.Object) bool {
	if h.freeClaim(object) {
		return true
	}
	if slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents) && !h.hasDependents(object.GetUID()) {
		freed := object.DeepCopyObject().(client.Object)
		freed.SetFinalizers(slices.DeleteFunc(freed.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerDeleteDependents }))
		h.note("garbage collector lets %s %s go", kind, object.GetName())
		h.write(freed, false)
		return true
	}
	controller := metav1.GetControllerOf(object)
	if controller == nil || object.GetDeletionTimestamp() != nil {
		return false
	}
	owner := h.api.objects[controller.Kind][types.NamespacedName{Namespace: object.GetNamespace(), Name: controller.Name}]
	if owner != nil && owner.GetUID() == controller.UID && !slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return false
	}
	background := metav1.DeletePropagationBackground
	h.remove("garbage collector", kind, object, client.DeleteOptions{PropagationPolicy: &background})
	return true
}

// hasDependents says that a Job has pods: here nothing else is deleted after its dependents.
func (h *history) hasDependents(uid types.UID) bool {
	for _, pod := range h.api.list("Pod") {
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.UID == uid {
			return true
		}
	}
	return false
}

// endNamespace does one thing that the namespace controller has to do.
func (h *history) endNamespace() bool {
	namespace := h.api.objects["Namespace"][types.NamespacedName{Name: project}]
	if namespace == nil || namespace.GetDeletionTimestamp() == nil {
		return false
	}
	for _, kind := range append([]string{"AgenticSession", "ProjectSettings"}, collected...) {
		for _, object := range h.api.list(kind) {
			if object.GetNamespace() == project && object.GetDeletionTimestamp() == nil {
				background := metav1.DeletePropagationBackground
				h.remove("namespace controller", kind, object, client.DeleteOptions{PropagationPolicy: &background})
				return true
			}
		}
	}
	return false
}

// ofSession says that an object has the name or the label of a session.
func ofSession(object client.Object, name string) bool {
	return strings.HasPrefix(object.GetName(), name+"-run-")
}
