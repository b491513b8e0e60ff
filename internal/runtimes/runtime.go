// Package runtimes says what a runner type is: the image, resources and workspace that a session
// of that type runs with. A session picks its type with the environment variable RUNNER_TYPE.
package runtimes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultID is the runner type of a session that does not pick one; source: the contract.
const DefaultID = "claude-agent-sdk"

// Runtime is a runner type.
type Runtime struct {
	ID    string
	Image string
	// Port is where the runner serves.
	Port int32
	// Env is added to the runner's environment; a session may override it.
	Env       map[string]string
	Resources corev1.ResourceRequirements
	// StateDir is the folder, relative to the workspace, in which the agent framework keeps its
	// state.
	StateDir      string
	WorkspaceSize resource.Quantity
	// GracePeriod is how many seconds a runner has between SIGTERM and SIGKILL.
	GracePeriod int64
}

// Default is the built-in runner type with the given image; source of the figures: the contract.
func Default(image string) Runtime {
	return Runtime{
		ID:    DefaultID,
		Image: image,
		Port:  8001,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("500m"),
				corev1.ResourceMemory: resource.MustParse("512Mi"),
			},
			Limits: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("2"),
				corev1.ResourceMemory: resource.MustParse("8Gi"),
			},
		},
		StateDir:      ".claude",
		WorkspaceSize: resource.MustParse("10Gi"),
		GracePeriod:   60,
	}
}
