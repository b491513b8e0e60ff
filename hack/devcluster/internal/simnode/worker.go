package simnode

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const retryWrite = 200 * time.Millisecond

// worker moves one pod.
type worker struct {
	kubelet *Kubelet
	pod     atomic.Pointer[corev1.Pod] // the latest form
	changed chan struct{}              // something that matters changed
	cancel  context.CancelFunc

	life    *life
	written corev1.PodStatus
	warned  warning
	deleted bool
}

// poke lets the worker look again; it never waits.
func (w *worker) poke() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *worker) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		case <-timer.C:
		}
		timer.Stop()
		pause, wait := w.step(ctx)
		if wait {
			timer.Reset(pause)
		}
	}
}

// step brings the pod to the present and writes what is new. It says how long to wait for the next
// step, unless only a change can bring one.
func (w *worker) step(ctx context.Context) (pause time.Duration, wait bool) {
	pod := w.pod.Load()
	if w.deleted || w.kubelet.manual(pod) {
		return 0, false
	}
	if w.life == nil {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return 0, false
		}
		w.life = newLife(pod, w.kubelet.nextPodIP(), w.kubelet.hostIP, time.Now())
	}
	now := time.Now()
	w.life.advance(pod, w.kubelet.world, now)
	for !w.life.wakes.IsZero() && !w.life.wakes.After(now) {
		now = time.Now()
		w.life.advance(pod, w.kubelet.world, now)
	}
	if err := w.report(ctx, pod, now); err != nil {
		if ctx.Err() != nil {
			return 0, false // the pod is gone, or the node stops
		}
		w.kubelet.log("writing the status of pod", pod, err)
		return retryWrite, true
	}
	if w.life.over() && pod.DeletionTimestamp != nil {
		if err := w.remove(ctx, pod); err != nil {
			if ctx.Err() != nil {
				return 0, false
			}
			w.kubelet.log("removing pod", pod, err)
			return retryWrite, true
		}
		w.deleted = true
	}
	return time.Until(w.life.wakes), !w.life.wakes.IsZero()
}

// report writes the status and the warning if they differ from those written last.
func (w *worker) report(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	status := w.life.status(pod, now)
	if apiequality.Semantic.DeepEqual(status, w.written) {
		return nil
	}
	patch, err := statusPatch(pod.UID, status)
	if err != nil {
		return err
	}
	_, err = w.kubelet.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !gone(err) {
		return err
	}
	w.written = status
	if warned := w.life.warning; warned != w.warned {
		w.warned = warned
		if warned.reason != "" {
			return w.kubelet.warn(ctx, pod, warned)
		}
	}
	return nil
}

// statusPatch replaces the lists of the status and names the pod it is meant for.
func statusPatch(uid types.UID, status corev1.PodStatus) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"status":   status,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a pod's status: %w", err)
	}
	return patch, nil
}

// remove tells the API server that the node is done with the pod. Finalizers may still hold it.
func (w *worker) remove(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	err := w.kubelet.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	if gone(err) {
		return nil
	}
	return err
}

// gone tells that the pod, or the pod of that UID, does not exist any more.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
