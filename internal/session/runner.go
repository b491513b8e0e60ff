package session

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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
	recorded := cmp.Or(types.UID(w.Session.Status.JobUID), w.Made)
	return w.Job != nil && recorded != "" && w.Job.UID != recorded
}

// recorded says that the run has had its Job: the status knows of it, or this process made it and could
// not say so yet, or a pod shows that there was one, whose maker did not live to say so.
func (w *World) recorded() bool {
	ofRun := func(pod corev1.Pod) bool {
		return pod.Labels[v1alpha1.LabelRun] == strconv.FormatInt(w.Session.Status.Run, 10) &&
			pod.Annotations[v1alpha1.AnnotationSessionUID] == string(w.Session.UID)
	}
	if w.Phase() == v1alpha1.PhaseCreating && slices.ContainsFunc(w.Pods, ofRun) {
		return true
	}
	return w.Session.Status.JobUID != "" || w.Made != "" || isTrue(w.Session.Status.Conditions, v1alpha1.ConditionJobCreated) ||
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

// Doubtful says that a run seems to have ended because somebody took its Job or pod away, as the end
// of its namespace does: that is not the run's outcome, and may be seen before the cause.
func (w *World) Doubtful(d Decision) bool {
	switch {
	case d.Rule == "runner-lost":
		return true
	case d.Rule == "runner-failed", d.Rule == "completed":
		pod := w.pod()
		return pod == nil || pod.DeletionTimestamp != nil
	default:
		return false
	}
}

// EndUnseen says that the Job of a run has failed, but not why as far as the pods tell: the cache of
// pods may lag behind that of Jobs.
func (w *World) EndUnseen() bool {
	job := w.currentJob()
	if job == nil || w.Phase().Terminal() {
		return false
	}
	failed, pod := condition(job, batchv1.JobFailed), w.pod()
	return failed != nil && failed.Reason != batchv1.JobReasonDeadlineExceeded && (pod == nil || exit(pod) == nil)
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

// sentence joins what we say with what the cluster said, which may be nothing.
func sentence(ours, theirs string) string {
	if theirs = strings.TrimSpace(theirs); theirs == "" {
		return ours
	}
	return ours + ": " + theirs
}

// RunnerIP is the address of the run's pod; empty while it has none.
func (w *World) RunnerIP() string {
	if pod := w.pod(); pod != nil {
		return pod.Status.PodIP
	}
	return ""
}
