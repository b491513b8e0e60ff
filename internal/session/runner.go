package session

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// RunnerContainer is the name of the runner's container; source: the contract.
const RunnerContainer = "ambient-code-runner"

// Outcome is how a run ended.
type Outcome struct {
	Succeeded bool
	// Reason is one of v1alpha1.Reasons.
	Reason  string
	Message string
}

// outcome reads how the current run ended; nil while it has not, or while it is not known.
//
// The Job's verdict counts. A runner container that exited counts before it, because another
// container may keep the pod alive, but not on a pod that is being deleted: then the exit is the
// consequence of something (a deadline, a stop, a drain) that the Job's verdict will name.
func (w *World) outcome() *Outcome {
	job := w.currentJob()
	if job == nil {
		return nil
	}
	if condition(job, batchv1.JobComplete) != nil {
		return &Outcome{Succeeded: true, Reason: v1alpha1.ReasonRunnerCompleted, Message: "the runner ended with success"}
	}
	pod := w.pod()
	if failed := condition(job, batchv1.JobFailed); failed != nil {
		return failure(failed, pod)
	}
	if condition(job, batchv1.JobFailureTarget) != nil || pod == nil || pod.DeletionTimestamp != nil {
		return nil
	}
	return exit(pod)
}

// currentJob is the Job of the run, unless it is being deleted or is another Job of that name:
// what those report is not the run's result.
func (w *World) currentJob() *batchv1.Job {
	if w.Job == nil || w.Job.DeletionTimestamp != nil || w.replaced() {
		return nil
	}
	return w.Job
}

// replaced says that the Job of the run's name is not the one that was recorded.
func (w *World) replaced() bool {
	recorded := w.Session.Status.JobUID
	return w.Job != nil && recorded != "" && string(w.Job.UID) != recorded
}

// recorded says that the status knows of the run's Job.
func (w *World) recorded() bool {
	return w.Session.Status.JobUID != "" || isTrue(w.Session.Status.Conditions, v1alpha1.ConditionJobCreated) ||
		w.Phase() == v1alpha1.PhaseRunning
}

// pod is the newest pod of the current Job.
func (w *World) pod() *corev1.Pod {
	if w.Job == nil {
		return nil
	}
	var newest *corev1.Pod
	for i := range w.Pods {
		pod := &w.Pods[i]
		if !controlledBy(pod, w.Job) {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp) {
			newest = pod
		}
	}
	return newest
}

func controlledBy(pod *corev1.Pod, job *batchv1.Job) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller && owner.UID == job.UID {
			return true
		}
	}
	return false
}

func condition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// Finished says whether the Job controller has closed the Job.
func Finished(job *batchv1.Job) bool {
	return condition(job, batchv1.JobComplete) != nil || condition(job, batchv1.JobFailed) != nil
}

func failure(failed *batchv1.JobCondition, pod *corev1.Pod) *Outcome {
	if failed.Reason == batchv1.JobReasonDeadlineExceeded {
		return &Outcome{Reason: v1alpha1.ReasonTimeout, Message: "the run reached spec.timeout and was ended; raise spec.timeout, or set it to 0 for no limit, and start the session again"}
	}
	if pod != nil {
		if ended := exit(pod); ended != nil && !ended.Succeeded {
			return ended
		}
	}
	return &Outcome{Reason: v1alpha1.ReasonRunnerFailed, Message: "the runner pod ended without a result, as when it is deleted or its node is lost: " + failed.Message}
}

// exit reads the end of the runner from its pod; nil while it has not ended.
func exit(pod *corev1.Pod) *Outcome {
	if pod.Status.Reason == "Evicted" || pod.Status.Reason == "Preempting" {
		return &Outcome{Reason: v1alpha1.ReasonEvicted, Message: sentence("the node removed the runner pod", pod.Status.Message)}
	}
	state := runnerState(pod)
	if state == nil || state.Terminated == nil {
		if pod.Status.Phase == corev1.PodFailed {
			if cause := unprepared(pod); cause != nil {
				return cause
			}
			return &Outcome{Reason: v1alpha1.ReasonRunnerFailed, Message: sentence("the runner pod failed", strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message))}
		}
		return nil
	}
	ended := state.Terminated
	switch {
	case ended.ExitCode == 0:
		return &Outcome{Succeeded: true, Reason: v1alpha1.ReasonRunnerCompleted, Message: "the runner ended with success"}
	case ended.Reason == "OOMKilled":
		return &Outcome{Reason: v1alpha1.ReasonOOMKilled, Message: fmt.Sprintf("the runner used more memory than its limit (exit code %d); raise the memory limit of its runner type and start the session again", ended.ExitCode)}
	default:
		return &Outcome{Reason: v1alpha1.ReasonRunnerFailed, Message: sentence(fmt.Sprintf("the runner ended with exit code %d (%s)", ended.ExitCode, exitMeaning(ended.ExitCode)), ended.Message)}
	}
}

