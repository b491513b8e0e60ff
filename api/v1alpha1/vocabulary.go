package v1alpha1

// Phase is where a session is in its life. The rules that move a session from one phase to the
// next are in internal/session.
//
// +kubebuilder:validation:Enum=Pending;Creating;Running;Stopping;Stopped;Completed;Failed
type Phase string

// The phases of a session.
const (
	// PhasePending waits for what a run needs; no Job exists.
	PhasePending Phase = "Pending"
	// PhaseCreating has its objects and its Job, and waits for the runner to be ready.
	PhaseCreating Phase = "Creating"
	// PhaseRunning has a runner that answers.
	PhaseRunning Phase = "Running"
	// PhaseStopping waits for the Job and its pods to be gone.
	PhaseStopping Phase = "Stopping"
	// PhaseStopped ended on request or for inactivity; can be started again.
	PhaseStopped Phase = "Stopped"
	// PhaseCompleted ended by itself with success; can be started again.
	PhaseCompleted Phase = "Completed"
	// PhaseFailed ended without success; can be started again.
	PhaseFailed Phase = "Failed"
)

// PhaseInfo describes a phase for tests and generated documentation.
type PhaseInfo struct {
	Phase    Phase
	Terminal bool
	// Job says what must be in the cluster of the run's Job.
	Job string
	// Objects says what must be in the cluster of the session's other objects.
	Objects string
	Meaning string
}

// Phases lists every phase, in the order of a session's life.
var Phases = []PhaseInfo{
	{PhasePending, false, "none", "as found", "waits for what a run needs"},
	{PhaseCreating, false, "present", "present", "the objects are made; the runner is not ready yet"},
	{PhaseRunning, false, "present", "present", "the runner answers"},
	{PhaseStopping, false, "none: being removed with its pods", "kept", "the runner is being ended"},
	{PhaseStopped, true, "none", "workspace kept, token and identity gone", "ended on request or for inactivity"},
	{PhaseCompleted, true, "the finished one kept for its logs, under a TTL", "workspace kept, token and identity gone", "the runner ended with success"},
	{PhaseFailed, true, "the finished one kept for its logs, under a TTL; an unfinished one removed", "workspace kept, token and identity gone", "the run ended without success"},
}

// Terminal says whether a phase is left only by a restart.
func (p Phase) Terminal() bool {
	for _, info := range Phases {
		if info.Phase == p {
			return info.Terminal
		}
	}
	return false
}

// StoppedReason says who or what stopped a session.
//
// +kubebuilder:validation:Enum=user;inactivity
type StoppedReason string

// The reasons of a stop.
const (
	StoppedByUser       StoppedReason = "user"
	StoppedByInactivity StoppedReason = "inactivity"
)

// Condition types of a session.
const (
	ConditionReady         = "Ready"
	ConditionPVCReady      = "PVCReady"
	ConditionSecretsReady  = "SecretsReady"
	ConditionJobCreated    = "JobCreated"
	ConditionPodScheduled  = "PodScheduled"
	ConditionRunnerStarted = "RunnerStarted"
	ConditionCompleted     = "Completed"
	ConditionFailed        = "Failed"
	ConditionReconciled    = "Reconciled"

	ConditionReposReconciled    = "ReposReconciled"
	ConditionWorkflowReconciled = "WorkflowReconciled"

	ConditionRecorded = "Recorded"
)

// Word is a machine-readable word with its meaning, for generated documentation.
type Word struct {
	Word    string
	Meaning string
}

// ConditionTypes lists the condition types of a session; all of them are set on every session.
var ConditionTypes = []Word{
	{ConditionReady, "the runner is up and reachable, and every object of the session is in place"},
	{ConditionPVCReady, "the workspace volume claim exists, or the runner type needs none; a claim that waits for its first pod counts"},
	{ConditionSecretsReady, "the Secrets that the runner needs exist, its token included"},
	{ConditionJobCreated, "the Job of the current run exists"},
	{ConditionPodScheduled, "the runner pod has a node"},
	{ConditionRunnerStarted, "the runner container of the current run has started"},
	{ConditionCompleted, "the current run ended with success"},
	{ConditionFailed, "the current run ended without success"},
	{ConditionReposReconciled, "the runner has the repositories of the spec"},
	{ConditionWorkflowReconciled, "the runner has the workflow of the spec"},
	{ConditionReconciled, "the run in progress is of the spec as it is now; False while the runner has not taken over an edit, or after one that waits for the next start"},
	{ConditionRecorded, "what the operator remembers of the session is in the status; False while another definition of sessions in the cluster drops fields of it, which are then in the message alone"},
}

