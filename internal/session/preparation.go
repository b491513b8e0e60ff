package session

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// SyncContainer is the name of the sidecar that copies a workspace to S3; source: the platform.
const SyncContainer = "state-sync"

// steadied is how long the sidecar has to run after it was started again to count as mended. One
// that ends over and over runs for a while each time, and the status should not follow that.
const steadied = time.Minute

// unprepared reads from a failed pod, whose runner never started, that what prepares the workspace
// failed; nil when it did not.
func unprepared(pod *corev1.Pod) *Outcome {
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		ended := status.State.Terminated
		if ended == nil || ended.ExitCode == 0 || status.Name == SyncContainer {
			continue
		}
		reason := v1alpha1.ReasonWorkspaceNotPrepared
		if ended.Reason == "OOMKilled" {
			reason = v1alpha1.ReasonOOMKilled
		}
		return &Outcome{Reason: reason, Message: sentence(fmt.Sprintf("the workspace could not be prepared: the container %s ended with exit code %d before the runner started", status.Name, ended.ExitCode), lastLine(ended.Message))}
	}
	return nil
}

// unsynced is what keeps the workspace from being copied to S3 while its pod is at work; nil when
// nothing does, or when it is not kept there.
func (w *World) unsynced() *Obstacle {
	status := w.syncStatus()
	if status == nil {
		return nil
	}
	ended := lastEnd(status)
	if ended == nil || status.State.Running != nil && due(w.Now, w.steady()) {
		return nil
	}
	told := fmt.Sprintf("the container %s, which copies the workspace to S3, does not stay up: it ended with exit code %d and is started again; until it stays up, what the session writes may be lost with its pod, and the Service does not lead to the runner", status.Name, ended.ExitCode)
	why := lastLine(ended.Message)
	if waits := status.State.Waiting; waits != nil {
		if found := waitingFor(status, waits); found != nil {
			why = found.Message
		}
	}
	return &Obstacle{Object: "Pod " + w.pod().Name, Reason: v1alpha1.ReasonStateSyncFailing, Message: sentence(told, why)}
}

// steady is when the sidecar has run for long enough since it was started again; zero when it was
// not, or does not run.
func (w *World) steady() time.Time {
	status := w.syncStatus()
	if status == nil || status.State.Running == nil || lastEnd(status) == nil {
		return time.Time{}
	}
	return status.State.Running.StartedAt.Add(steadied)
}

// syncStatus is the state of the sidecar in a pod that is at work. When the runner has exited or
// the pod is being deleted the sidecar is meant to end.
func (w *World) syncStatus() *corev1.ContainerStatus {
	pod := w.pod()
	if w.currentJob() == nil || pod == nil || pod.DeletionTimestamp != nil || exit(pod) != nil {
		return nil
	}
	for i := range pod.Status.InitContainerStatuses {
		if pod.Status.InitContainerStatuses[i].Name == SyncContainer {
			return &pod.Status.InitContainerStatuses[i]
		}
	}
	return nil
}

// lastEnd is how a container ended the last time; nil when it never did.
func lastEnd(status *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if status.State.Terminated != nil {
		return status.State.Terminated
	}
	return status.LastTerminationState.Terminated
}

// lastLine is what a program said last, where a container's message is the end of its log.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
