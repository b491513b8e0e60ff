package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AgenticSessionStatus is what the operator observed of a session.
type AgenticSessionStatus struct {
	// The metadata.generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Where the session is in its life.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// When the runner of the current run started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the current run ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the agent or its user last did something. Written by the platform's backend.
	// +optional
	LastActivityTime *metav1.Time `json:"lastActivityTime,omitempty"`

	// Who or what stopped the session.
	// +optional
	StoppedReason StoppedReason `json:"stoppedReason,omitempty"`

	// Identifier of the conversation in the agent framework, for resuming it.
	// +optional
	SDKSessionID string `json:"sdkSessionId,omitempty"`

	// How often the agent framework was started again within the session.
	// +optional
	SDKRestartCount int64 `json:"sdkRestartCount,omitempty"`

	// What became of each repository of the spec.
	// +optional
	// +listType=atomic
	ReconciledRepos []ReconciledRepo `json:"reconciledRepos,omitempty"`

	// What became of the workflow of the spec.
	// +optional
	ReconciledWorkflow *ReconciledWorkflow `json:"reconciledWorkflow,omitempty"`

	// Number of the current run, counted from 1; a restart makes the next one.
	// +optional
	Run int64 `json:"run,omitempty"`

	// Name of the Job of the current run.
	// +optional
	JobName string `json:"jobName,omitempty"`

	// UID of the Job of the current run. A Job with this name and another UID is not this run.
	// +optional
	JobUID string `json:"jobUID,omitempty"`

	// Name of the runner pod of the current run.
	// +optional
	PodName string `json:"podName,omitempty"`

	// When the current run was asked for: the creation of the session, or the request to start it
	// again.
	// +optional
	QueuedTime *metav1.MicroTime `json:"queuedTime,omitempty"`

	// When the objects of the current run began to be made; the start deadline counts from here.
	// +optional
	ProvisionedTime *metav1.Time `json:"provisionedTime,omitempty"`

	// The request (annotation ambient-code.io/desired-phase and its time) that was carried out
	// last and is not yet removed from the annotations.
	// +optional
	HandledRequest string `json:"handledRequest,omitempty"`

	// Observations in detail. Ready is True while the runner is up and reachable; Completed and
	// Failed say how a run ended.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReconciledRepo says what became of a repository in a running session.
type ReconciledRepo struct {
	// URL of the repository.
	// +required
	URL string `json:"url"`

	// Branch that was asked for.
	// +optional
	Branch string `json:"branch,omitempty"`

	// Name of its folder in the workspace.
	// +optional
	Name string `json:"name,omitempty"`

	// Branches found in the clone.
	// +optional
	// +listType=atomic
	Branches []string `json:"branches,omitempty"`

	// Branch that is checked out now.
	// +optional
	CurrentActiveBranch string `json:"currentActiveBranch,omitempty"`

	// Default branch of the remote.
	// +optional
	DefaultBranch string `json:"defaultBranch,omitempty"`

	// How far it is.
	// +optional
	// +kubebuilder:validation:Enum=Cloning;Ready;Failed
	Status string `json:"status,omitempty"`

	// When it was cloned.
	// +optional
	ClonedAt *metav1.Time `json:"clonedAt,omitempty"`
}

// ReconciledWorkflow says what became of the workflow in a running session.
type ReconciledWorkflow struct {
	// Git URL of the workflow.
	// +required
	GitURL string `json:"gitUrl"`

	// Branch that was asked for.
	// +optional
	Branch string `json:"branch,omitempty"`

	// Folder of the workflow inside the repository.
	// +optional
	Path string `json:"path,omitempty"`

	// How far it is.
	// +optional
	// +kubebuilder:validation:Enum=Cloning;Active;Failed
	Status string `json:"status,omitempty"`

	// When it took effect.
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`
}
