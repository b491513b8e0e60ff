package workload_test

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// small is a session that says no more than it must, as the API server's defaults complete it.
func small() *workload.Plan {
	timeout := int64(300)
	temperature := 0.7
	return &workload.Plan{
		Session: &v1alpha1.AgenticSession{
			ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "project", UID: "0a1b2c3d-0000-4000-8000-000000000001"},
			Spec: v1alpha1.AgenticSessionSpec{
				InitialPrompt: "Say hello.",
				Timeout:       &timeout,
				LLMSettings:   v1alpha1.LLMSettings{Model: "claude-sonnet-4-6", Temperature: &temperature, MaxTokens: 4000},
			},
			Status: v1alpha1.AgenticSessionStatus{Phase: v1alpha1.PhaseCreating, Run: 1},
		},
		Runtime: runtimes.Default("quay.io/ambient_code/vteam_claude_runner:1.2.3"),
		Operator: workload.Operator{
			BackendNamespace: "ambient-code",
			ImagePullPolicy:  corev1.PullIfNotPresent,
			JobDeadline:      900,
		},
	}
}

// full is a session with all that can be said, on its second run, where everything is switched on.
func full() *workload.Plan {
	p := small()
	group := int64(1001)
	s := p.Session
	s.Name = "session-3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	s.Annotations = map[string]string{v1alpha1.AnnotationParentSessionID: "session-0"}
	s.Status.Run, s.Status.RanBefore = 2, true
	s.Spec.InitialPrompt = "Keep $(HOME) and $$ as they are."
	s.Spec.UserContext = &v1alpha1.UserContext{UserID: "ada@example.com", DisplayName: "Ada", Groups: []string{"staff"}}
	s.Spec.Interactive = true
	s.Spec.StopOnRunFinished = true
	s.Spec.Repos = []v1alpha1.Repo{
		{URL: "https://git.example.com/team/app.git", Branch: "main", AutoPush: true},
		{URL: "git@git.example.com:team/docs.git", Branch: "next"},
	}
	s.Spec.ActiveWorkflow = &v1alpha1.Workflow{GitURL: "https://git.example.com/team/workflows", Branch: "main", Path: "review"}
	s.Spec.MCPServers = mcp("tracker", `{"command":"tracker","args":["--read-only"]}`)
	s.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{
		"ARTIFACTS_DIR": "results",
		"ZEBRA":         "last",
		"APPLE":         "first",
		"USE_VERTEX":    "0",
		"GITHUB_TOKEN":  "not from the Secret",
	}
	p.SecretKeys = []string{"ANTHROPIC_API_KEY", "GITHUB_TOKEN"}
	p.Project = &v1alpha1.ProjectSettings{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationRunnersManageSessions: "true"}},
		Spec:       v1alpha1.ProjectSettingsSpec{RunnerSecretsName: "team-keys", MCPServers: mcp("search", `{"url":"https://search.example.com"}`)},
	}
	p.TrustedCA = true
	p.Runtime.Env = map[string]string{"RUNNER_TYPE": "claude-agent-sdk", "LLM_MODEL": "claude-opus-4-6"}
	p.Operator.ImagePullPolicy = corev1.PullAlways
	p.Operator.FSGroup = &group
	p.Operator.Vertex = workload.Vertex{Enabled: true, Region: "europe-west1", ProjectID: "example", Credentials: "/app/vertex/key.json"}
	p.Operator.Proxy = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy.example.com:3128"}, {Name: "NO_PROXY", Value: ".svc"}}
	return p
}

// other is a session of a runner type that differs from the built-in one in everything.
func other() *workload.Plan {
	p := small()
	p.Runtime = runtimes.Runtime{
		ID: "other-sdk", Image: "registry.example.com/other@sha256:" + digest, Port: 9000, StateDir: ".other/state", GracePeriod: 5,
		WorkspaceSize: resource.MustParse("1Gi"),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		},
	}
	none := int64(0)
	p.Session.Spec.Timeout = &none
	p.Operator.JobDeadline = 0
	return p
}

// kept is a session whose workspace is kept in S3, in the storage that all projects share.
func kept() *workload.Plan {
	p := small()
	p.Runtime.StateSyncImage = "registry.example.com/state-sync@sha256:" + digest
	p.Runtime.Persistence = runtimes.S3
	p.Runtime.Seed = runtimes.Seed{CloneRepos: true, HydrateState: true}
	p.Runtime.Env = map[string]string{"RUNNER_TYPE": "claude-agent-sdk", "S3_BUCKET": "not this one"}
	p.Operator.Namespace = "ambient-code"
	p.Operator.S3Endpoint = "http://minio.ambient-code.svc:9000"
	p.Operator.S3Bucket = "ambient-sessions"
	p.Operator.Proxy = []corev1.EnvVar{{Name: "NO_PROXY", Value: ".svc"}}
	p.TrustedCA = true
	p.Session.Spec.Repos = []v1alpha1.Repo{{URL: "https://git.example.com/team/app.git", Branch: "main"}}
	p.Session.Spec.ActiveWorkflow = &v1alpha1.Workflow{GitURL: "https://git.example.com/team/workflows", Branch: "main", Path: "review"}
	p.Session.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{
		"GREETING": "hello", "AWS_SECRET_ACCESS_KEY": "stolen", "S3_ENDPOINT": "http://elsewhere.example.com", "BOT_TOKEN": "stolen",
	}
	shared := map[string][]byte{"access-key": []byte("not a key"), "secret-key": []byte("not a key either")}
	p.Storage, _ = workload.StorageOf(p.Session.Name, p.Session.Namespace, nil, shared, &p.Operator)
	return p
}

// elsewhere is one whose project has a storage of its own, of a type that clones no repositories.
func elsewhere() *workload.Plan {
	p := kept()
	p.Runtime.StateDir = ".other/state"
	p.Runtime.Seed.CloneRepos = false
	p.Storage, _ = workload.StorageOf(p.Session.Name, p.Session.Namespace, map[string][]byte{
		"STORAGE_MODE": []byte("custom"), "S3_ENDPOINT": []byte("https://s3.example.com"), "S3_BUCKET": []byte("team"),
		"S3_ACCESS_KEY": []byte("not a key"), "S3_SECRET_KEY": []byte("not a key either"),
	}, nil, &p.Operator)
	return p
}

// passing is a session whose workspace is not kept.
func passing() *workload.Plan {
	p := small()
	p.Runtime.Persistence = runtimes.None
	return p
}

// cloned is one whose repositories are cloned onto its volume before the runner starts.
func cloned() *workload.Plan {
	p := kept()
	p.Runtime.Persistence = runtimes.Volume
	p.Storage = workload.Storage{}
	return p
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func mcp(name, settings string) *v1alpha1.MCPServers {
	return &v1alpha1.MCPServers{
		Custom:   map[string]v1alpha1.MCPServer{name: {RawExtension: runtime.RawExtension{Raw: []byte(settings)}}},
		Disabled: []string{"webfetch"},
	}
}

var plans = []struct {
	name string
	plan func() *workload.Plan
}{
	{"small", small},
	{"full", full},
	{"other-runtime", other},
	{"persistence-none", passing},
	{"persistence-pvc", cloned},
	{"persistence-s3", kept},
	{"persistence-s3-own", elsewhere},
}
