// Package workload builds the objects of a session: what they are called (names.go), the small
// ones (objects.go), what the runner may do (access.go), the Job (job.go) and what the runner is
// told (env.go). What a runner type decides is in runtime.go, what fills and keeps a workspace in
// state.go and storage.go. It is pure: the same input gives the same bytes.
package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
)

// Names of objects in a project; source: the contract.
const (
	DefaultRunnerSecret = "ambient-runner-secrets"
	IntegrationsSecret  = "ambient-non-vertex-integrations"
	VertexSecret        = "ambient-vertex"
	TrustedCAConfigMap  = "trusted-ca-bundle"
	TrustedCAKey        = "ca-bundle.crt"

	// TokenKey is the key of the token Secret that holds the ServiceAccount token.
	TokenKey = "k8s-token"
	// AGUITokenKey is the key of the token Secret that holds the secret of the runner's Service.
	AGUITokenKey = "agui-token"
)

// ServiceAccountName is the identity of a session's runner; source: the contract, as for all
// names here but the Job's.
func ServiceAccountName(session string) string { return "ambient-session-" + session }

// RoleName names what the runner may do.
func RoleName(session string) string { return ServiceAccountName(session) + "-role" }

// RoleBindingName names the binding of the two.
func RoleBindingName(session string) string { return ServiceAccountName(session) + "-rb" }

// TokenSecretName names the Secret with the runner's tokens.
func TokenSecretName(session string) string { return tokenSecretPrefix + session }

const tokenSecretPrefix = "ambient-runner-token-"

// SessionOfToken is the session whose token Secret could have this name; empty when no session's
// could.
func SessionOfToken(name string) string {
	session, ok := strings.CutPrefix(name, tokenSecretPrefix)
	if !ok {
		return ""
	}
	return session
}

// WorkspaceName names the volume claim that outlives runs.
func WorkspaceName(session string) string { return "ambient-workspace-" + session }

// ServiceName names the runner's network address.
func ServiceName(session string) string { return "session-" + session }

// JobName names the Job of one run. The run's number makes "the Job of this run" unambiguous.
func JobName(session string, run int64) string { return fmt.Sprintf("%s-run-%d", session, run) }

// jobName matches what JobName makes.
var jobName = regexp.MustCompile(`^(.+)-run-([1-9][0-9]*)$`)

// SessionOfJob is the session whose Job could have this name; empty when no session's could.
func SessionOfJob(name string) string {
	if parts := jobName.FindStringSubmatch(name); parts != nil {
		return parts[1]
	}
	return ""
}

// lastRun is the highest number that a run can have: with more digits a Job's name would not fit.
const lastRun = 999_999

// RunOfJob is the run whose Job could have this name; 0 when none's could. Unlike a label, a name is never
// changed.
func RunOfJob(name string) int64 {
	parts := jobName.FindStringSubmatch(name)
	if parts == nil {
		return 0
	}
	if run, err := strconv.ParseInt(parts[2], 10, 64); err == nil && run <= lastRun {
		return run
	}
	return 0
}

// validName is a name from which all names above can be made: the Service's must be a DNS label
// (63 characters), and so must the Job's with six digits for the run.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$`)

// reservedName would give a session's ServiceAccount the name of that of a project's scheduled sessions.
const reservedName = "trigger"

// variableName is a name of an environment variable that every Kubernetes takes.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// maxEnvBytes is how long one environment variable may be: Linux refuses to start a program with
// one of 128 KiB or more.
const maxEnvBytes = 128*1024 - 256

// maxAllEnvBytes is how much a session's variables may take together: an object of more than about
// 1.5 MB is refused, with an answer that does not say so.
const maxAllEnvBytes = 800 * 1000

