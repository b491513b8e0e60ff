// Package runtimes says what a runner type is: the image, resources and workspace that a session
// of that type runs with. A session picks its type with the environment variable RUNNER_TYPE.
//
// The types of a cluster are listed in one ConfigMap, the registry (registry.go). It is written by
// people, so each of its entries is read field by field (entry.go, fields.go) and everything that
// is wrong is said at once; an entry that cannot be used does not spoil the others. Without a
// registry there is one built-in type. The package is pure: the text goes in, a Registry comes out.
package runtimes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultID is the runner type of a session that does not pick one; source: the contract.
const DefaultID = "claude-agent-sdk"

// TypeVariable is the environment variable with which a session picks its type.
const TypeVariable = "RUNNER_TYPE"

// StateDirVariable is the environment variable with which a session may move its state folder.
const StateDirVariable = "RUNNER_STATE_DIR"

// Persistence says what keeps a session's workspace over its runs.
type Persistence string

// The kinds of persistence; source: the contract.
const (
	// None keeps nothing: the workspace ends with its pod.
	None Persistence = "none"
	// Volume keeps the workspace on a volume of its own.
	Volume Persistence = "pvc"
	// S3 brings the workspace from an S3 bucket and copies it back while the runner works.
	S3 Persistence = "s3"
)

// Runtime is a runner type.
type Runtime struct {
	ID    string
	Image string
	// Port is where the runner serves.
	Port int32
	// Env is added to the runner's environment, where nothing else sets the name.
	Env       map[string]string
	Resources corev1.ResourceRequirements
	// StateDir is the folder, relative to the workspace, in which the agent framework keeps its
	// state.
	StateDir      string
	Persistence   Persistence
	WorkspaceSize resource.Quantity
	// GracePeriod is how many seconds a runner has between SIGTERM and SIGKILL.
	GracePeriod int64
	// StateSyncImage is the image of the containers that fill a workspace and copy it to S3.
	StateSyncImage string
	Seed           Seed
	Auth           Auth
}

// Seed says what is put into a workspace before the runner starts.
type Seed struct {
	// CloneRepos has the session's repositories and workflow cloned.
	CloneRepos bool
	// HydrateState has what earlier runs left in S3 brought back.
	HydrateState bool
}

// Auth says what a runner needs to reach its model.
type Auth struct {
	// Keys are the keys that the project's Secrets must have.
	Keys []string
	// AnyKey says that one of Keys is enough.
	AnyKey bool
	// NoVertex says that the runner cannot reach models on Vertex AI.
	NoVertex bool
}

// Defaults are what the operator's configuration gives to types.
type Defaults struct {
	// RunnerImage is the image of the built-in type.
	RunnerImage string
	// StateSyncImage is that of types that name none.
	StateSyncImage string
}

// Default is the built-in runner type with the given image; source of the figures: the contract.
func Default(image string) Runtime {
	return Runtime{
		ID:            DefaultID,
		Image:         image,
		Port:          defaultPort,
		Resources:     defaultResources(),
		StateDir:      defaultStateDir,
		Persistence:   Volume,
		WorkspaceSize: resource.MustParse(defaultWorkspaceSize),
		GracePeriod:   defaultGracePeriod,
	}
}

const (
	defaultPort          = 8001
	defaultStateDir      = ".claude"
	defaultWorkspaceSize = "10Gi"
	defaultGracePeriod   = 60
)

func defaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("500m"),
			corev1.ResourceMemory: resource.MustParse("512Mi"),
		},
		Limits: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("2"),
			corev1.ResourceMemory: resource.MustParse("8Gi"),
		},
	}
}
