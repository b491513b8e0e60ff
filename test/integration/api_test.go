package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// strictly creates an object as kubectl does with --validate=strict.
func strictly(ctx context.Context, kind, namespace, name string, spec any, options ...client.CreateOption) error {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	return suite.admin.Create(ctx, object, append(options, client.FieldValidation(metav1.FieldValidationStrict))...)
}

// TestCase69BadInputIsRefused: what cannot be run is refused with a sentence that says what to do.
func TestCase69BadInputIsRefused(t *testing.T) {
	p := share(t)
	repo := func(urls ...string) map[string]any {
		var repos []any
		for _, url := range urls {
			repos = append(repos, map[string]any{"url": url})
		}
		return map[string]any{"repos": repos}
	}
	type bad struct {
		kind, name string
		spec       map[string]any
		says       string
	}
	session := func(spec map[string]any, says string) bad { return bad{"AgenticSession", "bad", spec, says} }
	settings := func(spec map[string]any, says string) bad {
		return bad{"ProjectSettings", "projectsettings", spec, says}
	}
	groups := func(entries ...any) map[string]any { return map[string]any{"groupAccess": entries} }
	for i, c := range []bad{
		session(map[string]any{"project": "x"}, `unknown field "spec.project"`),
		session(map[string]any{"llmSettings": map[string]any{"modell": "x"}}, `unknown field "spec.llmSettings.modell"`),
		session(map[string]any{"timeout": -1}, "timeout must be 0 (no limit) or a positive number"),
		session(map[string]any{"timeout": 31536001}, "use 0 for no limit"),
		session(map[string]any{"timeout": "5m"}, "must be of type integer"),
		session(map[string]any{"inactivityTimeout": -1}, "inactivityTimeout must be 0 (off)"),
		session(map[string]any{"llmSettings": map[string]any{"temperature": 2.1}}, "less than or equal to 2"),
		session(map[string]any{"llmSettings": map[string]any{"maxTokens": 0}}, "greater than or equal to 1"),
		session(map[string]any{"llmSettings": map[string]any{"model": ""}}, "at least 1 chars"),
		session(map[string]any{"initialPrompt": strings.Repeat("x", 120001)}, "120000"),
		session(repo("ftp://host/x"), "must have the form https://host/path"),
		session(repo("/local/path"), "must have the form https://host/path"),
		session(repo("https://host/"), "must have the form https://host/path"),
		session(repo("git@host"), "git@host:path"),
		session(repo("https://a/x/app.git", "git@b:y/app"), "two repositories have the same name"),
		session(repo("https://a/x/app.github", "https://b/y/app.github.git"), "two repositories have the same name"),
		session(map[string]any{"repos": []any{map[string]any{"branch": "main"}}}, "spec.repos[0].url: Required"),
		session(map[string]any{"activeWorkflow": map[string]any{"gitUrl": "no"}}, "gitUrl must have the form"),
		session(map[string]any{"environmentVariables": map[string]any{"A=B": "c"}}, "a name in environmentVariables must begin with"),
		session(map[string]any{"environmentVariables": map[string]any{"1A": "c"}}, "a name in environmentVariables must begin with"),
		{"AgenticSession", strings.Repeat("a", 53), map[string]any{}, "at most 52"},
		{"AgenticSession", "with.dot", map[string]any{}, "without dots"},
		{"AgenticSession", "Upper", map[string]any{}, "lower case"},
		{"ProjectSettings", "other", map[string]any{"groupAccess": []any{}}, "projectsettings"},
		settings(map[string]any{}, "spec.groupAccess: Required"),
		settings(groups(map[string]any{"groupName": "g", "role": "owner"}), `"admin", "edit", "view"`),
		settings(groups(map[string]any{"groupName": "g"}), "role: Required"),
		settings(groups(map[string]any{"groupName": "system:authenticated", "role": "view"}), "system:authenticated"),
		settings(map[string]any{"groupAccess": []any{}, "inactivityTimeoutSeconds": -1}, "inactivityTimeoutSeconds"),
		settings(map[string]any{"groupAccess": []any{}, "repositories": []any{map[string]any{"url": "https://a/b", "provider": "svn"}}}, `"github", "gitlab"`),
	} {
		err := strictly(p.ctx, c.kind, p.name, c.name, c.spec)
		if err == nil {
			t.Errorf("%d: %s %v was accepted", i, c.kind, shorten(fmt.Sprint(c.spec)))
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d: the answer %q does not say %q", i, shorten(err.Error()), c.says)
		}
	}
	// Only at its end ".git" is no part of a repository's name.
	similar := repo("https://a/x/app", "https://a/x/app.github", "https://a/x/app.gitlab", "https://a/x/my.git-app", "https://a/x/my-app", "https://a/x/app.git.git")
	if err := strictly(p.ctx, "AgenticSession", p.name, "similar", similar); err != nil {
		t.Errorf("repositories with similar names are refused: %v", err)
	}
	s := p.session("good", "hang")
	s.reaches(running)
	for _, status := range []string{`{"status":{"phase":"Sleeping"}}`, `{"status":{"stoppedReason":"bored"}}`, `{"status":{"conditions":[{"type":"Ready"}]}}`} {
		if err := suite.admin.Status().Patch(p.ctx, s.object(), client.RawPatch("application/merge-patch+json", []byte(status))); err == nil {
			t.Errorf("the status %s was accepted", status)
		}
	}
}

