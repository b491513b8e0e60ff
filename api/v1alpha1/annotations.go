package v1alpha1

// Annotations and labels. Source of the names: the contract with the Ambient Code Platform, except
// where "ours" is said.
const (
	// AnnotationDesiredPhase asks for a (re)start (Running) or a stop (Stopped).
	AnnotationDesiredPhase = "ambient-code.io/desired-phase"
	// AnnotationStartRequestedAt is the time of a request to start.
	AnnotationStartRequestedAt = "ambient-code.io/start-requested-at"
	// AnnotationStopRequestedAt is the time of a request to stop.
	AnnotationStopRequestedAt = "ambient-code.io/stop-requested-at"
	// AnnotationParentSessionID names the session that this one continues.
	AnnotationParentSessionID = "vteam.ambient-code/parent-session-id"
	// AnnotationParentWorkspace says whether a session that continues another is to work in that
	// one's workspace: "true" waits for it, "false" does not use it, anything else uses it where there
	// is one; ours.
	AnnotationParentWorkspace = "ambient-code.io/parent-workspace"
	// AnnotationWorkspaceUser is on a workspace volume claim: name, UID and run of the session that
	// goes on in it and is not its owner; ours.
	AnnotationWorkspaceUser = "ambient-code.io/workspace-user"
	// AnnotationContinuedSession is on the Job: the session in whose workspace the run goes on; ours.
	AnnotationContinuedSession = "ambient-code.io/continued-session"
	// AnnotationForceExecutePrompt makes the next run use the initial prompt although the session
	// ran before.
	AnnotationForceExecutePrompt = "ambient-code.io/force-execute-prompt"
	// AnnotationRunnerTokenSecret names the Secret with the runner's token.
	AnnotationRunnerTokenSecret = "ambient-code.io/runner-token-secret"
	// AnnotationRunnerServiceAccount names the ServiceAccount of the runner.
	AnnotationRunnerServiceAccount = "ambient-code.io/runner-sa"
	// AnnotationRunOf is on a session of which a run has begun: its name and UID, name/UID. A backup
	// keeps it where it loses the status; ours.
	AnnotationRunOf = "ambient-code.io/run-of"
	// AnnotationCreatedByUserID is on the runner's ServiceAccount: who asked for the session.
	AnnotationCreatedByUserID = "ambient-code.io/created-by-user-id"
	// AnnotationTokenRefreshedAt is on the token Secret: when the token was minted, RFC 3339.
	AnnotationTokenRefreshedAt = "ambient-code.io/token-refreshed-at"
	// AnnotationTokenExpiresAt is on the token Secret: the token's real expiry, RFC 3339; ours.
	AnnotationTokenExpiresAt = "ambient-code.io/token-expires-at"
	// AnnotationTokenIdentity is on the token Secret: the UID of the ServiceAccount that the token
	// speaks for; ours.
	AnnotationTokenIdentity = "ambient-code.io/token-identity"
	// AnnotationTimeoutSeconds is on the Job: spec.timeout at the time the run began; ours.
	AnnotationTimeoutSeconds = "ambient-code.io/timeout-seconds"
	// AnnotationRunSpec is on the Job: a digest of what of the spec a run takes over only at its
	// start; ours.
	AnnotationRunSpec = "ambient-code.io/run-spec"
	// AnnotationRunRepos is on the Job: the repositories that the runner was started with, as JSON;
	// ours.
	AnnotationRunRepos = "ambient-code.io/run-repos"
	// AnnotationRunWorkflow is on the Job: the workflow that the runner was started with, as JSON;
	// ours.
	AnnotationRunWorkflow = "ambient-code.io/run-workflow"
	// AnnotationServiceSecret is on the Job: a digest of the secret of the runner's Service that the
	// runner was started with; ours.
	AnnotationServiceSecret = "ambient-code.io/service-secret"
	// AnnotationTokenDigest is on the token Secret: a digest of its content, by which a change of it
	// is known; ours.
	AnnotationTokenDigest = "ambient-code.io/token-digest"
	// AnnotationRunnerType is on the Job: the id of the run's runner type; ours.
	AnnotationRunnerType = "ambient-code.io/runner-type"
	// AnnotationRunnerPort is on the Job: where the run's runner serves; ours.
	AnnotationRunnerPort = "ambient-code.io/runner-port"
	// AnnotationPersistence is on the Job: what keeps the workspace of the run; ours.
	AnnotationPersistence = "ambient-code.io/persistence"
	// AnnotationStorageShared is on the Job: "true" where the run's workspace is kept in the
	// storage that all projects share; ours.
	AnnotationStorageShared = "ambient-code.io/storage-shared"
	// AnnotationSourceVersion is on a Secret that was copied from the operator's namespace: the
	// resource version of what was copied; ours.
	AnnotationSourceVersion = "ambient-code.io/source-version"
	// AnnotationSessionUID is on every object of a session: the session's UID, so that the object
	// is still known as the session's when its owner reference is taken off; ours.
	AnnotationSessionUID = "ambient-code.io/session-uid"
	// AnnotationGroup is on the RoleBinding of a group: the group's name as in groupAccess, which the
	// RoleBinding's own name cannot spell; ours.
	AnnotationGroup = "ambient-code.io/group"
	// AnnotationCopiedFrom is on a Secret that was copied from the operator's namespace: namespace
	// and name of the source. The platform's operator writes it as well.
	AnnotationCopiedFrom = "vteam.ambient-code/copied-from"
	// AnnotationRunnersManageSessions, on ProjectSettings, lets agents change other sessions.
	AnnotationRunnersManageSessions = "ambient-code.io/runners-manage-sessions"

	// LabelManaged, on a Namespace with value "true", has the operator serve it.
	LabelManaged = "ambient-code.io/managed"
	// LabelSession is on every object of a session: the session's name.
	LabelSession = "agentic-session"
	// LabelApp is on the runner pod; its value is AppRunner.
	LabelApp = "app"
	// LabelRun is on the Job, its pods and the token Secret: the number of the run; ours.
	LabelRun = "ambient-code.io/run"
	// LabelProjectSettings is on every object of a project: the name of its ProjectSettings; ours.
	LabelProjectSettings = "ambient-code.io/project-settings"
	// LabelManagedBy is on every object of ours; the operator's caches select by it what it shares
	// a kind with others in.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// AppRunner is the value of LabelApp on runner pods.
	AppRunner = "ambient-code-runner"
	// AppRunnerToken is the value of LabelApp on token Secrets.
	AppRunnerToken = "ambient-runner-token"
	// ManagedByOperator is the value of LabelManagedBy.
	ManagedByOperator = "agentic-operator"

	// DesiredRunning is the value of AnnotationDesiredPhase that asks for a start.
	DesiredRunning = "Running"
	// DesiredStopped is the value of AnnotationDesiredPhase that asks for a stop.
	DesiredStopped = "Stopped"
)

