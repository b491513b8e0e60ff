package controllers

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// mostLeaving is how many pods are remembered before those are forgotten that were seen long ago.
	mostLeaving = 5000
	longAgo     = time.Hour
)

// leaving remembers since when this process knows that a pod is being deleted. One that is forgotten is
// waited for anew.
type leaving struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// notice returns since when it is known.
func (l *leaving) notice(uid types.UID, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since, known := l.since[uid]; known {
		return since
	}
	if l.since == nil {
		l.since = map[types.UID]time.Time{}
	}
	if len(l.since) >= mostLeaving {
		for other, since := range l.since {
			if now.Sub(since) > longAgo {
				delete(l.since, other)
			}
		}
	}
	l.since[uid] = now
	return now
}

// addPod adds a pod to what is known of the session.
func (r *AgenticSessionReconciler) addPod(o *seen, pod *corev1.Pod) {
	o.world.Pods = append(o.world.Pods, *pod)
	if pod.DeletionTimestamp == nil {
		return
	}
	if o.world.Leaving == nil {
		o.world.Leaving = map[types.UID]time.Time{}
	}
	o.world.Leaving[pod.UID] = r.leaving.notice(pod.UID, o.world.Now)
}
