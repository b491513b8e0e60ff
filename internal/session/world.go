// Package session is the functional core of the operator: what a session's phases are, when it
// moves from one to the next and what its status says. It has no client and no clock.
//
// The controller observes a World (world.go), Decide (rules.go) picks the next phase from facts
// about it (facts.go), and Status (status.go, conditions.go) says what to report. What the run's
// Job and pods mean is read in runner.go; the moments at which something is due are in clocks.go.
package session

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// World is all that a decision about one session rests on, read at one moment. A nil pointer
// means that the object was looked for and is not there.
type World struct {
	// Now is the one moment of the pass.
	Now time.Time
	// Session is the session itself. It is read, never changed.
	Session *v1alpha1.AgenticSession
	// Namespace is what matters of the session's namespace.
	Namespace Namespace
	// Policy is what the operator and the project have configured.
	Policy Policy

	// Problems says, a sentence each, why the session cannot be run as it is specified.
	Problems []string
	// Missing says, a sentence each, what the project must hold and does not.
	Missing []string
	// Registry says what keeps the session's runner type from being looked up or used, which is for
	// an administrator to mend; empty when nothing does.
	Registry string
	// Volumeless says why the session needs no volume claim; empty when it does, or when that is
	// not known.
	Volumeless string

	// Awaited says why a run that is to begin cannot have its workspace yet: it belongs to a session
	// that is continued, or another session continues this one; empty when it can.
	Awaited string
	// Unheld says that the workspace of a session that is continued is free, and not yet taken.
	Unheld bool
	// Continued is the session in whose workspace the run goes on; empty for the session's own.
	Continued string
	// Uncontinued says why a session that continues another has a workspace of its own.
	Uncontinued string

	// Job is the Job of the current run, nil when confirmed absent.
	Job *batchv1.Job
	// Pods are the pods of this session, of whatever run.
	Pods []corev1.Pod
	// Leaving is since when it is known, by the clock that Now is of, that a pod is being deleted. One
	// that is not in it may have been for any time.
	Leaving map[types.UID]time.Time
	// Leftovers counts Jobs of this session, or of an earlier session of its name, that are not
	// the current run's.
	Leftovers int
	// Made is the UID of the Job that this process made for the run, for as long as the status may not tell.
	Made types.UID
	// PodRefusal is the newest answer of the API server to the Job controller's attempts to make
	// the pod; empty when there was none, or it is older than the Job.
	PodRefusal string

	// Workspace is the volume claim of the run, nil when absent.
	Workspace *corev1.PersistentVolumeClaim
	// Token is the runner's token Secret, nil when absent.
	Token *Token
	// TokenTrouble says why the token could not be minted or renewed in this pass.
	TokenTrouble string
	// Told is what came of the calls to the runner in this pass.
	Told []CallResult
	// Absent names the other objects of the session that are not in place ("Service session-a").
	Absent []string

	// Again is when something is to be looked at again of which no watch tells; zero when there is
	// no such thing.
	Again time.Time

	// Obstacles is what stood in the way of making the cluster match the phase, in this pass.
	Obstacles []Obstacle
}

// Namespace is what matters of a namespace.
type Namespace struct {
	Managed     bool
	Terminating bool
}

// Policy is configuration that decisions rest on. Zero switches a limit off.
type Policy struct {
	// StartDeadline is how long a runner may take to be ready.
	StartDeadline time.Duration
	// Inactivity is after how long an idle session stops: session over project over operator.
	Inactivity time.Duration
}

// Token is what the metadata of a token Secret says.
type Token struct {
	Name      string
	Run       int64
	Refreshed time.Time
	Expires   time.Time
}

// Obstacle is something that keeps an object of the session from being made.
type Obstacle struct {
	// Object is the kind and name, such as "Service session-a".
	Object string
	// Reason is one of v1alpha1.Reasons.
	Reason string
	// Message is a sentence for people, with the server's answer.
	Message string
	// Final says that waiting does not help.
	Final bool
}

// Phase is the stored phase; a session that nobody looked at yet is Pending.
func (w *World) Phase() v1alpha1.Phase {
	if w.Session.Status.Phase == "" {
		return v1alpha1.PhasePending
	}
	return w.Session.Status.Phase
}