// exitMeaning says what an exit code of the runner stands for; source: the contract.
func exitMeaning(code int32) string {
	switch code {
	case 1:
		return "the agent framework reported an error; see the log of the pod"
	case 2:
		return "a prerequisite is missing; see the log of the pod"
	case 143:
		return "it was told to end"
	default:
		if code > 128 {
			return fmt.Sprintf("killed by signal %d", code-128)
		}
		return "see the log of the pod"
	}
}

func runnerState(pod *corev1.Pod) *corev1.ContainerState {
	if status := runnerStatus(pod); status != nil {
		return &status.State
	}
	return nil
}

func runnerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == RunnerContainer {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// exited says that the runner's container has ended, whatever the Job says yet.
func (w *World) exited() bool {
	pod := w.pod()
	return pod != nil && exit(pod) != nil
}

// ready says that the runner answers its readiness probe.
func (w *World) ready() bool {
	pod := w.pod()
	if w.currentJob() == nil || pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	status := runnerStatus(pod)
	return status != nil && status.Ready && status.State.Running != nil
}

// obstacle is what keeps the runner from starting, as far as the Job and its pod show it; nil
// when nothing does.
func (w *World) obstacle() *Obstacle {
	if len(w.Obstacles) > 0 {
		return &w.Obstacles[0]
	}
	if w.currentJob() == nil {
		return nil
	}
	pod := w.pod()
	if pod == nil {
		return w.podRefused()
	}
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return &Obstacle{Object: "Pod " + pod.Name, Reason: v1alpha1.ReasonUnschedulable, Message: sentence("no node takes the runner pod", scheduled.Message)}
	}
	return waiting(pod)
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// generatedName is the name of a pod that the Job controller tried to make; it changes with each
// attempt and would change the message with it.
var generatedName = regexp.MustCompile(`pods? "[^"]*" is`)

func (w *World) podRefused() *Obstacle {
	if w.PodRefusal == "" {
		return nil
	}
	reason := v1alpha1.ReasonPodCreateForbidden
	if strings.Contains(w.PodRefusal, "exceeded quota") || strings.Contains(w.PodRefusal, "failed quota") {
		reason = v1alpha1.ReasonQuotaExceeded
	}
	answer := generatedName.ReplaceAllString(strings.TrimPrefix(w.PodRefusal, "Error creating: "), "the pod is")
	return &Obstacle{Object: "Job " + w.Job.Name, Reason: reason, Message: sentence("the runner pod is refused", answer)}
}

// waiting reads why a container of the pod has not started. Only reasons that name a trouble
// count; ContainerCreating and PodInitializing are the ordinary way.
func waiting(pod *corev1.Pod) *Obstacle {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if w := statuses[i].State.Waiting; w != nil {
				if found := waitingFor(&statuses[i], w); found != nil {
					found.Object = "Pod " + pod.Name
					return found
				}
			}
		}
	}
	return nil
}

var pullPrefix = regexp.MustCompile(`^Back-off pulling image "[^"]*":? ?(ErrImagePull: )?`)

func waitingFor(status *corev1.ContainerStatus, waiting *corev1.ContainerStateWaiting) *Obstacle {
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable":
		// A kubelet alternates between two reasons for one trouble; said in one way, the status
		// does not alternate with it.
		return &Obstacle{Reason: v1alpha1.ReasonImagePullBackOff, Message: sentence(fmt.Sprintf("the image %q cannot be pulled", status.Image), pullPrefix.ReplaceAllString(waiting.Message, ""))}
	case "CreateContainerConfigError":
		return &Obstacle{Reason: v1alpha1.ReasonContainerConfigError, Message: sentence("the container "+status.Name+" cannot be set up", waiting.Message)}
	case "InvalidImageName":
		return &Obstacle{Reason: v1alpha1.ReasonRunnerUnstartable, Message: sentence("the name of the runner image is not valid", waiting.Message), Final: true}
	case "CreateContainerError", "RunContainerError":
		return &Obstacle{Reason: v1alpha1.ReasonWaiting, Message: sentence("the container does not start", waiting.Message)}
	default:
		return nil
	}
}

// sentence joins what we say with what the cluster said, which may be nothing.
func sentence(ours, theirs string) string {
	if theirs = strings.TrimSpace(theirs); theirs == "" {
		return ours
	}
	return ours + ": " + theirs
}

// PodCreation is how long the Job controller took to make the run's pod.
func (w *World) PodCreation() (time.Duration, bool) {
	pod := w.pod()
	if pod == nil || w.Job == nil {
		return 0, false
	}
	return pod.CreationTimestamp.Sub(w.Job.CreationTimestamp.Time), true
}
