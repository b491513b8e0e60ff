package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProjectSettings holds the settings of a project (a managed namespace): who has access, which
// Secret its runners use and after how long an idle session stops. A namespace has exactly one,
// named projectsettings.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Project Settings",order=2
// +operator-sdk:csv:customresourcedefinitions:resources={{RoleBinding,v1,""},{Role,v1,""},{ServiceAccount,v1,""},{LimitRange,v1,""},{Secret,v1,""},{NetworkPolicy,v1,""}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=projectsettings,singular=projectsettings,shortName=ps,scope=Namespaced,categories=ambient
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.spec.runnerSecretsName`,description="Secret with the keys of the project's runners"
// +kubebuilder:printcolumn:name="Idle Stop",type=integer,JSONPath=`.spec.inactivityTimeoutSeconds`,description="Seconds after which an idle session stops"
// +kubebuilder:printcolumn:name="Groups",type=integer,JSONPath=`.status.groupBindingsCreated`,description="Groups that have access"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.metadata.name == 'projectsettings'",message="a namespace has one ProjectSettings and it must be named projectsettings; rename it"
type ProjectSettings struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The name must be projectsettings.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The settings of the project.
	// +required
	Spec ProjectSettingsSpec `json:"spec"`

	// What the operator made of the settings.
	// +optional
	Status ProjectSettingsStatus `json:"status,omitempty"`
}

// ProjectSettingsList is a list of project settings.
//
// +kubebuilder:object:root=true
type ProjectSettingsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProjectSettings `json:"items"`
}

// ProjectSettingsSpec is the settings of a project.
type ProjectSettingsSpec struct {
	// Groups that may use the project and in which role. A group that is taken off the list loses
	// its access.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Group access",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:groupAccess"}
	GroupAccess []GroupAccess `json:"groupAccess"`

	// Name of the Secret whose keys every runner of the project gets as environment variables
	// (ANTHROPIC_API_KEY and the like). Empty means ambient-runner-secrets.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="runnerSecretsName must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Runner Secret",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	RunnerSecretsName string `json:"runnerSecretsName,omitempty"`

	// Repositories offered to the sessions of the project.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Repositories",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:repositories"}
	Repositories []ProjectRepository `json:"repositories,omitempty"`

	// Seconds without activity after which a session of the project is stopped by itself, unless
	// the session says otherwise; 0 switches this off.
	// +optional
	// +kubebuilder:default=86400
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="inactivityTimeoutSeconds must be 0 (off) or a positive number of seconds"
	// +kubebuilder:validation:XValidation:rule="self <= 31536000",message="inactivityTimeoutSeconds must be at most 31536000 seconds (one year); use 0 to switch it off"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Inactivity timeout (seconds)",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	InactivityTimeoutSeconds *int64 `json:"inactivityTimeoutSeconds,omitempty"`

	// Tools every session of the project may use through the Model Context Protocol.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="MCP servers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	MCPServers *MCPServers `json:"mcpServers,omitempty"`
}

// GroupAccess gives a group a role in the project.
type GroupAccess struct {
	// Name of the group as the cluster's authentication reports it. system:authenticated and
	// system:unauthenticated are refused: they would open the project to everybody, and so is
	// system:serviceaccounts: it is every pod of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!(self in ['system:authenticated', 'system:unauthenticated', 'system:serviceaccounts'])",message="this group would open the project to everybody; name a group of your own"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Group",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:groupAccess","urn:alm:descriptor:com.tectonic.ui:text"}
	GroupName string `json:"groupName"`

	// What the group may do: admin manages the project, edit runs sessions, view only looks.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Role",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:groupAccess","urn:alm:descriptor:com.tectonic.ui:select:admin","urn:alm:descriptor:com.tectonic.ui:select:edit","urn:alm:descriptor:com.tectonic.ui:select:view"}
	Role GroupRole `json:"role"`
}

// GroupRole is a role in a project.
//
// +kubebuilder:validation:Enum=admin;edit;view
type GroupRole string

// The roles of a project; each is bound to the ClusterRole ambient-project-<role>.
const (
	GroupRoleAdmin GroupRole = "admin"
	GroupRoleEdit  GroupRole = "edit"
	GroupRoleView  GroupRole = "view"
)

// ProjectRepository is a Git repository offered to the sessions of a project.
type ProjectRepository struct {
	// Where to clone it from: http://, https:// or ssh:// with a host and a path, or
	// git@host:path.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|ssh)://[^/\\\\s]+/[^\\\\s]*[^/\\\\s]$') || self.matches('^git@[^:/\\\\s]+:[^\\\\s]*[^/\\\\s]$')",message="a repository URL must have the form https://host/path, http://host/path, ssh://user@host/path or git@host:path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/@]*:[^/@]*@')",message="a URL must not hold a password: it would be seen by everybody who may look at the object; put credentials into the project's Secrets"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Repository URL",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:repositories","urn:alm:descriptor:com.tectonic.ui:text"}
	URL string `json:"url"`

	// Branch to check out; empty means the repository's default.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[A-Za-z0-9_][^ ~^:?*]*$')",message="a branch must begin with a letter, a digit or '_' and hold no blanks and none of ~ ^ : ? *"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Branch",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:repositories","urn:alm:descriptor:com.tectonic.ui:text"}
	Branch string `json:"branch,omitempty"`

	// Who hosts it.
	// +optional
	// +kubebuilder:validation:Enum=github;gitlab
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Provider",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:repositories","urn:alm:descriptor:com.tectonic.ui:select:github","urn:alm:descriptor:com.tectonic.ui:select:gitlab"}
	Provider string `json:"provider,omitempty"`
}

// ProjectSettingsStatus is what the operator made of the settings.
type ProjectSettingsStatus struct {
	// The metadata.generation of the spec that this status speaks of.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// How many RoleBindings of groupAccess are in place: one for every group and role.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="RoleBindings of groups",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=1
	GroupBindingsCreated int32 `json:"groupBindingsCreated,omitempty"`

	// Whether the ServiceAccount, Role and RoleBinding ambient-session-trigger, which scheduled
	// sessions need, are in place.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Access for scheduled sessions",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=2
	ScheduledSessionRBACReady bool `json:"scheduledSessionRBACReady,omitempty"`

	// Whether the LimitRange ambient-default-limits is in place.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Default limits",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=3
	LimitRangeReady bool `json:"limitRangeReady,omitempty"`

	// Entries of groupAccess that are not in effect, and why. They do not keep the others from
	// being in effect.
	// +optional
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Entries not in effect",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	GroupErrors []GroupError `json:"groupErrors,omitempty"`

	// Observations in detail.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"},order=4
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GroupError says why an entry of groupAccess is not in effect. It repeats the entry as it is
// stored, which may be one that is no longer accepted.
type GroupError struct {
	// The group.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Group",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	GroupName string `json:"groupName"`

	// The role that the group should have.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Role",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Role string `json:"role"`

	// A machine-readable word.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Reason",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Reason string `json:"reason"`

	// One sentence that says what is wrong and what to do.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Message",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Message string `json:"message"`
}
