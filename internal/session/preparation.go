package session

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// unprepared reads from a failed pod, whose runner never started, that what prepares the workspace
// failed; nil when it did not.
func unprepared(pod *corev1.Pod) *Outcome {
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		ended := status.State.Terminated
		if ended == nil || ended.ExitCode == 0 {
			continue
		}
		reason := v1alpha1.ReasonRunnerFailed
		if ended.Reason == "OOMKilled" {
			reason = v1alpha1.ReasonOOMKilled
		}
		return &Outcome{Reason: reason, Message: sentence(fmt.Sprintf("the workspace could not be prepared: the container %s ended with exit code %d before the runner started", status.Name, ended.ExitCode), ended.Message)}
	}
	return nil
}
