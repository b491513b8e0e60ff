package v1alpha1

// Condition types of a ProjectSettings. Ready is the same word as for sessions.
const (
	ConditionGroupAccessReady   = "GroupAccessReady"
	ConditionScheduledRBACReady = "ScheduledSessionRBACReady"
	ConditionLimitRangeReady    = "LimitRangeReady"
	ConditionNetworkPolicyReady = "NetworkPolicyReady"
)

// ProjectConditionTypes lists the condition types of a ProjectSettings; all of them are set on
// every one.
var ProjectConditionTypes = []Word{
	{ConditionReady, "everything that the settings ask for is in place"},
	{ConditionGroupAccessReady, "every entry of groupAccess is in effect, and no group that was taken off the list has access; status.groupErrors has the exceptions"},
	{ConditionScheduledRBACReady, "the ServiceAccount, Role and RoleBinding ambient-session-trigger are in place"},
	{ConditionLimitRangeReady, "the LimitRange ambient-default-limits is in place"},
	{ConditionNetworkPolicyReady, "the NetworkPolicy runner-allow-backend-only is in place"},
}

// Reasons that only the conditions and groupErrors of a ProjectSettings have. Those that they share
// with sessions are NamespaceNotManaged, NameCollision, BeingDeleted, QuotaExceeded, CreateRefused
// and Present.
const (
	ReasonGroupRefused     = "GroupRefused"
	ReasonInvalidEntry     = "InvalidEntry"
	ReasonIgnored          = "Ignored"
	ReasonNotApplied       = "NotApplied"
	ReasonRevocationFailed = "RevocationFailed"
	ReasonOwnSecretUsed    = "OwnSecretUsed"
)

// ProjectReasons lists those reasons with their meanings.
var ProjectReasons = []Word{
	{ReasonGroupRefused, "the group stands for everybody and gets no access"},
	{ReasonInvalidEntry, "the entry of groupAccess names no group, or a role that does not exist"},
	{ReasonIgnored, "the object is not named projectsettings and has no effect"},
	{ReasonNotApplied, "the API server did not take an object; the message has its answer, and it is tried again"},
	{ReasonOwnSecretUsed, "a Secret of the project's own is in the place of the copy of a shared one, and is used; said in an Event"},
	{ReasonRevocationFailed, "the RoleBinding of a group that was taken off the list is still there; its removal is tried again"},
}
