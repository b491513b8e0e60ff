package workload_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
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
		if len(problems) > 0 || one.Name == "" || one.Status.Run < 0 || one.Status.Run > 1_000_000 {
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
