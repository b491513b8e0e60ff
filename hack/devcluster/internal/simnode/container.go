package simnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// recheck is how often a container that can't start is tried again.
	recheck = time.Second
	// pullFails and pullCycle alternate between a failed pull and the pause before the next one.
	pullFails = time.Second
	pullCycle = 4 * time.Second
	// probeDelay is how long a readiness probe takes to pass.
	probeDelay = 50 * time.Millisecond
	// stopDelay is how long a program takes to end after SIGTERM.
	stopDelay = 20 * time.Millisecond
	// firstRestart and lastRestart bound the pause before a container is started again.
	firstRestart = time.Second
	lastRestart  = 10 * time.Second
)

// container is the life of one container. It waits (neither started nor exit), runs (started, no
// exit) or has ended (exit).
type container struct {
	sidecar bool
	script  Script
	// since is when the script began to count: the start, or the moment the script was replaced.
	since time.Time

	started  time.Time
	exit     *corev1.ContainerStateTerminated
	previous *corev1.ContainerStateTerminated
	restarts int32
	retry    time.Time // when to start again; zero unless restarting
	pulling  time.Time // when the pull first failed

	waiting corev1.ContainerStateWaiting
}

func (c *container) running() bool { return !c.started.IsZero() && c.exit == nil }

// start starts the container or notes why it can't be started now. spec is the latest form: the
// image of a container may be corrected while it waits.
func (c *container) start(pod *corev1.Pod, spec *corev1.Container, w world, now time.Time) (wake time.Time) {
	if now.Before(c.retry) {
		return c.retry
	}
	if why := pullError(spec.Image); why != "" {
		return c.failPull(spec.Image, why, now)
	}
	c.pulling = time.Time{}
	if why := w.missingEnv(pod.Namespace, spec); why != "" {
		c.waiting = corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: why}
		return now.Add(recheck)
	}
	c.started, c.since, c.retry = now, now, time.Time{}
	return time.Time{}
}

func (c *container) failPull(image, why string, now time.Time) (wake time.Time) {
	if c.pulling.IsZero() {
		c.pulling = now
	}
	inCycle := now.Sub(c.pulling) % pullCycle
	if inCycle < pullFails {
		c.waiting = corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "rpc error: code = NotFound desc = " + why}
		return now.Add(pullFails - inCycle)
	}
	c.waiting = corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", image, why)}
	return now.Add(pullCycle - inCycle)
}

// follow ends a running container when its script says so.
func (c *container) follow(now time.Time) (wake time.Time) {
	if !c.running() || c.script.Ending == EndsNever {
		return time.Time{}
	}
	if at := c.since.Add(c.script.Sleep); now.Before(at) {
		return at
	}
	switch c.script.Ending {
	case EndsOOM:
		c.end(exitKilled, "OOMKilled", now)
	default:
		c.end(c.script.ExitCode, reasonOf(c.script.ExitCode), now)
	}
	return time.Time{}
}

// stop ends the container as SIGTERM, and SIGKILL after the grace period, would.
func (c *container) stop(stopping time.Time, grace time.Duration, now time.Time) (wake time.Time) {
	if c.exit != nil {
		return time.Time{}
	}
	if c.started.IsZero() {
		c.exit = &corev1.ContainerStateTerminated{
			ExitCode: exitKilled, Reason: "ContainerStatusUnknown",
			Message: "The container could not be located when the pod was terminated",
		}
		return time.Time{}
	}
	at, code := stopping.Add(min(stopDelay, grace)), int32(exitTerminated)
	if c.script.IgnoreSIGTERM {
		at, code = stopping.Add(grace), exitKilled
	}
	if now.Before(at) {
		return at
	}
	c.end(code, "Error", now)
	return time.Time{}
}

func (c *container) end(code int32, reason string, now time.Time) {
	c.exit = &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason,
		StartedAt: metav1.NewTime(c.started), FinishedAt: metav1.NewTime(now),
	}
}

func reasonOf(code int32) string {
	if code == 0 {
		return "Completed"
	}
	return "Error"
}

// again prepares the next run of a container that ended and whose pod restarts it.
func (c *container) again(name string, now time.Time) {
	pause := min(firstRestart<<min(c.restarts, 8), lastRestart)
	c.previous, c.exit, c.started = c.exit, nil, time.Time{}
	c.restarts++
	c.retry = now.Add(pause)
	c.waiting = corev1.ContainerStateWaiting{
		Reason:  "CrashLoopBackOff",
		Message: fmt.Sprintf("back-off %s restarting failed container=%s", pause, name),
	}
}

// ready tells whether the readiness probe passes, and otherwise when it will.
func (c *container) ready(probed bool, now time.Time) (ready bool, wake time.Time) {
	if !c.running() || c.script.NeverReady {
		return false, time.Time{}
	}
	at := c.started
	if probed {
		at = at.Add(probeDelay)
	}
	if c.script.ReadyAfter > 0 {
		at = c.since.Add(c.script.ReadyAfter)
	}
	return !now.Before(at), at
}

// status is what the pod's status says of the container.
func (c *container) status(spec *corev1.Container, ready bool) corev1.ContainerStatus {
	running := c.running()
	status := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Ready: ready, RestartCount: c.restarts, Started: &running}
	switch {
	case c.exit != nil:
		status.State.Terminated = c.exit
	case running:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started)}
	default:
		waiting := c.waiting
		status.State.Waiting = &waiting
	}
	if c.previous != nil {
		status.LastTerminationState.Terminated = c.previous
	}
	if c.exit != nil || running {
		status.ImageID = "simulated://" + spec.Image
		status.ContainerID = fmt.Sprintf("simulated://%s-%d", spec.Name, c.restarts)
	}
	return status
}
