package integration

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// odd are specs of which each has something in a form that a careless decoder does not expect.
func odd() map[string]any {
	long := strings.Repeat("x", 120000)
	many := map[string]any{}
	for i := range 200 {
		many[fmt.Sprintf("V%d", i)] = strings.Repeat("v", 100)
	}
	specs := map[string]any{
		"empty": map[string]any{}, "prompt-number": map[string]any{"initialPrompt": 5}, "prompt-huge": map[string]any{"initialPrompt": strings.Repeat("x", 1<<20)},
		"prompt-long": map[string]any{"initialPrompt": long}, "prompt-odd": map[string]any{"initialPrompt": "\x01\u2028$(X) $$ `${HOME}`\n\"'"},
		"repos-empty": map[string]any{"repos": []any{}}, "repos-null-entry": map[string]any{"repos": []any{nil}}, "repos-empty-entry": map[string]any{"repos": []any{map[string]any{}}},
		"repos-strings": map[string]any{"repos": []any{"https://a/b"}}, "repos-object": map[string]any{"repos": map[string]any{}},
		"repos-url-number": map[string]any{"repos": []any{map[string]any{"url": 1}}}, "env-list": map[string]any{"environmentVariables": []any{"A=b"}},
		"env-number": map[string]any{"environmentVariables": map[string]any{"A": 1}}, "env-null": map[string]any{"environmentVariables": map[string]any{"A": nil}},
		"env-empty-name": map[string]any{"environmentVariables": map[string]any{"": "b"}}, "env-many": map[string]any{"environmentVariables": many},
		"timeout-string": map[string]any{"timeout": "300"}, "timeout-float": map[string]any{"timeout": 1.5}, "timeout-huge": map[string]any{"timeout": int64(1) << 62},
		"mcp-list": map[string]any{"mcpServers": []any{}}, "mcp-custom-null": map[string]any{"mcpServers": map[string]any{"custom": nil}},
		"mcp-custom-odd": map[string]any{"mcpServers": map[string]any{"custom": map[string]any{"a": map[string]any{"deep": []any{1, nil, "x"}}}, "disabled": []any{"a", ""}}},
		"mcp-entry-null": map[string]any{"mcpServers": map[string]any{"custom": map[string]any{"a": nil}}}, "mcp-entry-text": map[string]any{"mcpServers": map[string]any{"custom": map[string]any{"a": "text"}}},
		"workflow-empty": map[string]any{"activeWorkflow": map[string]any{}}, "workflow-null-fields": map[string]any{"activeWorkflow": map[string]any{"gitUrl": "https://a/b", "branch": nil, "path": nil}},
		"llm-null": map[string]any{"llmSettings": map[string]any{"model": nil, "temperature": nil, "maxTokens": nil}}, "llm-text": map[string]any{"llmSettings": "sonnet"},
		"user-empty": map[string]any{"userContext": map[string]any{}}, "user-groups-null": map[string]any{"userContext": map[string]any{"groups": []any{nil}}},
		"interactive-text": map[string]any{"interactive": "yes"}, "inactivity-huge": map[string]any{"inactivityTimeout": int64(1) << 62},
	}
	nulls := map[string]any{}
	for _, field := range []string{"initialPrompt", "displayName", "userContext", "llmSettings", "timeout", "inactivityTimeout", "stopOnRunFinished", "interactive", "repos", "activeWorkflow", "environmentVariables", "mcpServers"} {
		nulls[field] = nil
	}
	specs["all-null"] = nulls
	return specs
}

// TestCase44OddObjects: what the schema lets pass of odd objects harms nobody but itself.
func TestCase44OddObjects(t *testing.T) {
	p := share(t)
	var stored []*session
	refused := 0
	for name, spec := range odd() {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AgenticSession"))
		object.SetNamespace(p.name)
		object.SetName(name)
		if err := suite.admin.Create(p.ctx, object); err != nil {
			refused++
			continue
		}
		stored = append(stored, &session{project: p, name: name, uid: object.GetUID()})
	}
	if len(stored) < 8 || refused < 8 {
		t.Errorf("%d objects were stored and %d refused: the table no longer tries both", len(stored), refused)
	}
	attackStatus(p, stored[0])
	good := p.session("good", "hang")
	good.reaches(running)
	for _, s := range stored {
		s.until("is running, or says why not", func(object *v1alpha1.AgenticSession) error {
			ready := condition(object, v1alpha1.ConditionReady)
			if object.Status.Phase == pending || object.Status.Phase == creating || ready.Reason == "" || ready.Message == "" {
				return fmt.Errorf("it is %q for %q: %s", object.Status.Phase, ready.Reason, ready.Message)
			}
			return nil
		})
	}
	p.session("afterwards", "exit 0").reaches(completed)
}

