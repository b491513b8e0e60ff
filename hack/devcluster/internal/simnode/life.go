package simnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// life is everything that a node remembers of one pod. Only advance changes it.
type life struct {
	began    time.Time
	stopping time.Time // when the deletion was first seen
	podIP    string
	hostIP   string

	scripted string // the annotation that was followed last
	init     []*container
	main     []*container

	// reason and message are set when the pod as a whole failed.
	reason, message string
	// warning is what an Event should tell; empty when nothing is wrong.
	warning warning

	conditions []corev1.PodCondition // of the latest status
	wakes      time.Time             // the earliest moment at which something changes by itself
}

type warning struct{ reason, message string }

func newLife(pod *corev1.Pod, podIP, hostIP string, now time.Time) *life {
	l := &life{began: now, podIP: podIP, hostIP: hostIP}
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		c := &container{script: ParseScript(valueOf(spec, scriptVariable))}
		c.sidecar = spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if !c.sidecar && c.script.Ending == EndsNever {
			c.script.Ending = EndsExit
		}
		l.init = append(l.init, c)
	}
	for i := range pod.Spec.Containers {
		l.main = append(l.main, &container{script: ParseScript(valueOf(&pod.Spec.Containers[i], scriptVariable))})
	}
	return l
}

func valueOf(spec *corev1.Container, variable string) string {
	for _, env := range spec.Env {
		if env.Name == variable {
			return env.Value
		}
	}
	return ""
}

// wake remembers the earliest moment at which something may change by itself.
func (l *life) wake(at time.Time) {
	if !at.IsZero() && (l.wakes.IsZero() || at.Before(l.wakes)) {
		l.wakes = at
	}
}

// advance moves the pod to now. Afterwards, wakes is when to call again if nothing else happens.
func (l *life) advance(pod *corev1.Pod, w world, now time.Time) {
	l.wakes, l.warning = time.Time{}, warning{}
	if l.over() {
		return
	}
	l.readAnnotation(pod, now)
	if l.passedDeadline(pod, now) {
		l.fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", now)
		return
	}
	if pod.DeletionTimestamp != nil && l.stopping.IsZero() {
		l.stopping = now
	}
	if l.stopping.IsZero() {
		l.startContainers(pod, w, now)
	}
	l.followScripts(pod, now)
	if !l.over() && !l.stopping.IsZero() {
		l.stopContainers(pod, now)
	}
	if l.over() {
		l.endSidecars(now)
		l.wakes = time.Time{}
	}
}

func (l *life) readAnnotation(pod *corev1.Pod, now time.Time) {
	text := pod.Annotations[ScriptAnnotation]
	if text == l.scripted || len(l.main) == 0 {
		return
	}
	l.scripted = text
	l.main[0].script = ParseScript(text)
	l.main[0].since = now
}

func (l *life) passedDeadline(pod *corev1.Pod, now time.Time) bool {
	if pod.Spec.ActiveDeadlineSeconds == nil {
		return false
	}
	at := l.began.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	l.wake(at)
	return !now.Before(at)
}

// fail ends the pod as a whole: its containers are killed.
func (l *life) fail(reason, message string, now time.Time) {
	l.reason, l.message = reason, message
	l.warning = warning{reason, message}
	for _, c := range append(append([]*container{}, l.init...), l.main...) {
		c.stop(now, 0, now)
	}
}

// startContainers starts what may start now: init containers one after another, then the others.
func (l *life) startContainers(pod *corev1.Pod, w world, now time.Time) {
	l.setWaiting("ContainerCreating")
	if why := w.missingVolume(pod); why != "" && !l.anyStarted() {
		l.warning = warning{"FailedMount", why}
		l.wake(now.Add(recheck))
		return
	}
	for i, c := range l.init {
		if c.exit != nil {
			continue // a failed one was handled by followScripts
		}
		if c.started.IsZero() {
			l.startOne(c, pod, &pod.Spec.InitContainers[i], w, now)
		}
		if c.started.IsZero() || !c.sidecar {
			return // the next ones wait for its end, those after a sidecar for its start
		}
	}
	for i, c := range l.main {
		if c.started.IsZero() && c.exit == nil {
			l.startOne(c, pod, &pod.Spec.Containers[i], w, now)
		}
	}
}

