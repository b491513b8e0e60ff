package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AgenticSessionStatus is what the operator observed of a session.
type AgenticSessionStatus struct {
	// The metadata.generation of the spec that this status speaks of.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Where the session is in its life.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"},order=1
	Phase Phase `json:"phase,omitempty"`

	// When the runner of the current run started.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Started",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=2
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the current run ended.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ended",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=3
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the agent or its user last did something. Written by the platform's backend.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last activity",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=4
	LastActivityTime *metav1.Time `json:"lastActivityTime,omitempty"`

	// Who or what stopped the session.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Stopped by",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase:reason"},order=5
	StoppedReason StoppedReason `json:"stoppedReason,omitempty"`

	// Identifier of the conversation in the agent framework, for resuming it.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conversation ID",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	SDKSessionID string `json:"sdkSessionId,omitempty"`

	// How often the agent framework was started again within the session.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Restarts of the agent framework",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	SDKRestartCount int64 `json:"sdkRestartCount,omitempty"`

	// What became of each repository of the spec.
	// +optional
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Repositories in the workspace",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	ReconciledRepos []ReconciledRepo `json:"reconciledRepos,omitempty"`

	// What became of the workflow of the spec.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Workflow in effect",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	ReconciledWorkflow *ReconciledWorkflow `json:"reconciledWorkflow,omitempty"`

	// Number of the current run, counted from 1; a restart makes the next one.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Run",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=6
	Run int64 `json:"run,omitempty"`

	// Whether a runner of the session has started in an earlier run. If so, the current run resumes
	// the conversation and does not carry out the initial prompt again.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ran before",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	RanBefore bool `json:"ranBefore,omitempty"`

	// Name of the Job of the current run.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Job",xDescriptors={"urn:alm:descriptor:io.kubernetes:Job"},order=7
	JobName string `json:"jobName,omitempty"`

	// UID of the Job of the current run. A Job with this name and another UID is not this run.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Job UID",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	JobUID string `json:"jobUID,omitempty"`

	// Name of the runner pod of the current run.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Runner pod",xDescriptors={"urn:alm:descriptor:io.kubernetes:Pod"},order=8
	PodName string `json:"podName,omitempty"`

	// When the current run was asked for: the creation of the session, or the request to start it
	// again.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Queued",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	QueuedTime *metav1.MicroTime `json:"queuedTime,omitempty"`

	// When the objects of the current run began to be made; the start deadline counts from here.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Provisioned",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ProvisionedTime *metav1.Time `json:"provisionedTime,omitempty"`

	// The request (annotation ambient-code.io/desired-phase and its time) that was carried out
	// last and is not yet removed from the annotations.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Handled request",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	HandledRequest string `json:"handledRequest,omitempty"`

	// Observations in detail. Ready is True while the runner is up and reachable; Completed and
	// Failed say how a run ended.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"},order=9
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Dropped says that the definition of sessions in the cluster lacks fields of this status, which
	// were taken from condition Recorded when it was decoded. It is never stored.
	Dropped bool `json:"-"`
}

// ReconciledRepo says what became of a repository in a running session.
type ReconciledRepo struct {
	// URL of the repository.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Repository URL",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	URL string `json:"url"`

	// Branch that was asked for.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Branch asked for",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Branch string `json:"branch,omitempty"`

	// Name of its folder in the workspace.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Folder",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Name string `json:"name,omitempty"`

	// Branches found in the clone.
	// +optional
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Branches",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Branches []string `json:"branches,omitempty"`

	// Branch that is checked out now.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Branch checked out",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	CurrentActiveBranch string `json:"currentActiveBranch,omitempty"`

	// Default branch of the remote.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Default branch",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	DefaultBranch string `json:"defaultBranch,omitempty"`

	// How far it is.
	// +optional
	// +kubebuilder:validation:Enum=Cloning;Ready;Failed
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Repository state",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Status string `json:"status,omitempty"`

	// When it was cloned.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Cloned",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ClonedAt *metav1.Time `json:"clonedAt,omitempty"`
}

// ReconciledWorkflow says what became of the workflow in a running session.
type ReconciledWorkflow struct {
	// Git URL of the workflow.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Workflow URL",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	GitURL string `json:"gitUrl"`

	// Branch that was asked for.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Workflow branch",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Branch string `json:"branch,omitempty"`

	// Folder of the workflow inside the repository.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Workflow folder",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Path string `json:"path,omitempty"`

	// How far it is.
	// +optional
	// +kubebuilder:validation:Enum=Cloning;Active;Failed
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Workflow state",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Status string `json:"status,omitempty"`

	// When it took effect.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Workflow applied",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`
}