// Reasons of phase changes and of conditions of a session.
const (
	ReasonProvisioning          = "Provisioning"
	ReasonQueued                = "Queued"
	ReasonRunnerStarted         = "RunnerStarted"
	ReasonRunnerCompleted       = "RunnerCompleted"
	ReasonRunnerFailed          = "RunnerFailed"
	ReasonOOMKilled             = "OOMKilled"
	ReasonEvicted               = "Evicted"
	ReasonTimeout               = "Timeout"
	ReasonRunnerLost            = "RunnerLost"
	ReasonRunnerUnstartable     = "RunnerUnstartable"
	ReasonStartTimeout          = "StartTimeout"
	ReasonStoppedByUser         = "StoppedByUser"
	ReasonInactivityTimeout     = "InactivityTimeout"
	ReasonInvalidSpec           = "InvalidSpec"
	ReasonNameCollision         = "NameCollision"
	ReasonPrerequisiteMissing   = "PrerequisiteMissing"
	ReasonWaitingForPreviousRun = "WaitingForPreviousRun"
	ReasonNamespaceNotManaged   = "NamespaceNotManaged"
	ReasonNamespaceTerminating  = "NamespaceTerminating"
	ReasonRestarting            = "Restarting"
	ReasonQuotaExceeded         = "QuotaExceeded"
	ReasonPodCreateForbidden    = "PodCreateForbidden"
	ReasonCreateRefused         = "CreateRefused"
	ReasonUnschedulable         = "Unschedulable"
	ReasonImagePullBackOff      = "ImagePullBackOff"
	ReasonContainerConfigError  = "CreateContainerConfigError"
	ReasonContainerStartError   = "ContainerStartError"
	ReasonBeingDeleted          = "BeingDeleted"
	ReasonWaiting               = "Waiting"
	ReasonPresent               = "Present"
	ReasonMissing               = "Missing"
	ReasonReleased              = "Released"
	ReasonNotEnded              = "NotEnded"
	ReasonVolumeLost            = "VolumeLost"
	ReasonSpecChanged           = "SpecChanged"
	ReasonRunnerCallFailed      = "RunnerCallFailed"
	ReasonTokenNotRenewed       = "TokenNotRenewed"
	ReasonForcedStop            = "ForcedStop"
	ReasonUnknownRequest        = "UnknownRequest"
	ReasonRegistryInvalid       = "RegistryInvalid"
	ReasonNotNeeded             = "NotNeeded"
	ReasonWorkspaceNotPrepared  = "WorkspaceNotPrepared"
	ReasonStateSyncFailing      = "StateSyncFailing"
	ReasonOutcomeUnknown        = "OutcomeUnknown"
	ReasonVariableIgnored       = "VariableIgnored"
	ReasonWorkspaceInUse        = "WorkspaceInUse"
	ReasonContinued             = "Continued"
	ReasonFieldsDropped         = "FieldsDropped"
	ReasonRestored              = "Restored"
)

