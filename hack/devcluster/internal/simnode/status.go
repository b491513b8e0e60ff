package simnode

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// over tells whether nothing of the pod runs or will run again.
func (l *life) over() bool {
	if l.reason != "" || l.initFailed() {
		return true
	}
	for _, c := range l.main {
		if c.exit == nil {
			return false
		}
	}
	return true
}

func (l *life) initFailed() bool {
	for _, c := range l.init {
		if !c.sidecar && c.exit != nil && c.exit.ExitCode != 0 {
			return true
		}
	}
	return false
}

func (l *life) phase() corev1.PodPhase {
	if l.reason != "" || l.initFailed() {
		return corev1.PodFailed
	}
	if !l.over() {
		for _, c := range l.main {
			if !c.started.IsZero() || c.restarts > 0 {
				return corev1.PodRunning
			}
		}
		return corev1.PodPending
	}
	for _, c := range l.main {
		if c.exit.ExitCode != 0 {
			return corev1.PodFailed
		}
	}
	return corev1.PodSucceeded
}

// status is the whole status of the pod now.
func (l *life) status(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	began := metav1.NewTime(l.began)
	status := corev1.PodStatus{
		Phase: l.phase(), Reason: l.reason, Message: l.message, StartTime: &began, QOSClass: pod.Status.QOSClass,
		HostIP: l.hostIP, HostIPs: []corev1.HostIP{{IP: l.hostIP}},
	}
	if l.anyStarted() {
		status.PodIP, status.PodIPs = l.podIP, []corev1.PodIP{{IP: l.podIP}}
	}
	initialized := true
	for i, c := range l.init {
		spec := &pod.Spec.InitContainers[i]
		done := c.exit != nil && c.exit.ExitCode == 0 || c.sidecar && !c.started.IsZero()
		initialized = initialized && done
		ready := done
		if c.sidecar {
			ready, _ = c.ready(spec.ReadinessProbe != nil, now)
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, c.status(spec, ready))
	}
	allReady := true
	for i, c := range l.main {
		spec := &pod.Spec.Containers[i]
		ready, at := c.ready(spec.ReadinessProbe != nil, now)
		if !ready {
			l.wake(at)
		}
		allReady = allReady && ready
		status.ContainerStatuses = append(status.ContainerStatuses, c.status(spec, ready))
	}
	status.Conditions = l.nextConditions(pod, status.Phase, initialized, allReady, now)
	return status
}

// nextConditions keeps what others wrote and the times of what did not change.
func (l *life) nextConditions(pod *corev1.Pod, phase corev1.PodPhase, initialized, ready bool, now time.Time) []corev1.PodCondition {
	reason := ""
	switch {
	case phase == corev1.PodSucceeded:
		reason, ready = "PodCompleted", false
	case phase == corev1.PodFailed:
		reason, ready = "PodFailed", false
	case !ready:
		reason = "ContainersNotReady"
	}
	own := []corev1.PodCondition{
		condition("PodReadyToStartContainers", l.anyStarted() && !l.over(), ""),
		condition(corev1.PodInitialized, initialized, ""),
		condition(corev1.ContainersReady, ready, reason),
		condition(corev1.PodReady, ready, reason),
	}
	if l.reason == "Evicted" {
		disrupted := condition(corev1.DisruptionTarget, true, "TerminationByKubelet")
		disrupted.Message = l.message
		own = append(own, disrupted)
	}
	var conditions []corev1.PodCondition
	for _, theirs := range pod.Status.Conditions {
		if !slices.ContainsFunc(own, func(c corev1.PodCondition) bool { return c.Type == theirs.Type }) {
			conditions = append(conditions, theirs)
		}
	}
	for _, c := range own {
		c.LastTransitionTime = metav1.NewTime(now)
		for _, before := range l.conditions {
			if before.Type == c.Type && before.Status == c.Status {
				c.LastTransitionTime = before.LastTransitionTime
			}
		}
		conditions = append(conditions, c)
	}
	l.conditions = conditions
	return conditions
}

func condition(kind corev1.PodConditionType, holds bool, reason string) corev1.PodCondition {
	status := corev1.ConditionFalse
	if holds {
		status, reason = corev1.ConditionTrue, ifTrue(kind, reason)
	}
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason}
}

// ifTrue keeps the reason of the one condition that explains itself when it holds.
func ifTrue(kind corev1.PodConditionType, reason string) string {
	if kind == corev1.DisruptionTarget {
		return reason
	}
	return ""
}
