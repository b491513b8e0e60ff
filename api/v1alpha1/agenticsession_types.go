package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AgenticSession is one run of an AI agent: the operator runs it as a Job with a runner pod, gives
// it a workspace, an identity, a token and a network address, and reports its progress in the
// status. Ask for a stop or a restart with the annotation ambient-code.io/desired-phase.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Agentic Session",order=1
// +operator-sdk:csv:customresourcedefinitions:resources={{Job,v1,""},{Pod,v1,""},{Service,v1,""},{Secret,v1,""},{PersistentVolumeClaim,v1,""},{ServiceAccount,v1,""},{Role,v1,""},{RoleBinding,v1,""},{NetworkPolicy,v1,""},{Event,v1,""},{EndpointSlice,v1,""}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=agenticsessions,singular=agenticsession,shortName=as,scope=Namespaced,categories={ambient,all}
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Where the session is in its life"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is there"
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.llmSettings.model`
// +kubebuilder:printcolumn:name="Started",type=date,JSONPath=`.status.startTime`,description="When the runner of the current run started"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Display Name",type=string,JSONPath=`.spec.displayName`,priority=1
// +kubebuilder:printcolumn:name="Run",type=integer,JSONPath=`.status.run`,priority=1
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.status.podName`,priority=1
// +kubebuilder:printcolumn:name="Completed",type=date,JSONPath=`.status.completionTime`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$')",message="the name of a session must be at most 52 lower-case letters, digits and '-' and begin and end with a letter or digit: its Service, Job and pod labels are named after it; choose a shorter name without dots"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.metadata.name != 'trigger'",message="a session must not be named trigger: its ServiceAccount would have the name of the project's own; choose another name"
type AgenticSession struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The name also names the session's Service, Job and volume: at most
	// 52 characters, no dots.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the agent is asked to do and with what.
	// +required
	Spec AgenticSessionSpec `json:"spec"`

	// What the operator observed. Written by the operator, except lastActivityTime, which the
	// platform's backend writes.
	// +optional
	// +kubebuilder:default={phase: Pending}
	Status AgenticSessionStatus `json:"status,omitempty"`
}

// AgenticSessionList is a list of sessions.
//
// +kubebuilder:object:root=true
type AgenticSessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgenticSession `json:"items"`
}

// AgenticSessionSpec is what the user asks for. An edit while a run goes on takes effect when the
// session is next started.
type AgenticSessionSpec struct {
	// The first prompt. It is used on the first run only, not when a stopped session is started
	// again. At most 120000 characters: the runner gets it as an environment variable.
	// +optional
	// +kubebuilder:validation:MaxLength=120000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Initial prompt",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=1
	InitialPrompt string `json:"initialPrompt,omitempty"`

	// A name for people; it need not be unique.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Display name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=2
	DisplayName string `json:"displayName,omitempty"`

	// Who asked for the session; handed to the runner and kept for audit.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="User context",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	UserContext *UserContext `json:"userContext,omitempty"`

	// The language model and its settings.
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Language model",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:llmSettings"}
	LLMSettings LLMSettings `json:"llmSettings,omitempty"`

	// Hard limit of one run in seconds, counted from the start of the runner; 0 means none. A run
	// that reaches it ends as Failed with reason Timeout.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="timeout must be 0 (no limit) or a positive number of seconds"
	// +kubebuilder:validation:XValidation:rule="self <= 31536000",message="timeout must be at most 31536000 seconds (one year); use 0 for no limit"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Timeout (seconds)",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=3
	Timeout *int64 `json:"timeout,omitempty"`

	// Seconds without activity after which a running session is stopped by itself; 0 switches this
	// off. Unset means the project's inactivityTimeoutSeconds, then the operator's default.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="inactivityTimeout must be 0 (off) or a positive number of seconds; leave it out for the project's default"
	// +kubebuilder:validation:XValidation:rule="self <= 31536000",message="inactivityTimeout must be at most 31536000 seconds (one year); use 0 to switch it off"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Inactivity timeout (seconds)",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=4
	InactivityTimeout *int64 `json:"inactivityTimeout,omitempty"`

	// Whether the runner ends by itself when the agent has finished its answer, instead of waiting
	// for the next message.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Stop when the answer is finished",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=5
	StopOnRunFinished bool `json:"stopOnRunFinished,omitempty"`

	// Whether a person talks with the agent while it runs.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Interactive",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=6
	Interactive bool `json:"interactive,omitempty"`

	// Git repositories the runner clones into the workspace. The last part of the URL, without
	// .git, names the folder, so it must be unique in the list.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.map(r, (r.url.find('[^/:]+$') + '/').replace('.git/', '/')).all(n, self.exists_one(r, n == (r.url.find('[^/:]+$') + '/').replace('.git/', '/')))",message="two repositories have the same name (the last part of the URL without .git): they would share one folder in the workspace; keep one of them"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Repositories",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:repos"}
	Repos []Repo `json:"repos,omitempty"`

	// The workflow the agent follows, from a Git repository.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Active workflow",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:activeWorkflow"}
	ActiveWorkflow *Workflow `json:"activeWorkflow,omitempty"`

	// Extra environment variables of the runner. They may add and override ordinary values, never
	// those that identify the session, come from a Secret or switch Vertex. Do not put secrets
	// here: use the project's runner Secret.
	// +optional
	// +mapType=granular
	// +kubebuilder:validation:MaxProperties=200
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z_][A-Za-z0-9_.-]*$'))",message="a name in environmentVariables must begin with a letter or '_' and hold only letters, digits, '_', '-' and '.'; rename it"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Environment variables",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	EnvironmentVariables map[string]EnvironmentValue `json:"environmentVariables,omitempty"`

	// Tools the agent may use through the Model Context Protocol, besides the project's.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="MCP servers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	MCPServers *MCPServers `json:"mcpServers,omitempty"`
}