// Reasons lists every reason with its meaning.
var Reasons = []Word{
	{ReasonProvisioning, "the objects of the run are being made"},
	{ReasonQueued, "the session has not been looked at yet"},
	{ReasonRunnerStarted, "the runner is up"},
	{ReasonRunnerCompleted, "the runner ended with exit code 0"},
	{ReasonRunnerFailed, "the runner ended with another exit code; the message has it"},
	{ReasonOOMKilled, "the runner used more memory than its limit; raise the limit of its runner type"},
	{ReasonEvicted, "the node removed the pod, for lack of disk or memory, or for a more important pod"},
	{ReasonTimeout, "the run reached spec.timeout"},
	{ReasonRunnerLost, "the Job of the run vanished before its outcome was known; the work is not run again unless asked"},
	{ReasonRunnerUnstartable, "the runner can never start as it is specified, for instance for an invalid image name"},
	{ReasonStartTimeout, "the runner was not ready within the start deadline; the message has the last cause"},
	{ReasonStoppedByUser, "a stop was asked for"},
	{ReasonInactivityTimeout, "nothing happened for the inactivity timeout"},
	{ReasonInvalidSpec, "the spec or the name cannot be run; the message says what to change"},
	{ReasonNameCollision, "an object that is not the session's has the name of one of its objects; it is left alone"},
	{ReasonPrerequisiteMissing, "something the project must hold is missing, such as the runner Secret; the session goes on when it appears"},
	{ReasonRegistryInvalid, "the registry of runner types cannot be read, or the entry of the session's type cannot be used; the session goes on when it is mended"},
	{ReasonWaitingForPreviousRun, "the Job or a pod of the previous run is not gone yet"},
	{ReasonNamespaceNotManaged, "the namespace does not have the label ambient-code.io/managed=true; no run is started"},
	{ReasonNamespaceTerminating, "the namespace is being deleted; no run is started"},
	{ReasonRestarting, "a new run was asked for"},
	{ReasonQuotaExceeded, "a ResourceQuota of the namespace refuses an object; goes on when it allows it"},
	{ReasonPodCreateForbidden, "admission (Pod Security, LimitRange, a policy) refuses the runner pod; goes on when it allows it"},
	{ReasonCreateRefused, "the API server refuses an object of the session; the message has its answer"},
	{ReasonUnschedulable, "no node takes the runner pod; the message has the scheduler's answer"},
	{ReasonImagePullBackOff, "the node cannot fetch the image of the runner; it goes on trying"},
	{ReasonContainerConfigError, "a Secret or ConfigMap that the container refers to is missing or lacks a key, or its image runs as root"},
	{ReasonContainerStartError, "the node cannot start the container; the message has its answer"},
	{ReasonBeingDeleted, "an object of the session, or one that had its name before, is still being deleted"},
	{ReasonWaiting, "not there yet; nothing is wrong"},
	{ReasonPresent, "in place"},
	{ReasonMissing, "not in place"},
	{ReasonReleased, "given back because the run ended"},
	{ReasonNotEnded, "the run has not ended"},
	{ReasonSpecChanged, "the spec was edited after the run began; the edit takes effect when the session is next started"},
	{ReasonRunnerCallFailed, "the runner did not take over an edit of the repositories or the workflow; it is asked again"},
	{ReasonTokenNotRenewed, "the runner's token could not be minted or renewed; it is tried again"},
	{ReasonUnknownRequest, "the annotation ambient-code.io/desired-phase holds neither Running nor Stopped; it is removed"},
	{ReasonForcedStop, "a pod was still there long after its grace period and is removed by force; its node may be lost"},
	{ReasonNotNeeded, "the session's runner type keeps its workspace elsewhere, or not at all"},
	{ReasonWorkspaceNotPrepared, "what fills the workspace before the runner starts failed, for instance because S3 refused it; the message has its last words"},
	{ReasonStateSyncFailing, "the container that copies the workspace to S3 does not stay up; what is written meanwhile may be lost with the pod"},
	{ReasonWorkspaceInUse, "the workspace that the run is to use is in use by another session, or is not there; the message says what to do"},
	{ReasonContinued, "the run goes on in the workspace of the session that it continues"},
	{ReasonRestored, "the session was restored from a backup after a run of it had begun; the work is not run again unless asked"},
	{ReasonOutcomeUnknown, "somebody else wrote the phase into the status; how the run ended is not known"},
	{ReasonVariableIgnored, "variables of spec.environmentVariables are not used, as a Secret or the operator sets them; said in an Event"},
	{ReasonFieldsDropped, "the definition of sessions in the cluster is not this operator's and drops fields of the status; apply that of the operator's release"},
	{ReasonVolumeLost, "the workspace volume claim lost its volume"},
}
