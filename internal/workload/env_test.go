package workload_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

func environment(p *workload.Plan) []corev1.EnvVar {
	return p.Job(p.Session.Status.Run).Spec.Template.Spec.Containers[0].Env
}

// value is what the runner sees of a variable, after the kubelet has expanded it.
func value(t *testing.T, p *workload.Plan, name string) (string, bool) {
	t.Helper()
	found, result := false, ""
	for _, v := range environment(p) {
		if v.Name != name {
			continue
		}
		if found {
			t.Errorf("%s stands twice", name)
		}
		found, result = true, expand(v.Value)
	}
	return result, found
}

var reference = regexp.MustCompile(`\$(\$|\([^)]*\)|)`)

// expand is what kubelets do to a value: $$ is $, $(NAME) is replaced, all else stays.
func expand(value string) string {
	return reference.ReplaceAllStringFunc(value, func(match string) string {
		if match == "$$" || match == "$" {
			return "$"
		}
		return "EXPANDED"
	})
}

func TestTheEnvironmentOfTheContract(t *testing.T) {
	for _, c := range []struct {
		plan *workload.Plan
		want map[string]string
		not  []string
	}{
		{small(), map[string]string{
			"AGENTIC_SESSION_NAME": "hello", "AGENTIC_SESSION_NAMESPACE": "project", "SESSION_ID": "hello", "PROJECT_NAME": "project",
			"WORKSPACE_PATH": "/workspace", "ARTIFACTS_DIR": "artifacts", "AGUI_PORT": "8001", "USE_AGUI": "true",
			"INITIAL_PROMPT": "Say hello.", "LLM_MODEL": "claude-sonnet-4-6", "LLM_TEMPERATURE": "0.70", "LLM_MAX_TOKENS": "4000",
			"TIMEOUT": "300", "INTERACTIVE": "false", "REPOS_JSON": "[]", "USE_VERTEX": "0", "CLAUDE_CODE_USE_VERTEX": "0",
			"BACKEND_API_URL": "http://backend-service.ambient-code.svc.cluster.local:8080/api",
		}, []string{"IS_RESUME", "PARENT_SESSION_ID", "USER_ID", "ACTIVE_WORKFLOW_GIT_URL", "CUSTOM_MCP_SERVERS", "PROJECT_MCP_SERVERS", "CLOUD_ML_REGION", "HTTPS_PROXY"}},
		{full(), map[string]string{
			"USER_ID": "ada@example.com", "USER_NAME": "Ada", "INTERACTIVE": "true", "IS_RESUME": "true", "PARENT_SESSION_ID": "session-0",
			"ACTIVE_WORKFLOW_GIT_URL": "https://git.example.com/team/workflows", "ACTIVE_WORKFLOW_BRANCH": "main", "ACTIVE_WORKFLOW_PATH": "review",
			"USE_VERTEX": "1", "CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "example",
			"GOOGLE_APPLICATION_CREDENTIALS": "/app/vertex/key.json", "HTTPS_PROXY": "http://proxy.example.com:3128", "NO_PROXY": ".svc",
			"LLM_MODEL": "claude-sonnet-4-6", "RUNNER_TYPE": "claude-agent-sdk", "ARTIFACTS_DIR": "results", "APPLE": "first", "ZEBRA": "last",
		}, []string{"GITHUB_TOKEN", "HTTP_PROXY"}},
		{other(), map[string]string{"AGUI_PORT": "9000", "TIMEOUT": "0"}, nil},
	} {
		for name, want := range c.want {
			if got, found := value(t, c.plan, name); !found || got != want {
				t.Errorf("%s: %s is %q (set: %t), want %q", c.plan.Session.Name, name, got, found, want)
			}
		}
		for _, name := range c.not {
			if got, found := value(t, c.plan, name); found {
				t.Errorf("%s: %s is set to %q", c.plan.Session.Name, name, got)
			}
		}
	}
}

