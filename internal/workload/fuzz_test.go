package workload_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// FuzzSession describes whole sessions, as anybody may write them: whatever passes for right makes
// objects that the API server takes, the same each time, and says the session's name.
func FuzzSession(f *testing.F) {
	for _, p := range []*workload.Plan{small(), full(), other(), kept(), elsewhere(), passing(), cloned()} {
		text, err := json.Marshal(p.Session)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"", "null", "{}", `{"metadata":{"name":"a","annotations":null},"spec":{"repos":[{}],"environmentVariables":{"":"","A=B":"x","PATH":null}}}`,
		`{"metadata":{"name":"a"},"spec":{"timeout":-9223372036854775808,"llmSettings":{"temperature":1e308,"maxTokens":-1},"mcpServers":{"custom":{"a":null},"disabled":[""]}}}`,
		`{"metadata":{"name":"a"},"status":{"run":9223372036854775807}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		one, two := &v1alpha1.AgenticSession{}, &v1alpha1.AgenticSession{}
		if json.Unmarshal(text, one) != nil || json.Unmarshal(text, two) != nil {
			return
		}
		if workload.Parent(one) == one.Name && one.Name != "" {
			t.Error("the session continues itself")
		}
		problems := workload.Problems(one)
		if strings.Contains(strings.Join(problems, ""), "%!") {
			t.Errorf("a problem is badly told: %q", problems)
		}
		if len(problems) > 0 || one.Name == "" {
			return
		}
		one.Namespace, two.Namespace = "project", "project"
		described(t, one, two)
	})
}

// described checks what is made for a session, from two equal descriptions of it.
func described(t *testing.T, one, two *v1alpha1.AgenticSession) {
	t.Helper()
	for _, base := range []func() *workload.Plan{small, full, kept} {
		p, again := base(), base()
		p.Session, again.Session = one, two
		job := p.Job(one.Status.Run)
		if !equality.Semantic.DeepEqual(job, again.Job(two.Status.Run)) {
			t.Error("another Job is made of the same session")
		}
		for _, object := range []metav1.Object{job, p.ServiceAccount(), p.Role(), p.RoleBinding(), p.Workspace(), p.Service(), p.TokenSecret(1)} {
			for key, value := range object.GetLabels() {
				if wrong := validation.IsValidLabelValue(value); wrong != nil {
					t.Errorf("%T has the label %s=%q: %v", object, key, value, wrong)
				}
			}
			if wrong := validation.IsDNS1123Subdomain(object.GetName()); wrong != nil {
				t.Errorf("%T is called %q: %v", object, object.GetName(), wrong)
			}
		}
		checkNames(t, one.Name)
		checkVariables(t, job.Spec.Template.Spec.Containers[0].Env)
	}
}

// checkVariables: no variable stands twice, and those that identify a session are the operator's.
func checkVariables(t *testing.T, env []corev1.EnvVar) {
	t.Helper()
	seen := map[string]bool{}
	for _, variable := range env {
		if seen[variable.Name] {
			t.Errorf("variable %q stands twice", variable.Name)
		}
		seen[variable.Name] = true
		if wrong := validation.IsEnvVarName(variable.Name); wrong != nil {
			t.Errorf("variable %q: %v", variable.Name, wrong)
		}
		if variable.Name == "PROJECT_NAME" && variable.Value != "project" {
			t.Errorf("the session is told to be in project %q", variable.Value)
		}
	}
}

// FuzzHold reads who uses a workspace: what is written is read back, and nothing else counts.
func FuzzHold(f *testing.F) {
	for _, s := range []string{"", "a/b/1", "a/b/-1", "a/b/1x", "//", "a/b/c/d", "a/b/9999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationWorkspaceUser: text}}}
		hold := workload.HoldOf(claim)
		if hold == (workload.Hold{}) {
			return
		}
		claim.Annotations[v1alpha1.AnnotationWorkspaceUser] = hold.String()
		if again := workload.HoldOf(claim); again != hold {
			t.Errorf("%q is %+v, and written anew %+v", text, hold, again)
		}
	})
}

// FuzzStorage reads where workspaces are kept: either all that is needed is there, or something is said
// to be missing; credentials that all share go to no bucket but the operator's.
func FuzzStorage(f *testing.F) {
	f.Add("", "", "", "", "")
	f.Add("custom", "https://s3.example.com", "bucket", "key", "secret")
	f.Add("custom", "https://own.example.com", "own", "", "")
	f.Add(" shared\n", "x", "x", "x", "x")
	f.Add("Custom", "", "", "", "")
	f.Fuzz(func(t *testing.T, mode, endpoint, bucket, access, secret string) {
		operator := &workload.Operator{Namespace: "agentic", S3Endpoint: "https://s3.example.com", S3Bucket: "bucket"}
		data := map[string][]byte{"STORAGE_MODE": []byte(mode), "S3_ENDPOINT": []byte(endpoint), "S3_BUCKET": []byte(bucket), "S3_ACCESS_KEY": []byte(access), "S3_SECRET_KEY": []byte(secret)}
		shared := map[string][]byte{"accesskey": []byte("a"), "secretkey": []byte("b")}
		storage, missing := workload.StorageOf("a", "project", data, shared, operator)
		for _, setting := range []workload.Setting{storage.Endpoint, storage.Bucket, storage.AccessKey, storage.SecretKey} {
			if setting == (workload.Setting{}) && len(missing) == 0 {
				t.Errorf("something is missing, and nothing is said: %+v", storage)
			}
			if text := strings.Join(missing, ""); secret != "" && len(secret) > 8 && strings.Contains(text, secret) {
				t.Errorf("a secret is told: %s", text)
			}
		}
		foreign := func(key, ours string) bool {
			return strings.TrimSpace(string(data[key])) != "" && strings.TrimSpace(string(data[key])) != ours
		}
		if storage.Shared && strings.TrimSpace(mode) == "custom" && (foreign("S3_ENDPOINT", operator.S3Endpoint) || foreign("S3_BUCKET", operator.S3Bucket)) {
			t.Errorf("the shared credentials are given for %q %q", endpoint, bucket)
		}
	})
}

// FuzzFollow reads what a Job says of its run, as anybody may have rewritten it: what comes of it is a plan
// whose objects the API server takes, and credentials that all share go to no run that is not kept in S3.
func FuzzFollow(f *testing.F) {
	for _, p := range []*workload.Plan{small(), other(), kept(), passing()} {
		p.Continued = "parent"
		a := p.Job(1).Annotations
		f.Add(a[v1alpha1.AnnotationRunnerType], a[v1alpha1.AnnotationRunnerPort], a[v1alpha1.AnnotationPersistence], a[v1alpha1.AnnotationStorageShared], a[v1alpha1.AnnotationContinuedSession])
	}
	f.Add("", "0", "S3", "TRUE", "../other")
	f.Add("x", "65536", "s3 ", "true", "a b")
	f.Add("%!", "-1", "none", "true", strings.Repeat("a", 300))
	f.Fuzz(func(t *testing.T, kind, port, persistence, shared, continued string) {
		job := &batchv1.Job{}
		job.Annotations = map[string]string{v1alpha1.AnnotationRunnerType: kind, v1alpha1.AnnotationRunnerPort: port, v1alpha1.AnnotationPersistence: persistence, v1alpha1.AnnotationStorageShared: shared, v1alpha1.AnnotationContinuedSession: continued}
		p := small()
		p.Follow(job)
		if port := p.Service().Spec.Ports[0].Port; port < 1 || port > 65535 {
			t.Errorf("the runner serves on port %d", port)
		}
		kinds := 0
		for _, is := range []bool{p.KeptInS3(), persistence == string(runtimes.None), p.Volumeless() == ""} {
			if is {
				kinds++
			}
		}
		if kinds != 1 || p.KeptInS3() != (persistence == string(runtimes.S3)) {
			t.Errorf("with persistence %q the workspace is volumeless because of %q, and in S3: %t", persistence, p.Volumeless(), p.KeptInS3())
		}
		if p.Storage.Shared && (!p.KeptInS3() || shared != "true") {
			t.Errorf("with persistence %q and %q the shared credentials are used", persistence, shared)
		}
		for _, volume := range p.Job(1).Spec.Template.Spec.Volumes {
			if claim := volume.PersistentVolumeClaim; claim != nil && validation.IsDNS1123Subdomain(claim.ClaimName) != nil {
				t.Errorf("the run works in the claim %q", claim.ClaimName)
			}
		}
		// What a plan writes on a Job is what it reads there.
		again := small()
		again.Follow(p.Job(1))
		if again.Runtime.ID != p.Runtime.ID || again.Runtime.Port != p.Runtime.Port || again.Volumeless() != p.Volumeless() || again.Continued != p.Continued || again.Storage.Shared != p.Storage.Shared {
			t.Errorf("%+v is followed as %+v", p.Runtime, again.Runtime)
		}
	})
}

// FuzzProjectSettings hands on settings as anybody may write them: the same each time, as JSON that says
// the same, under names that a Secret can have, and never more than a runner can be started with.
func FuzzProjectSettings(f *testing.F) {
	for _, text := range []string{"null", "{}", `{"spec":{"mcpServers":null}}`, `{"spec":{"mcpServers":{"custom":{"a":{"command":"$(HOME)","args":["$$"]}},"disabled":["b"]}}}`, `{"spec":{"mcpServers":{"custom":{"a":null,"":[]}}}}`,
		`{"spec":{"runnerSecretsName":"team-keys","inactivityTimeoutSeconds":-9223372036854775808}}`, `{"spec":{"groupAccess":[{}],"repositories":[{}]}}`, `{"metadata":{"annotations":{"ambient-code.io/runners-manage-sessions":"yes"}}}`,
		`{"spec":{"mcpServers":{"disabled":["` + strings.Repeat("x", 200_000) + `"]}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		one, two := &v1alpha1.ProjectSettings{}, &v1alpha1.ProjectSettings{}
		if json.Unmarshal(text, one) != nil || json.Unmarshal(text, two) != nil {
			return
		}
		for _, base := range []func() *workload.Plan{small, full, kept} {
			p, again := base(), base()
			p.Project, again.Project = one, two
			if p.Oversized() != "" {
				continue // no run begins
			}
			job := p.Job(1)
			if !equality.Semantic.DeepEqual(job, again.Job(1)) || !equality.Semantic.DeepEqual(p.Role(), again.Role()) {
				t.Error("other objects are made of the same settings")
			}
			checkVariables(t, job.Spec.Template.Spec.Containers[0].Env)
			checkServers(t, one.Spec.MCPServers, job.Spec.Template.Spec.Containers[0].Env)
			if own := one.Spec.RunnerSecretsName; p.RunnerSecret() == "" || own != "" && p.RunnerSecret() != own {
				t.Errorf("the runner Secret %q is called %q", own, p.RunnerSecret())
			}
		}
	})
}

// checkServers: what a runner is told of the project's servers is what the settings say.
func checkServers(t *testing.T, servers *v1alpha1.MCPServers, env []corev1.EnvVar) {
	t.Helper()
	for _, variable := range env {
		if size := len(strings.ReplaceAll(variable.Value, "$$", "$")); size >= 128*1024-len(variable.Name)-1 {
			t.Errorf("variable %s has %d bytes, with which no program starts", variable.Name, size)
		}
		if variable.Name != "PROJECT_MCP_SERVERS" {
			continue
		}
		var said, meant any
		text, err := json.Marshal(servers)
		if err != nil {
			t.Fatal(err)
		}
		value := strings.ReplaceAll(variable.Value, "$$", "$") // as a kubelet does
		if !strings.Contains(string(text), "$(") && !strings.Contains(string(text), "$$") {
			value = variable.Value
		}
		if err := json.Unmarshal([]byte(value), &said); err != nil || json.Unmarshal(text, &meant) != nil || !reflect.DeepEqual(said, meant) {
			t.Errorf("the settings %s are told as %s: %v", text, variable.Value, err)
		}
		return
	}
	if servers != nil {
		t.Error("the runner is not told of the project's servers")
	}
}