// Problems says, a sentence each, why a session can never run as it is specified. The API refuses
// the same at creation; objects that were stored before, or under another definition, come here.
func Problems(s *v1alpha1.AgenticSession) []string {
	var problems []string
	if !validName.MatchString(s.Name) {
		problems = append(problems, fmt.Sprintf("the name %q cannot name the session's Service and Job: create the session anew with a name of at most 52 lower-case letters, digits and '-'", s.Name))
	}
	if s.Name == reservedName {
		problems = append(problems, fmt.Sprintf("the name %q is that of the project's own %s: create the session anew with another name", s.Name, ServiceAccountName(s.Name)))
	}
	if run := s.Status.Run; run < 0 || run >= lastRun {
		problems = append(problems, fmt.Sprintf("status.run is %d, after which no run can be numbered: create the session anew", run))
	}
	if len(s.Spec.InitialPrompt) > maxEnvBytes {
		problems = append(problems, fmt.Sprintf("spec.initialPrompt has %d bytes, more than the %d that a runner can be started with: shorten it, or put it into a file of a repository", len(s.Spec.InitialPrompt), maxEnvBytes))
	}
	for _, field := range []struct {
		name  string
		value any
	}{{"spec.repos", s.Spec.Repos}, {"spec.mcpServers", s.Spec.MCPServers}} {
		if size := len(encode(field.value, "")); size > maxEnvBytes {
			problems = append(problems, fmt.Sprintf("%s has %d bytes as JSON, more than the %d that a runner can be started with: shorten it", field.name, size, maxEnvBytes))
		}
	}
	total := 0
	for name, value := range s.Spec.EnvironmentVariables {
		if !variableName.MatchString(name) {
			problems = append(problems, fmt.Sprintf("the name %.80q in spec.environmentVariables cannot be that of a variable: rename it; it must begin with a letter or '_' and hold only letters, digits, '_', '-' and '.'", name))
		}
		if total += len(literal(name, string(value)).Value); len(value) > maxEnvBytes {
			problems = append(problems, fmt.Sprintf("the variable %s in spec.environmentVariables has %d bytes, more than the %d that a runner can be started with: shorten it", name, len(value), maxEnvBytes))
		}
	}
	if total > maxAllEnvBytes {
		problems = append(problems, fmt.Sprintf("spec.environmentVariables has %d bytes in all, more than the %d that a Job can hold: put large values into a file of a repository", total, maxAllEnvBytes))
	}
	slices.Sort(problems)
	if s.Spec.Timeout != nil && *s.Spec.Timeout < 0 {
		problems = append(problems, "spec.timeout is negative: set it to 0 for no limit, or to a number of seconds")
	}
	if dir := string(s.Spec.EnvironmentVariables[runtimes.StateDirVariable]); dir != "" && !runtimes.StateDir(dir) {
		problems = append(problems, fmt.Sprintf("%s in spec.environmentVariables is %.80q: %s", runtimes.StateDirVariable, dir, runtimes.StateDirRule))
	}
	seen := map[string]bool{}
	for i := range s.Spec.Repos {
		name := s.Spec.Repos[i].Name()
		if !v1alpha1.FitsFolder(name) {
			problems = append(problems, fmt.Sprintf("the repository URL %q in spec.repos does not end in a name for its folder: correct it", s.Spec.Repos[i].URL))
			continue
		}
		if seen[name] {
			problems = append(problems, fmt.Sprintf("two repositories in spec.repos are named %q and would share a folder: remove one", name))
		}
		seen[name] = true
	}
	return problems
}

// Oversized says why no run can begin with what the project's settings hold; empty when one can. What a
// session holds itself is among its Problems: those fail it, while settings can be mended for
// all that wait.
func (p *Plan) Oversized() string {
	if p.Project == nil {
		return ""
	}
	if size := len(encode(p.Project.Spec.MCPServers, "")); size > maxEnvBytes {
		return fmt.Sprintf("spec.mcpServers of ProjectSettings %s in namespace %s has %d bytes as JSON, more than the %d that a runner can be started with: shorten it; the session then goes on", p.Project.Name, p.Project.Namespace, size, maxEnvBytes)
	}
	return ""
}