func TestJSONInTheEnvironment(t *testing.T) {
	p := full()
	var repos []v1alpha1.Repo
	text, _ := value(t, p, "REPOS_JSON")
	if err := json.Unmarshal([]byte(text), &repos); err != nil || !slices.Equal(repos, p.Session.Spec.Repos) {
		t.Errorf("REPOS_JSON is %s: %v", text, err)
	}
	for name, want := range map[string]string{
		"CUSTOM_MCP_SERVERS":  `{"custom":{"tracker":{"command":"tracker","args":["--read-only"]}},"disabled":["webfetch"]}`,
		"PROJECT_MCP_SERVERS": `{"custom":{"search":{"url":"https://search.example.com"}},"disabled":["webfetch"]}`,
	} {
		if got, _ := value(t, p, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// protected are the names that a session may not set; source: the contract.
var protected = []string{
	"AGENTIC_SESSION_NAME", "AGENTIC_SESSION_NAMESPACE", "SESSION_ID", "PROJECT_NAME", "AGUI_TOKEN", "USE_VERTEX", "CLAUDE_CODE_USE_VERTEX",
}

func TestCase38ReservedNamesAreNotOverridden(t *testing.T) {
	for _, plan := range plans {
		p := plan.plan()
		before := map[string]corev1.EnvVar{}
		for _, v := range environment(p) {
			before[v.Name] = v
		}
		p.Session.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{}
		p.Runtime.Env = map[string]string{"LLM_MODEL": p.Runtime.Env["LLM_MODEL"]}
		for _, name := range protected {
			p.Runtime.Env[name] = "stolen"
			p.Session.Spec.EnvironmentVariables[name] = "stolen"
		}
		for _, v := range environment(p) {
			if v.Value == "stolen" || slices.Contains(protected, v.Name) && !equality.Semantic.DeepEqual(v, before[v.Name]) {
				t.Errorf("%s: %s was overridden: %+v", plan.name, v.Name, v)
			}
		}
	}
}

func TestCase38ValuesOfSecretsAreNotOverridden(t *testing.T) {
	p := small()
	p.SecretKeys = []string{"ANTHROPIC_API_KEY", "GITHUB_TOKEN"}
	p.Session.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{
		"ANTHROPIC_API_KEY": "mine", "GITHUB_TOKEN": "mine", "AGUI_TOKEN": "mine", "GITLAB_TOKEN": "mine"}
	for _, name := range []string{"ANTHROPIC_API_KEY", "GITHUB_TOKEN"} {
		if got, found := value(t, p, name); found {
			t.Errorf("%s is %q; a variable of the container hides the Secret's", name, got)
		}
	}
	if got, _ := value(t, p, "GITLAB_TOKEN"); got != "mine" {
		t.Errorf("GITLAB_TOKEN, which no Secret has, is %q", got)
	}
	for _, v := range environment(p) {
		if v.Name == "AGUI_TOKEN" && (v.ValueFrom == nil || v.ValueFrom.SecretKeyRef.Name != "ambient-runner-token-hello" || v.ValueFrom.SecretKeyRef.Key != "agui-token") {
			t.Errorf("AGUI_TOKEN is %+v", v)
		}
	}
}

func TestASessionMayGiveItsParentInItsSpec(t *testing.T) {
	p := small()
	p.Session.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"PARENT_SESSION_ID": "session-9"}
	if got, _ := value(t, p, "PARENT_SESSION_ID"); got != "session-9" {
		t.Errorf("PARENT_SESSION_ID is %q", got)
	}
	// The workspace is that of the session in the annotation, so the runner is told of that one.
	p.Session.Annotations = map[string]string{v1alpha1.AnnotationParentSessionID: "session-8"}
	if got, _ := value(t, p, "PARENT_SESSION_ID"); got != "session-8" || workload.Parent(p.Session) != got {
		t.Errorf("PARENT_SESSION_ID is %q where the annotation names session-8", got)
	}
	if ignored := p.Ignored(); len(ignored) != 1 {
		t.Errorf("ignored: %v", ignored)
	}
}

func TestThePromptIsUsedOnTheFirstRunOnly(t *testing.T) {
	for _, c := range []struct {
		name   string
		run    int64
		ran    bool
		force  string
		resume bool
	}{
		{"first run", 1, false, "", false},
		{"second run", 2, true, "", true},
		{"second run, the first never started", 2, false, "", false},
		{"second run, forced", 2, true, "true", false},
		{"second run, another word", 2, true, "yes", true},
	} {
		p := small()
		p.Session.Status.Run, p.Session.Status.RanBefore = c.run, c.ran
		p.Session.Annotations = map[string]string{v1alpha1.AnnotationForceExecutePrompt: c.force}
		if got, _ := value(t, p, "IS_RESUME"); (got == "true") != c.resume {
			t.Errorf("%s: IS_RESUME is %q", c.name, got)
		}
		if got, _ := value(t, p, "INITIAL_PROMPT"); got != "Say hello." {
			t.Errorf("%s: INITIAL_PROMPT is %q", c.name, got)
		}
	}
}

func TestTheEnvironmentIsInOneOrder(t *testing.T) {
	names := func(p *workload.Plan) (names []string) {
		for _, v := range environment(p) {
			names = append(names, v.Name)
		}
		return names
	}
	p := full()
	for i := range 50 {
		p.Session.Spec.EnvironmentVariables[fmt.Sprintf("X%02d", i)] = "x"
	}
	first := names(p)
	own := first[slices.Index(first, "APPLE"):]
	if !slices.IsSorted(own) {
		t.Errorf("the session's own variables are in the order %v", own)
	}
	if len(first) != len(slices.Compact(slices.Sorted(slices.Values(first)))) {
		t.Errorf("a name stands twice: %v", first)
	}
	for range 20 {
		if again := names(p); !slices.Equal(first, again) {
			t.Fatalf("once %v, once %v", first, again)
		}
	}
}

func FuzzValuesAreLiteral(f *testing.F) {
	for _, s := range []string{"", "plain", "$(HOME)", "$$(HOME)", "$", "$$", "costs $5", "a$", "$(", "$()", "$$$(X)$", "((($", "\n$(PATH)\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := small()
		p.Session.Spec.InitialPrompt = s
		p.Session.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"OWN": v1alpha1.EnvironmentValue(s)}
		for _, name := range []string{"INITIAL_PROMPT", "OWN"} {
			if got, _ := value(t, p, name); got != s {
				t.Errorf("%s is %q, want %q", name, got, s)
			}
		}
	})
}
