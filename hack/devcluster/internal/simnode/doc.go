// Package simnode is a kubelet without containers: it keeps Node objects ready, and for every pod
// bound to one of them it writes the status that a kubelet would write, following a script.
//
// The script of a pod is read from the value of INITIAL_PROMPT in its first container, one
// directive a line; any other line is ignored (ParseScript). A container without an end in its
// script runs until it is stopped; an init container without one ends at once with exit code 0.
//
//	exit CODE            ends with that exit code
//	crash                ends with 139, as after a segmentation fault
//	oom                  ends with 137, reason OOMKilled
//	evict                the node evicts the pod
//	hang                 runs until it is stopped
//	sleep DURATION       before it ends (250ms, 2s; a bare number is seconds)
//	ready-after DURATION when the readiness probe begins to pass
//	never-ready          the readiness probe never passes
//	ignore-sigterm       a stop lasts the whole grace period and ends with 137
//
// Annotation ScriptAnnotation on the pod, which may be set and changed at any time, takes the place
// of the script and is followed at once. Annotation ManualAnnotation with value "true" on a pod or
// its namespace keeps simnode away from the pod: whoever set it writes the status and deletes the
// pod, with a grace period of 0, himself.
//
// An image whose name has ":nope" or "invalid" in it can't be pulled. A Secret or ConfigMap that a
// pod needs and that is missing holds it up in the way a kubelet would, until it appears.
//
// Restart policies, init containers, sidecars, activeDeadlineSeconds, grace periods and finalizers
// are honoured. Probes other than readiness, resource limits, images, logs and exec are not.
//
// The package also provisions volumes: each claim of StorageClass "standard", which it makes the
// default, gets a PersistentVolume.
//
// Inside, a pod's life (life.go, container.go) is a value advanced by the clock and the pod's
// latest form, free of clients; worker.go moves it and writes the outcome; kubelet.go watches.
package simnode
