package workload

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Parent is the session that this one continues; empty when it continues none. A session that names
// itself, as the platform has it do when it is started again, continues nobody else.
func Parent(s *v1alpha1.AgenticSession) string {
	parent := strings.TrimSpace(s.Annotations[v1alpha1.AnnotationParentSessionID])
	if parent == "" {
		parent = strings.TrimSpace(string(s.Spec.EnvironmentVariables[parentSession]))
	}
	if parent == s.Name {
		return ""
	}
	return parent
}

// The values of annotation v1alpha1.AnnotationParentWorkspace that mean something. Anything else is
// as the platform has it: the workspace of the parent where there is one, else one of its own.
const (
	parentWorkspaceRequired = "true"
	parentWorkspaceRefused  = "false"
)

// NeedsParentWorkspace says that the session is not to begin without the workspace of its parent.
func NeedsParentWorkspace(s *v1alpha1.AgenticSession) bool {
	return s.Annotations[v1alpha1.AnnotationParentWorkspace] == parentWorkspaceRequired
}

// WantsParentWorkspace says that the session is to go on in the workspace of its parent.
func WantsParentWorkspace(s *v1alpha1.AgenticSession) bool {
	return Parent(s) != "" && s.Annotations[v1alpha1.AnnotationParentWorkspace] != parentWorkspaceRefused
}

// Hold is what stands on a volume claim whose owner is not the one that uses it.
type Hold struct {
	// Session and UID are of the session that uses it.
	Session, UID string
	// Run is the run for which it does. With it each run writes another value, so that of two
	// sessions that take the claim at the same time one is refused.
	Run int64
}

// HoldFor is the hold of a run of a session.
func HoldFor(s *v1alpha1.AgenticSession, run int64) Hold {
	return Hold{Session: s.Name, UID: string(s.UID), Run: run}
}

// String is the hold as an annotation.
func (h Hold) String() string { return fmt.Sprintf("%s/%s/%d", h.Session, h.UID, h.Run) }

// Stands says that the session has not ended the run that it took the claim for.
func (h Hold) Stands(s *v1alpha1.AgenticSession) bool {
	switch phase := s.Status.Phase; {
	case h.UID != string(s.UID) || phase.Terminal():
		return false
	case phase == "" || phase == v1alpha1.PhasePending:
		return h.Run == s.Status.Run+1
	default:
		return h.Run == s.Status.Run
	}
}

// HoldOf reads who uses a claim; the zero value when nobody but its owner does.
func HoldOf(claim *corev1.PersistentVolumeClaim) Hold {
	var h Hold
	parts := strings.Split(claim.Annotations[v1alpha1.AnnotationWorkspaceUser], "/")
	if len(parts) != 3 {
		return Hold{}
	}
	if _, err := fmt.Sscanf(parts[2], "%d", &h.Run); err != nil {
		return Hold{}
	}
	h.Session, h.UID = parts[0], parts[1]
	return h
}

// claimName is the volume claim that the run uses.
func (p *Plan) claimName() string {
	if p.Continued != "" {
		return WorkspaceName(p.Continued)
	}
	return WorkspaceName(p.Session.Name)
}

// followWorkspace has the plan use the workspace that the run in progress uses. What cannot be a
// session's name was not written by the operator, and the API server would not even look for it.
func (p *Plan) followWorkspace(job *batchv1.Job) {
	if p.Continued = job.Annotations[v1alpha1.AnnotationContinuedSession]; !validName.MatchString(p.Continued) {
		p.Continued = ""
	}
}

// Mounts says that a pod uses a volume claim and has not ended.
func Mounts(pod *corev1.Pod, claim string) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].PersistentVolumeClaim; source != nil && source.ClaimName == claim {
			return true
		}
	}
	return false
}