// heardWarnings keeps what the API server warns of.
type heardWarnings struct{ texts []string }

func (h *heardWarnings) HandleWarningHeader(_ int, _, text string) { h.texts = append(h.texts, text) }

// forget returns the warnings so far.
func (h *heardWarnings) forget() []string {
	texts := slices.Sorted(slices.Values(h.texts))
	h.texts = nil
	return texts
}

// TestCase69WarningsNameWhatIsDropped: a client that does not ask for strict validation, as most do not, is
// warned of each field that the API does not know, by its path; what is right has no warning.
func TestCase69WarningsNameWhatIsDropped(t *testing.T) {
	p := share(t)
	heard := &heardWarnings{}
	config := adminConfig(suite.cluster)
	config.WarningHandler = heard
	warned, err := client.New(config, client.Options{Scheme: suite.scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		spec     map[string]any
		warnings []string
	}{
		{"fine", map[string]any{"initialPrompt": "hang", "repos": []any{map[string]any{"url": "https://a/b"}}, "mcpServers": map[string]any{"custom": map[string]any{"a": map[string]any{"any": "thing"}}}}, nil},
		{"elsewhere", map[string]any{"initialPrompt": "hang", "project": "x"}, []string{`unknown field "spec.project"`}},
		{"misspelt", map[string]any{
			"prompt": "hang", "llmSettings": map[string]any{"modell": "x"}, "repos": []any{map[string]any{"url": "https://a/b", "ref": "main"}},
		}, []string{`unknown field "spec.llmSettings.modell"`, `unknown field "spec.prompt"`, `unknown field "spec.repos[0].ref"`}},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": c.spec}}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AgenticSession"))
		object.SetNamespace(p.name)
		object.SetName(c.name)
		if err := warned.Create(p.ctx, object); err != nil {
			t.Errorf("%s: it is refused: %v", c.name, err)
			continue
		}
		if got := heard.forget(); !slices.Equal(got, c.warnings) {
			t.Errorf("%s: the warnings are %q, want %q", c.name, got, c.warnings)
		}
		for _, field := range []string{"project", "prompt"} {
			if _, kept, err := unstructured.NestedFieldNoCopy(object.Object, "spec", field); kept || err != nil {
				t.Errorf("%s: spec.%s is stored (%v)", c.name, field, err)
			}
		}
	}
	p.settings("are there", exist)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"groups":[],"inactivityTimeoutSeconds":600}}`))
	if err := warned.Patch(p.ctx, p.settingsObject(), patch); err != nil {
		t.Fatal(err)
	}
	if got := heard.forget(); !slices.Equal(got, []string{`unknown field "spec.groups"`}) {
		t.Errorf("the settings' warnings are %q", got)
	}
}

// TestCase67Waiting: kubectl wait ends when it should, also after an edit of an ended session.
func TestCase67Waiting(t *testing.T) {
	p := share(t)
	wait := func(name, what string) {
		t.Helper()
		out, err := runKubectl(p.ctx, "", "-n", p.name, "wait", "--for="+what, "agenticsession/"+name, "--timeout=60s")
		if err != nil {
			t.Errorf("waiting for %s of session %s: %v: %s", what, name, err, out)
		}
	}
	done, failed, kept := p.session("done", "sleep 1\nexit 0"), p.session("failed", "sleep 1\nexit 1"), p.session("kept", "hang")
	wait("kept", "condition=Ready")
	wait("done", "condition=Completed")
	wait("failed", "condition=Failed")
	wait("kept", "jsonpath={.status.phase}=Running")
	kept.stop()
	wait("kept", "jsonpath={.status.phase}=Stopped")
	wait("kept", "condition=Ready=false")
	for _, s := range []*session{done, failed, kept} {
		p.patch(s.object(), `{"spec":{"displayName":"edited"}}`)
		s.until("observes its new generation", func(object *v1alpha1.AgenticSession) error {
			if object.Status.ObservedGeneration != object.Generation || object.Generation < 2 {
				return fmt.Errorf("observed %d of %d", object.Status.ObservedGeneration, object.Generation)
			}
			for _, c := range object.Status.Conditions {
				if c.ObservedGeneration != object.Generation {
					return fmt.Errorf("condition %s observed %d of %d", c.Type, c.ObservedGeneration, object.Generation)
				}
			}
			return nil
		})
	}
	wait("done", "condition=Completed")
	wait("failed", "condition=Failed")
}

// TestKubectlReadsWell: what kubectl explains and shows is meant for people.
func TestKubectlReadsWell(t *testing.T) {
	p := share(t)
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := runKubectl(p.ctx, "", append([]string{"-n", p.name}, args...)...)
		if err != nil {
			t.Fatalf("kubectl %v: %v: %s", args, err, out)
		}
		return out
	}
	explained := strings.Join(strings.Fields(kubectl("explain", "agenticsession.spec.timeout")), " ")
	for _, word := range []string{"timeout <integer>", "seconds", "0 means none"} {
		if !strings.Contains(explained, word) {
			t.Errorf("kubectl explain does not say %q:\n%s", word, explained)
		}
	}
	for _, path := range []string{"agenticsession.spec", "agenticsession.spec.llmSettings", "agenticsession.spec.repos", "agenticsession.status", "projectsettings.spec"} {
		if out := kubectl("explain", path); strings.Contains(out, "<no description>") {
			t.Errorf("kubectl explain %s has fields without a description:\n%s", path, out)
		}
	}
	s := p.session("shown", "hang")
	s.reaches(running)
	lines := strings.Split(strings.TrimSpace(kubectl("get", "as", "shown")), "\n")
	if header := strings.Fields(lines[0]); fmt.Sprint(header) != "[NAME PHASE REASON MODEL STARTED AGE]" {
		t.Errorf("the columns are %v", header)
	}
	if row := strings.Fields(lines[1]); len(row) != 6 || row[1] != "Running" || row[2] != "RunnerStarted" || row[3] != "claude-sonnet-4-6" {
		t.Errorf("the row is %v", row)
	}
	for _, column := range []string{"RUN", "POD", "COMPLETED", "MESSAGE", "DISPLAY NAME"} {
		if wide := kubectl("get", "agenticsessions", "-o", "wide"); !strings.Contains(wide, column) {
			t.Errorf("the wide columns lack %s: %s", column, wide)
		}
	}
	if out := kubectl("get", "ambient"); !strings.Contains(out, "shown") {
		t.Errorf("the category does not show the session: %s", out)
	}
}

// TestCase53StoredUnderAnOlderSchema: objects that the present schema would refuse stay writable,
// their status too, and the operator says of each why it cannot be run.
func TestCase53StoredUnderAnOlderSchema(t *testing.T) {
	p := newProject(t, nil)
	restore := laxSchema(t)
	old := map[string]map[string]any{
		"negative":      {"timeout": -5},
		"same-folder":   {"repos": []any{map[string]any{"url": "https://a/x/app"}, map[string]any{"url": "https://b/y/app.git"}}},
		"strange-url":   {"repos": []any{map[string]any{"url": "ftp://a/b"}}},
		"strange-name":  {"environmentVariables": map[string]any{"A=B": "c"}},
		"with.dots":     {},
		"hot":           {"llmSettings": map[string]any{"temperature": 7}},
		"long-prompt":   {"initialPrompt": strings.Repeat("x", 200000)},
		"strange-token": {"llmSettings": map[string]any{"maxTokens": -1}},
		"ordinary":      {"initialPrompt": "hang"},
	}
	long := strings.Repeat("l", 60)
	old[long] = map[string]any{}
	for name, spec := range old {
		p.eventually("the older schema takes "+shorten(name), func() error {
			err := strictly(p.ctx, "AgenticSession", p.name, name, spec)
			if err != nil && strings.Contains(err.Error(), "already exists") {
				return nil
			}
			return err
		})
	}
	restore()
	for name, spec := range old {
		if name == "ordinary" {
			continue
		}
		p.eventually("the present schema refuses "+shorten(name), func() error {
			other := "new"
			if len(spec) == 0 {
				other = name + "x"
			}
			if strictly(p.ctx, "AgenticSession", p.name, other, spec, client.DryRunAll) == nil {
				return errors.New("it does not")
			}
			return nil
		})
	}
	p.operator = alone(t, nil)
	cannotRun := map[string]string{"negative": "timeout", "same-folder": "app", "with.dots": "name", "long-prompt": "initialPrompt", long: "name"}
	for name := range old {
		stored := &v1alpha1.AgenticSession{}
		p.get(name, stored)
		s := &session{project: p, name: name, uid: stored.UID}
		if says, cannot := cannotRun[name]; cannot {
			object := s.tells(failure, v1alpha1.ReasonInvalidSpec)
			if message := condition(object, v1alpha1.ConditionFailed).Message; !strings.Contains(message, says) {
				t.Errorf("session %s: the message does not speak of %q: %s", name, says, message)
			}
		} else {
			s.until("is running, or says why not", func(object *v1alpha1.AgenticSession) error {
				if object.Status.Phase == pending || object.Status.Phase == creating {
					return is(running)(object)
				}
				return nil
			})
		}
		p.patch(s.object(), `{"metadata":{"labels":{"touched":"yes"}},"spec":{"displayName":"edited"}}`)
		if err := suite.admin.Status().Patch(p.ctx, s.object(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"lastActivityTime":"2026-01-01T00:00:00Z"}}`))); err != nil {
			t.Errorf("session %s: its status cannot be written: %v", name, err)
		}
		s.until("observes the edit", func(object *v1alpha1.AgenticSession) error {
			if object.Status.ObservedGeneration != object.Generation {
				return fmt.Errorf("observed %d of %d", object.Status.ObservedGeneration, object.Generation)
			}
			return nil
		})
		s.stop()
		s.requestsConsumed()
		s.start()
		if cannotRun[name] == "" {
			s.requestsConsumed()
			continue
		}
		s.eventually("session "+name+" was started again", func() error {
			if history := s.history(); len(history) < 4 {
				return fmt.Errorf("it went through %v", history)
			}
			return nil
		})
		s.tells(failure, v1alpha1.ReasonInvalidSpec)
		s.nothingMade()
	}
}

