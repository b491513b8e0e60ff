package workload

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
)

// RunnerType is the id of the type that a session picks.
func RunnerType(s *v1alpha1.AgenticSession) string {
	if id := string(s.Spec.EnvironmentVariables[runtimes.TypeVariable]); id != "" {
		return id
	}
	return runtimes.DefaultID
}

// record writes on the Job what of its runner type is needed while it runs: the registry may say
// something else by then, and the Job's template is not kept in caches.
func (p *Plan) record(annotations map[string]string) {
	annotations[v1alpha1.AnnotationRunnerType] = p.Runtime.ID
	annotations[v1alpha1.AnnotationRunnerPort] = strconv.Itoa(int(p.Runtime.Port))
	annotations[v1alpha1.AnnotationPersistence] = string(p.persistence())
	if p.Storage.Shared {
		annotations[v1alpha1.AnnotationStorageShared] = "true"
	}
	if p.Continued != "" {
		annotations[v1alpha1.AnnotationContinuedSession] = p.Continued
	}
}

// Follow has the plan be of the run in progress. A Job without the annotations is of a version of
// the operator that had the built-in type alone, which the plan must have as its type before.
func (p *Plan) Follow(job *batchv1.Job) {
	if id := job.Annotations[v1alpha1.AnnotationRunnerType]; id != "" {
		p.Runtime.ID = id
	}
	if port, err := strconv.ParseUint(job.Annotations[v1alpha1.AnnotationRunnerPort], 10, 16); err == nil && port > 0 {
		p.Runtime.Port = int32(port)
	}
	if kind := job.Annotations[v1alpha1.AnnotationPersistence]; kind != "" {
		p.Runtime.Persistence = runtimes.Persistence(kind)
	}
	p.followWorkspace(job)
	p.Storage.Shared = p.persistence() == runtimes.S3 && job.Annotations[v1alpha1.AnnotationStorageShared] == "true"
}

// persistence is that of the type; a volume where none is said.
func (p *Plan) persistence() runtimes.Persistence {
	switch p.Runtime.Persistence {
	case runtimes.None, runtimes.S3:
		return p.Runtime.Persistence
	default:
		return runtimes.Volume
	}
}

// Volumeless says why the session needs no volume claim; empty when it does.
func (p *Plan) Volumeless() string {
	switch p.persistence() {
	case runtimes.None:
		return "the runner type " + p.Runtime.ID + " keeps no workspace over runs, so no volume claim is made"
	case runtimes.S3:
		return "the workspace is kept in S3, so no volume claim is made"
	default:
		return ""
	}
}

// KeptInS3 says that the workspace comes from S3 and goes there.
func (p *Plan) KeptInS3() bool { return p.persistence() == runtimes.S3 }

// UsesVertex says that the runner reaches its models on Vertex AI.
func (p *Plan) UsesVertex() bool {
	return p.Operator.Vertex.Enabled && !p.Runtime.Auth.NoVertex
}

// stateDir is the folder of the framework's state: the session's word counts before the type's.
func (p *Plan) stateDir() string {
	if own := string(p.Session.Spec.EnvironmentVariables[runtimes.StateDirVariable]); runtimes.StateDir(own) {
		return own
	}
	return p.Runtime.StateDir
}
