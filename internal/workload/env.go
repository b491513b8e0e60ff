package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// reserved are the variables that neither a session nor a runner type may set: those that say which
// session it is, that come from a Secret, or that switch Vertex. Source: the contract.
var reserved = []string{
	"AGENTIC_SESSION_NAME", "AGENTIC_SESSION_NAMESPACE", "SESSION_ID", "PROJECT_NAME",
	"AGUI_TOKEN", "USE_VERTEX", "CLAUDE_CODE_USE_VERTEX",
}

// parentSession is the variable that names the session this one continues; a session may give it
// in its spec instead of the annotation.
const parentSession = "PARENT_SESSION_ID"

// environment is what the runner is told, in a fixed order: the operator's variables, those that
// the runner type adds, and the session's own by name. The session's value overrides an earlier one
// of the same name in its place; the type's never does, as it would undo what the session or the
// operator says. So no name stands twice.
func (p *Plan) environment() []corev1.EnvVar {
	env := p.withTypes(slices.Concat(p.identity(), p.model(), p.work(), p.vertex(), p.tracing(), p.Operator.Proxy))
	own := p.own()
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = override(env, name, own[name])
	}
	return env
}

// own are the variables that the session sets and may set.
func (p *Plan) own() map[string]string {
	own := map[string]string{}
	for name, value := range p.Session.Spec.EnvironmentVariables {
		if !p.settled(name) {
			own[name] = string(value)
		}
	}
	return own
}

// settled says that a variable is not the session's to set: it is reserved, a Secret of the project has it,
// or the session's annotation says what it is.
func (p *Plan) settled(name string) bool {
	return slices.Contains(reserved, name) || slices.Contains(p.SecretKeys, name) ||
		name == parentSession && p.Session.Annotations[v1alpha1.AnnotationParentSessionID] != ""
}