// EnvironmentValue is the value of an environment variable.
//
// +kubebuilder:validation:MaxLength=32768
type EnvironmentValue string

// UserContext says who asked for a session.
type UserContext struct {
	// Identity of the user at the platform.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="User ID",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	UserID string `json:"userId,omitempty"`

	// The user's name for people.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="User name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	DisplayName string `json:"displayName,omitempty"`

	// Groups of the user at the time of the request.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Groups",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Groups []string `json:"groups,omitempty"`
}

// LLMSettings chooses the language model of a session.
type LLMSettings struct {
	// Name of the model.
	// +optional
	// +kubebuilder:default=claude-sonnet-4-6
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Model",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:llmSettings","urn:alm:descriptor:com.tectonic.ui:text"}
	Model string `json:"model,omitempty"`

	// Sampling temperature, from 0 (always the likeliest answer) to 2.
	// +optional
	// +kubebuilder:default=0.7
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Temperature",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:llmSettings","urn:alm:descriptor:com.tectonic.ui:number"}
	Temperature *float64 `json:"temperature,omitempty"`

	// Most tokens of one answer.
	// +optional
	// +kubebuilder:default=4000
	// +kubebuilder:validation:Minimum=1
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Most tokens of an answer",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:llmSettings","urn:alm:descriptor:com.tectonic.ui:number"}
	MaxTokens int64 `json:"maxTokens,omitempty"`
}

// Repo is a Git repository of a session.
type Repo struct {
	// Where to clone it from: http://, https:// or ssh:// with a host and a path, or
	// git@host:path.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|ssh)://[^/\\\\s]+/[^\\\\s]*[^/\\\\s]$') || self.matches('^git@[^:/\\\\s]+:[^\\\\s]*[^/\\\\s]$')",message="a repository URL must have the form https://host/path, http://host/path, ssh://user@host/path or git@host:path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/@]*:[^/@]*@')",message="a URL must not hold a password: it would be seen by everybody who may look at the object; put credentials into the project's Secrets"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Repository URL",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:repos","urn:alm:descriptor:com.tectonic.ui:text"}
	URL string `json:"url"`

	// Branch to check out.
	// +optional
	// +kubebuilder:default=main
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[A-Za-z0-9_][^ ~^:?*]*$')",message="a branch must begin with a letter, a digit or '_' and hold no blanks and none of ~ ^ : ? *"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Branch",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:repos","urn:alm:descriptor:com.tectonic.ui:text"}
	Branch string `json:"branch,omitempty"`

	// Whether the runner pushes its commits back.
	// +optional
	// +kubebuilder:default=false
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Push commits back",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:repos","urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	AutoPush bool `json:"autoPush"`
}

// Name is the folder of the repository in the workspace: the last part of its URL without .git.
func (r *Repo) Name() string {
	url := strings.TrimSuffix(strings.TrimRight(r.URL, "/"), ".git")
	return url[strings.LastIndexAny(url, "/:")+1:]
}

// FitsFolder says that a name of a repository can be that of a folder in the workspace.
func FitsFolder(name string) bool { return name != "" && name != "." && name != ".." }

// Workflow is a set of instructions for the agent, kept in a Git repository.
type Workflow struct {
	// Where to clone it from; same forms as a repository URL.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|ssh)://[^/\\\\s]+/[^\\\\s]*[^/\\\\s]$') || self.matches('^git@[^:/\\\\s]+:[^\\\\s]*[^/\\\\s]$')",message="gitUrl must have the form https://host/path, http://host/path, ssh://user@host/path or git@host:path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/@]*:[^/@]*@')",message="a URL must not hold a password: it would be seen by everybody who may look at the object; put credentials into the project's Secrets"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Workflow URL",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:activeWorkflow","urn:alm:descriptor:com.tectonic.ui:text"}
	GitURL string `json:"gitUrl"`

	// Branch to check out.
	// +optional
	// +kubebuilder:default=main
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[A-Za-z0-9_][^ ~^:?*]*$')",message="a branch must begin with a letter, a digit or '_' and hold no blanks and none of ~ ^ : ? *"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Workflow branch",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:activeWorkflow","urn:alm:descriptor:com.tectonic.ui:text"}
	Branch string `json:"branch,omitempty"`

	// Folder of the workflow inside the repository; empty means its root.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must be a folder inside the repository: neither absolute nor with '..'"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Workflow folder",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:activeWorkflow","urn:alm:descriptor:com.tectonic.ui:text"}
	Path string `json:"path,omitempty"`
}