// setWaiting gives every container that was not tried yet its first reason.
func (l *life) setWaiting(reason string) {
	if len(l.init) > 0 {
		reason = "PodInitializing"
	}
	for _, c := range append(append([]*container{}, l.init...), l.main...) {
		if c.waiting.Reason == "" {
			c.waiting.Reason = reason
		}
	}
}

func (l *life) startOne(c *container, pod *corev1.Pod, spec *corev1.Container, w world, now time.Time) {
	l.wake(c.start(pod, spec, w, now))
	switch c.waiting.Reason {
	case "CreateContainerConfigError":
		l.warn(c, "Failed", "Error: "+c.waiting.Message)
	case "ErrImagePull":
		l.warn(c, "Failed", fmt.Sprintf("Failed to pull image %q: %s", spec.Image, c.waiting.Message))
	case "ImagePullBackOff":
		l.warn(c, "BackOff", fmt.Sprintf("Back-off pulling image %q", spec.Image))
	}
}

func (l *life) warn(c *container, reason, message string) {
	if c.started.IsZero() {
		l.warning = warning{reason, message}
	}
}

// followScripts ends containers whose time has come and lets the pod restart or fail with them.
func (l *life) followScripts(pod *corev1.Pod, now time.Time) {
	for i, c := range l.init {
		if c.exit != nil {
			continue
		}
		l.wake(c.follow(now))
		switch {
		case c.exit == nil:
		case !c.sidecar && c.exit.ExitCode == 0:
			l.wake(now) // the next container can start
		case c.sidecar || pod.Spec.RestartPolicy != corev1.RestartPolicyNever:
			l.restart(c, pod.Spec.InitContainers[i].Name, now)
		}
	}
	for i, c := range l.main {
		evict := c.script.Ending == EndsEvicted
		l.wake(c.follow(now))
		if c.exit == nil {
			continue
		}
		if evict && c.exit.ExitCode == exitKilled {
			l.fail("Evicted", "The node was low on resource: memory.", now)
			return
		}
		if l.restarts(pod.Spec.RestartPolicy, c) {
			l.restart(c, pod.Spec.Containers[i].Name, now)
		}
	}
	l.endCompanions(now)
}

func (l *life) restarts(policy corev1.RestartPolicy, c *container) bool {
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && c.exit.ExitCode != 0
}

func (l *life) restart(c *container, name string, now time.Time) {
	if l.stopping.IsZero() {
		c.again(name, now)
		l.wake(c.retry)
	}
}

// endCompanions ends the containers beside the first one when that has ended, unless they have a
// script of their own: without containers nobody would tell them.
func (l *life) endCompanions(now time.Time) {
	if len(l.main) == 0 || l.main[0].exit == nil {
		return
	}
	for _, c := range l.main[1:] {
		if c.running() && c.script.Ending == EndsNever {
			c.end(0, "Completed", now)
		}
	}
}

func (l *life) stopContainers(pod *corev1.Pod, now time.Time) {
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	for _, c := range append(append([]*container{}, l.main...), l.init...) {
		l.wake(c.stop(l.stopping, grace, now))
	}
}

func (l *life) endSidecars(now time.Time) {
	for _, c := range l.init {
		if c.sidecar && c.running() {
			c.end(exitTerminated, "Error", now)
		}
	}
}

func (l *life) anyStarted() bool {
	for _, c := range append(append([]*container{}, l.init...), l.main...) {
		if !c.started.IsZero() || c.restarts > 0 {
			return true
		}
	}
	return false
}
