package workload_test

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

func named(name string) *v1alpha1.AgenticSession {
	s := &v1alpha1.AgenticSession{}
	s.Name = name
	return s
}

// checkNames says which name of a session's objects Kubernetes would refuse.
func checkNames(t *testing.T, session string) {
	t.Helper()
	for kind, name := range map[string]string{
		"ServiceAccount": workload.ServiceAccountName(session), "Role": workload.RoleName(session), "RoleBinding": workload.RoleBindingName(session),
		"Secret": workload.TokenSecretName(session), "PersistentVolumeClaim": workload.WorkspaceName(session),
	} {
		if wrong := validation.IsDNS1123Subdomain(name); wrong != nil {
			t.Errorf("%s %q: %v", kind, name, wrong)
		}
	}
	for kind, name := range map[string]string{
		"Service": workload.ServiceName(session), "Job": workload.JobName(session, 1), "Job of the millionth run": workload.JobName(session, 999_999), "label": session,
	} {
		if wrong := validation.IsDNS1123Label(name); wrong != nil {
			t.Errorf("%s %q: %v", kind, name, wrong)
		}
	}
	if wrong := validation.IsDNS1035Label(workload.ServiceName(session)); wrong != nil {
		t.Errorf("Service %q: %v", workload.ServiceName(session), wrong)
	}
}