// Key describes an annotation or label for generated documentation.
type Key struct {
	Key       string
	On        string
	WrittenBy string
	ReadBy    string
	Meaning   string
}

// Keys lists every annotation and label the operator knows.
var Keys = []Key{
	{AnnotationDesiredPhase, "AgenticSession", "user, backend", "operator", "request: Running starts (again), Stopped stops; removed once honoured"},
	{AnnotationStartRequestedAt, "AgenticSession", "backend", "operator", "time of the request to start; removed with it"},
	{AnnotationStopRequestedAt, "AgenticSession", "backend", "operator", "time of the request to stop; removed with it"},
	{AnnotationParentSessionID, "AgenticSession", "backend", "operator", "the session this one continues: handed to the runner, which goes on in the workspace of that session where it has one"},
	{AnnotationParentWorkspace, "AgenticSession", "user", "operator", "true: the session waits until the one it continues has a workspace; false: it begins in a workspace of its own"},
	{AnnotationWorkspaceUser, "PersistentVolumeClaim", "operator", "operator, people", "name, UID and run of the session that goes on in this workspace of another"},
	{AnnotationContinuedSession, "Job", "operator", "operator, people", "the session in whose workspace the run goes on"},
	{AnnotationForceExecutePrompt, "AgenticSession, Job", "trigger; on the Job the operator", "operator", "true: the next run uses initialPrompt although the session ran before; removed once used"},
	{AnnotationRunnerTokenSecret, "AgenticSession", "operator", "backend", "name of the Secret with the runner's token"},
	{AnnotationRunnerServiceAccount, "AgenticSession", "operator", "backend", "name of the runner's ServiceAccount"},
	{AnnotationRunOf, "AgenticSession", "operator", "operator", "name and UID (name/UID) of the session, once a run of it has begun: with another UID, or without a status, the session was restored from a backup and is not run by itself"},
	{AnnotationCreatedByUserID, "ServiceAccount", "operator", "backend", "spec.userContext.userId of the session"},
	{AnnotationTokenRefreshedAt, "Secret", "operator", "people", "when the token was minted"},
	{AnnotationTokenExpiresAt, "Secret", "operator", "operator", "when the token expires"},
	{AnnotationTokenIdentity, "Secret", "operator", "operator", "UID of the ServiceAccount the token speaks for"},
	{AnnotationTimeoutSeconds, "Job", "operator", "operator", "spec.timeout of the run"},
	{AnnotationRunSpec, "Job", "operator", "operator", "digest of what of the spec takes effect at the start of a run only"},
	{AnnotationRunRepos, "Job", "operator", "operator", "repositories the runner was started with"},
	{AnnotationRunWorkflow, "Job", "operator", "operator", "workflow the runner was started with"},
	{AnnotationServiceSecret, "Job", "operator", "operator", "digest of the secret of the runner's Service that the runner was started with"},
	{AnnotationTokenDigest, "Secret", "operator", "operator", "digest of the Secret's content"},
	{AnnotationRunnerType, "Job", "operator", "people", "id of the run's runner type"},
	{AnnotationRunnerPort, "Job", "operator", "operator", "port of the run's runner"},
	{AnnotationPersistence, "Job", "operator", "operator", "none, pvc or s3: what keeps the run's workspace"},
	{AnnotationStorageShared, "Job", "operator", "operator", "true: the run's workspace is kept in the storage that all projects share"},
	{AnnotationSourceVersion, "Secret", "operator", "operator", "resource version of the Secret that it was copied from"},
	{AnnotationSessionUID, "every object of a session", "operator", "operator", "UID of the session"},
	{AnnotationRunnersManageSessions, "ProjectSettings", "user", "operator", "true: agents of the project may change all its sessions"},
	{AnnotationGroup, "RoleBinding of a group", "operator", "operator, people", "name of the group as in groupAccess"},
	{AnnotationCopiedFrom, "Secret", "operator", "operator, people", "namespace and name of the Secret that this one is a copy of"},
	{LabelManaged, "Namespace", "user, backend", "operator", "true: sessions in the namespace are run and the project's objects are kept in place"},
	{LabelSession, "every object of a session", "operator", "operator, backend", "name of the session"},
	{LabelApp, "Pod, Secret", "operator", "operator, backend", "ambient-code-runner or ambient-runner-token"},
	{LabelRun, "Job, Pod, Secret", "operator", "operator", "number of the run"},
	{LabelProjectSettings, "every object of a project", "operator", "operator", "name of the ProjectSettings"},
	{LabelManagedBy, "every object of ours", "operator", "operator, people", "agentic-operator"},
}