// attackStatus writes what a confused client might write into a status.
func attackStatus(p *project, s *session) {
	s.tamper()
	for _, status := range []string{
		`{"status":null}`, `{"status":{"conditions":null}}`, `{"status":{"phase":null}}`, `{"status":{"conditions":[{}]}}`, `{"status":{"conditions":["x"]}}`,
		`{"status":{"lastActivityTime":"soon"}}`, `{"status":{"lastActivityTime":"2999-01-01T00:00:00Z"}}`, `{"status":{"run":-5}}`, `{"status":{"run":null,"jobUID":"x"}}`,
	} {
		// Most are refused, which is as good.
		if err := suite.admin.Status().Patch(p.ctx, s.object(), client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			continue
		}
	}
}

// TestCase63CountersUnderRefusals: nearly a third of the operator's writes are refused, and still
// each session is counted once, and each phase change that happened.
func TestCase63CountersUnderRefusals(t *testing.T) {
	p := share(t)
	p.operator.gate.hookInto(t, p.name, func(request *http.Request) *http.Response {
		if request.Method == http.MethodGet || rand.IntN(10) >= 3 {
			return nil
		}
		name, found := strings.CutSuffix(request.URL.Path, "/status")
		found = found && strings.Contains(name, "/agenticsessions/")
		if found && rand.IntN(2) == 0 {
			// Somebody else was quicker: the API server answers with a conflict.
			object := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: path.Base(name)}}
			patch := fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, rand.Int())
			if err := suite.admin.Patch(p.ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
				t.Errorf("touching session %s: %v", object.Name, err)
			}
			return nil
		}
		if request.Method == http.MethodPatch && (found || !strings.Contains(name, "/agenticsessions/")) && rand.IntN(2) == 0 {
			return refusal(request, http.StatusConflict, metav1.StatusReasonConflict)
		}
		return refusal(request, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	})
	const sessions = 10
	ends := map[v1alpha1.Phase]float64{}
	var all []*session
	for i := range sessions {
		prompt := []string{"sleep 500ms\nexit 0", "sleep 500ms\nexit 1", "hang"}[i%3]
		all = append(all, p.session(fmt.Sprintf("counted-%d", i), prompt))
	}
	steps := map[[2]v1alpha1.Phase]float64{}
	for i, s := range all {
		if i%3 == 2 {
			p.within(2*patience, "it runs", func() error { return s.phaseIs(running) })
			s.stop()
		}
		end := []v1alpha1.Phase{completed, failure, stopped}[i%3]
		p.within(2*patience, "session "+s.name+" ends", func() error { return s.phaseIs(end) })
		ends[end]++
	}
	p.settles(0)
	for _, s := range all {
		checkEdges(t, s)
		history := s.history()
		for i := 1; i < len(history); i++ {
			steps[[2]v1alpha1.Phase{history[i-1], history[i]}]++
		}
	}
	p.counts("ambient_sessions_total", sessions, nil)
	p.counts("ambient_sessions_completed_total", sessions, nil)
	for end, n := range ends {
		p.counts("ambient_sessions_completed_total", n, map[string]string{"final_phase": string(end)})
	}
	for step, n := range steps {
		p.counts("ambient_session_phase_transitions_total", n, map[string]string{"from_phase": string(step[0]), "to_phase": string(step[1])})
	}
	started := steps[[2]v1alpha1.Phase{creating, running}]
	p.counts("ambient_session_startup_duration_seconds", started, nil)
	if p.errorCount() == 0 {
		t.Error("not one error was counted although writes were refused")
	}
}

// counts compares a counter of this namespace. A counter moves just after the write that it counts.
func (p *project) counts(name string, want float64, labels map[string]string) {
	p.t.Helper()
	all := map[string]string{"namespace": p.name}
	for key, value := range labels {
		all[key] = value
	}
	p.eventually(name, func() error {
		got, err := p.operator.total(name, all)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%v is %v, want %v", all, got, want)
		}
		return nil
	})
}