func TestNames(t *testing.T) {
	for _, session := range []string{"a", "0", "hello", "session-3f2504e0-4f89-41d3-9a0c-0305e82c3301", "a-run-1", strings.Repeat("x", 52)} {
		if problems := workload.Problems(named(session)); problems != nil {
			t.Errorf("%q: %v", session, problems)
		}
		checkNames(t, session)
	}
	const s = "session-3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	for got, want := range map[string]string{
		workload.ServiceAccountName(s): "ambient-session-" + s,
		workload.RoleName(s):           "ambient-session-" + s + "-role",
		workload.RoleBindingName(s):    "ambient-session-" + s + "-rb",
		workload.TokenSecretName(s):    "ambient-runner-token-" + s,
		workload.WorkspaceName(s):      "ambient-workspace-" + s,
		workload.ServiceName(s):        "session-" + s,
		workload.JobName(s, 12):        s + "-run-12",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	with := func(change func(*v1alpha1.AgenticSession)) *v1alpha1.AgenticSession {
		s := named("hello")
		change(s)
		return s
	}
	repos := func(urls ...string) func(*v1alpha1.AgenticSession) {
		return func(s *v1alpha1.AgenticSession) {
			for _, url := range urls {
				s.Spec.Repos = append(s.Spec.Repos, v1alpha1.Repo{URL: url})
			}
		}
	}
	timeout := func(seconds int64) func(*v1alpha1.AgenticSession) {
		return func(s *v1alpha1.AgenticSession) { s.Spec.Timeout = &seconds }
	}
	for _, c := range []struct {
		name    string
		session *v1alpha1.AgenticSession
		// each is a part that a problem must have, in order; none means no problem.
		problems []string
	}{
		{"ordinary", with(repos("https://example.com/a.git", "git@example.com:b.git")), nil},
		{"name of 53 characters", named(strings.Repeat("x", 53)), []string{"at most 52"}},
		{"name with a dot", named("a.b"), []string{"cannot name"}},
		{"name that ends with a dash", named("a-"), []string{"cannot name"}},
		{"no name", named(""), []string{"cannot name"}},
		{"the longest prompt", with(func(s *v1alpha1.AgenticSession) { s.Spec.InitialPrompt = strings.Repeat("x", 128*1024-256) }), nil},
		{"case 44: an enormous prompt", with(func(s *v1alpha1.AgenticSession) { s.Spec.InitialPrompt = strings.Repeat("x", 1<<20) }), []string{"shorten it"}},
		{"a prompt is measured in bytes", with(func(s *v1alpha1.AgenticSession) { s.Spec.InitialPrompt = strings.Repeat("字", 50_000) }), []string{"150000 bytes"}},
		{"negative timeout", with(timeout(-1)), []string{"set it to 0"}},
		{"no timeout", with(timeout(0)), nil},
		{"two repositories of one name", with(repos("https://a.example.com/x/app.git", "https://b.example.com/y/app")), []string{`"app"`}},
		{"three of one name", with(repos("https://a.example.com/app", "https://b.example.com/app", "https://c.example.com/app")), []string{`"app"`, `"app"`}},
		{"a repository without a name", with(repos("https://example.com/.git")), []string{"does not end in a name"}},
		{"a repository that would leave the workspace", with(repos("https://example.com/a/..", "https://example.com/a/.")), []string{"does not end in a name", "does not end in a name"}},
		{"all at once", with(func(s *v1alpha1.AgenticSession) { s.Name = "A"; timeout(-1)(s); repos("http://h/x", "http://g/x")(s) }), []string{"cannot name", "negative", `"x"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := workload.Problems(c.session)
			if len(got) != len(c.problems) {
				t.Fatalf("%d problems, want %d: %q", len(got), len(c.problems), got)
			}
			for i, part := range c.problems {
				if !strings.Contains(got[i], part) {
					t.Errorf("problem %q does not have %q", got[i], part)
				}
			}
		})
	}
}

func TestSessionOfJob(t *testing.T) {
	for name, want := range map[string]string{
		"hello-run-1":          "hello",
		"hello-run-120":        "hello",
		"a-run-1-run-2":        "a-run-1",
		"hello-run-0":          "",
		"hello-run-01":         "",
		"hello-run-":           "",
		"hello-run-x":          "",
		"-run-1":               "",
		"hello":                "",
		"":                     "",
		"hello-run-1-xyz":      "",
		"nightly-cleanup-1234": "",
	} {
		if got := workload.SessionOfJob(name); got != want {
			t.Errorf("%q is of session %q, want %q", name, got, want)
		}
	}
}

func FuzzSessionOfJob(f *testing.F) {
	f.Add("hello", int64(1))
	f.Add("a-run-1", int64(2))
	f.Add("-run-", int64(99))
	f.Fuzz(func(t *testing.T, session string, run int64) {
		if workload.SessionOfJob(session) == session && session != "" {
			t.Errorf("%q is a Job of itself", session)
		}
		if strings.Contains(session, "\n") || session == "" || run < 1 {
			return
		}
		if got := workload.SessionOfJob(workload.JobName(session, run)); got != session {
			t.Errorf("the Job of run %d of %q is of %q", run, session, got)
		}
		if got := workload.RunOfJob(workload.JobName(session, run)); got != run && (got != 0 || run < 1_000_000) {
			t.Errorf("the Job of run %d of %q is of run %d", run, session, got)
		}
	})
}

func FuzzRepoName(f *testing.F) {
	for _, url := range []string{"https://example.com/a.git", "git@h:p/q.git", "x", "", "/", ":", ".git", "https://h/.git", "https://h/..", "a/.git/", "https://h/a.git.git"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		name := (&v1alpha1.Repo{URL: url}).Name()
		if strings.ContainsAny(name, "/:") {
			t.Errorf("%q names the folder %q", url, name)
		}
		if !strings.Contains(url, name) {
			t.Errorf("%q names the folder %q, which is no part of it", url, name)
		}
		s := named("hello")
		s.Spec.Repos = []v1alpha1.Repo{{URL: url}}
		inside := filepath.Base(filepath.Join("workspace", name)) == name
		if problems := workload.Problems(s); inside != (problems == nil) {
			t.Errorf("%q names the folder %q, inside the workspace: %t; problems: %q", url, name, inside, problems)
		}
	})
}

func FuzzProblems(f *testing.F) {
	f.Add("hello", "prompt", int64(300), "https://h/a", "https://h/b")
	f.Add(strings.Repeat("x", 60), "", int64(-1), "x", "x")
	f.Add("a.b", "$(x)", int64(0), "", "")
	f.Fuzz(func(t *testing.T, name, prompt string, timeout int64, one, two string) {
		s := named(name)
		s.Spec.InitialPrompt, s.Spec.Timeout = prompt, &timeout
		s.Spec.Repos = []v1alpha1.Repo{{URL: one}, {URL: two}}
		problems := workload.Problems(s)
		for _, problem := range problems {
			if problem == "" {
				t.Error("an empty problem")
			}
		}
		if len(problems) > 0 {
			return
		}
		checkNames(t, name)
		if timeout < 0 || (&v1alpha1.Repo{URL: one}).Name() == (&v1alpha1.Repo{URL: two}).Name() {
			t.Errorf("timeout %d and the repositories %q and %q are no problem", timeout, one, two)
		}
	})
}
