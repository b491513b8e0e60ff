package session

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// obstacle is what keeps the runner from starting, as far as the Job and its pod show it; nil
// when nothing does.
func (w *World) obstacle() *Obstacle {
	if met := w.met(); met != nil {
		return met
	}
	if w.currentJob() == nil {
		return nil
	}
	pod := w.pod()
	if pod == nil {
		return w.podRefused()
	}
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse && !w.unsettled() {
		// Before, it mostly waits for its volume, or for a place that is about to be free.
		return &Obstacle{Object: "Pod " + pod.Name, Reason: v1alpha1.ReasonUnschedulable, Message: sentence("no node takes the runner pod", scheduled.Message)}
	}
	if found := waiting(pod); found != nil {
		return found
	}
	return w.unsynced()
}

// met is the obstacle that enforcement met in this pass; one that waiting does not remove comes
// first.
func (w *World) met() *Obstacle {
	for i := range w.Obstacles {
		if w.Obstacles[i].Final {
			return &w.Obstacles[i]
		}
	}
	if len(w.Obstacles) > 0 {
		return &w.Obstacles[0]
	}
	return nil
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
		what := "the container " + status.Name + " cannot be set up"
		if strings.Contains(waiting.Message, "runAsNonRoot") {
			what += ", as its image runs as root or names its user without a number: have the image built with a number other than 0 as USER, such as 1001"
		}
		return &Obstacle{Reason: v1alpha1.ReasonContainerConfigError, Message: sentence(what, waiting.Message)}
	case "InvalidImageName":
		return &Obstacle{Reason: v1alpha1.ReasonRunnerUnstartable, Message: sentence("the name of the runner image is not valid", waiting.Message), Final: true}
	case "CreateContainerError", "RunContainerError":
		return &Obstacle{Reason: v1alpha1.ReasonContainerStartError, Message: sentence("the container does not start", waiting.Message)}
	default:
		return nil
	}
}