// Ignored lists the variables that the session sets and its run does not get, as they come from a
// Secret or say what only the operator may say, by name.
func (p *Plan) Ignored() []string {
	var names []string
	environment := p.environment()
	for name := range p.Session.Spec.EnvironmentVariables {
		secret := slices.ContainsFunc(environment, func(v corev1.EnvVar) bool { return v.Name == name && v.ValueFrom != nil })
		if secret || p.settled(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// withTypes adds the variables of the runner type. A key of the project's Secrets counts as set:
// a variable of the container would hide it.
func (p *Plan) withTypes(env []corev1.EnvVar) []corev1.EnvVar {
	for _, name := range slices.Sorted(maps.Keys(p.Runtime.Env)) {
		if !slices.Contains(reserved, name) && !slices.Contains(p.SecretKeys, name) {
			env = unlessSet(env, literal(name, p.Runtime.Env[name]))
		}
	}
	return env
}

func unlessSet(env []corev1.EnvVar, variable corev1.EnvVar) []corev1.EnvVar {
	if slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == variable.Name }) {
		return env
	}
	return append(env, variable)
}

// override sets a variable, unless its value comes from a Secret.
func override(env []corev1.EnvVar, name, value string) []corev1.EnvVar {
	for i := range env {
		if env[i].Name == name {
			if env[i].ValueFrom == nil {
				env[i] = literal(name, value)
			}
			return env
		}
	}
	return append(env, literal(name, value))
}

// literal is a variable with just this value: kubelets replace $(NAME) and $$, which a prompt may
// well contain.
func literal(name, value string) corev1.EnvVar {
	if strings.Contains(value, "$(") || strings.Contains(value, "$$") {
		value = strings.ReplaceAll(value, "$", "$$")
	}
	return corev1.EnvVar{Name: name, Value: value}
}

// identity says which session this is and how to reach the platform.
func (p *Plan) identity() []corev1.EnvVar {
	s := p.Session
	env := []corev1.EnvVar{
		literal("AGENTIC_SESSION_NAME", s.Name),
		literal("AGENTIC_SESSION_NAMESPACE", s.Namespace),
		literal("SESSION_ID", s.Name),
		literal("PROJECT_NAME", s.Namespace),
		literal("WORKSPACE_PATH", workspacePath),
		literal("ARTIFACTS_DIR", "artifacts"),
		literal("AGUI_PORT", strconv.Itoa(int(p.Runtime.Port))),
		fromSecret("AGUI_TOKEN", TokenSecretName(s.Name), AGUITokenKey),
		literal("USE_AGUI", "true"),
		p.backend(),
	}
	if user := s.Spec.UserContext; user != nil {
		env = append(env, literal("USER_ID", user.UserID), literal("USER_NAME", user.DisplayName))
	}
	return env
}

// backend says how to reach the platform's backend.
func (p *Plan) backend() corev1.EnvVar {
	return literal("BACKEND_API_URL", fmt.Sprintf("http://backend-service.%s.svc.cluster.local:8080/api", p.Operator.BackendNamespace))
}

// model says which language model to use, and how long the run may take.
func (p *Plan) model() []corev1.EnvVar {
	llm := p.Session.Spec.LLMSettings
	temperature := 0.7
	if llm.Temperature != nil {
		temperature = *llm.Temperature
	}
	return []corev1.EnvVar{
		literal("LLM_MODEL", llm.Model),
		literal("LLM_TEMPERATURE", strconv.FormatFloat(temperature, 'f', 2, 64)),
		literal("LLM_MAX_TOKENS", strconv.FormatInt(llm.MaxTokens, 10)),
		literal("TIMEOUT", strconv.FormatInt(p.timeout(), 10)),
		literal("INTERACTIVE", strconv.FormatBool(p.Session.Spec.Interactive)),
	}
}

// work says what to do and with what.
func (p *Plan) work() []corev1.EnvVar {
	s := p.Session
	env := []corev1.EnvVar{
		literal("INITIAL_PROMPT", s.Spec.InitialPrompt),
		literal("REPOS_JSON", encode(s.Spec.Repos, "[]")),
	}
	env = slices.Concat(env, p.workflow())
	if s.Spec.MCPServers != nil {
		env = append(env, literal("CUSTOM_MCP_SERVERS", encode(s.Spec.MCPServers, "{}")))
	}
	if p.Project != nil && p.Project.Spec.MCPServers != nil {
		env = append(env, literal("PROJECT_MCP_SERVERS", encode(p.Project.Spec.MCPServers, "{}")))
	}
	if parent := s.Annotations[v1alpha1.AnnotationParentSessionID]; parent != "" {
		env = append(env, literal(parentSession, parent))
	}
	if p.resumes() {
		env = append(env, literal("IS_RESUME", "true"))
	}
	if s.Spec.StopOnRunFinished {
		env = append(env, literal("STOP_ON_RUN_FINISHED", "true"))
	}
	return env
}

func (p *Plan) workflow() []corev1.EnvVar {
	workflow := p.Session.Spec.ActiveWorkflow
	if workflow == nil {
		return nil
	}
	return []corev1.EnvVar{
		literal("ACTIVE_WORKFLOW_GIT_URL", workflow.GitURL),
		literal("ACTIVE_WORKFLOW_BRANCH", workflow.Branch),
		literal("ACTIVE_WORKFLOW_PATH", workflow.Path),
	}
}

// resumes says that the session ran before, so that its prompt must not be carried out again. A run
// whose runner never started carried out nothing.
func (p *Plan) resumes() bool {
	return p.Session.Status.RanBefore && !p.promptForced()
}

func (p *Plan) promptForced() bool {
	return p.Session.Annotations[v1alpha1.AnnotationForceExecutePrompt] == "true"
}

func (p *Plan) vertex() []corev1.EnvVar {
	v := p.Operator.Vertex
	if !p.UsesVertex() {
		return []corev1.EnvVar{literal("USE_VERTEX", "0"), literal("CLAUDE_CODE_USE_VERTEX", "0")}
	}
	return []corev1.EnvVar{
		literal("USE_VERTEX", "1"),
		literal("CLAUDE_CODE_USE_VERTEX", "1"),
		literal("CLOUD_ML_REGION", v.Region),
		literal("ANTHROPIC_VERTEX_PROJECT_ID", v.ProjectID),
		literal("GOOGLE_APPLICATION_CREDENTIALS", v.Credentials),
	}
}

// environmentFrom gives the runner every key of the project's Secrets.
func (p *Plan) environmentFrom() []corev1.EnvFromSource {
	from := func(name string, optional bool) corev1.EnvFromSource {
		return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
			Optional:             &optional,
		}}
	}
	return []corev1.EnvFromSource{
		from(p.RunnerSecret(), p.UsesVertex()),
		from(IntegrationsSecret, true),
	}
}

// encode is the JSON of a value that is known to encode; empty stands for null.
func encode(value any, empty string) string {
	data, err := json.Marshal(value)
	if err != nil || string(data) == "null" {
		return empty
	}
	return string(data)
}