// laxSchema replaces the schema of sessions with one that refuses hardly anything, and returns what
// puts the present one back.
func laxSchema(t *testing.T) (restore func()) {
	t.Helper()
	all, err := crds()
	if err != nil {
		t.Fatal(err)
	}
	var present *unstructured.Unstructured
	for _, crd := range all {
		if strings.HasPrefix(crd.GetName(), "agenticsessions.") {
			present = crd
		}
	}
	data, err := json.Marshal(loosen(present.DeepCopy().Object))
	if err != nil {
		t.Fatal(err)
	}
	lax := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &lax.Object); err != nil {
		t.Fatal(err)
	}
	if err := applyObject(t.Context(), lax); err != nil {
		t.Fatal(err)
	}
	restore = func() {
		if err := applyObject(context.Background(), present.DeepCopy()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	time.Sleep(500 * time.Millisecond)
	return restore
}

// loosen takes away from a schema everything that can refuse a value of the right type.
func loosen(node any) any {
	switch node := node.(type) {
	case map[string]any:
		for _, key := range []string{"x-kubernetes-validations", "maxLength", "minLength", "maximum", "minimum", "maxItems", "maxProperties", "pattern"} {
			if _, isSchema := node["properties"].(map[string]any); isSchema || node["type"] != nil {
				delete(node, key)
			}
		}
		for key, value := range node {
			node[key] = loosen(value)
		}
		return node
	case []any:
		for i := range node {
			node[i] = loosen(node[i])
		}
		return node
	default:
		return node
	}
}
