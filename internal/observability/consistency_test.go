package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/metrics"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Cases 61 and 62: rules and panels name only what is really exported, by labels that survive the
// scrape, of our own job.
func TestCase62EveryExpressionNamesWhatIsExported(t *testing.T) {
	for _, group := range Rules(Namespace).Groups {
		for _, rule := range group.Rules {
			expr := rule.Expr.StrVal
			if err := consistent(expr); err != nil {
				t.Errorf("%s%s: %v", rule.Alert, rule.Record, err)
			}
			for _, found := range selector.FindAllStringSubmatch(expr, -1) {
				if !strings.HasPrefix(found[2], `job="`+Job+`",namespace="`+Namespace+`"`) {
					t.Errorf("%s%s looks at %s of everyone", rule.Alert, rule.Record, found[1])
				}
			}
		}
	}
	for _, expr := range Targets() {
		if err := consistent(expr); err != nil {
			t.Errorf("a panel: %s: %v", expr, err)
		}
		if !strings.Contains(expr, `{job="`+Job+`"`) {
			t.Errorf("a panel looks at everyone's: %s", expr)
		}
	}
}

func TestWhatIsNotExportedIsNoticed(t *testing.T) {
	for _, expr := range []string{
		`ambient_session_total{job="x"}`, `ambient_sessions{job="x",stage="Running"}`, `ambient_sessions{job="x",phase="Walking"}`,
		`sum by (user) (ambient_sessions{job="x"})`, `sum(ambient_sessions)`,
		`ambient_session_startup_duration_seconds_bucket{le=~"45(\\.0)?"}`, `ambient_sessions_bucket{le="1"}`,
	} {
		if consistent(expr) == nil {
			t.Errorf("%s passes", expr)
		}
	}
}

var bare = regexp.MustCompile(`\b(ambient_[a-z0-9_]+)(\{|\[|\)| |$)`)

func TestQueriesNameWhatIsExported(t *testing.T) {
	for _, q := range Queries {
		// As documented they have no braces where they select nothing.
		expr := bare.ReplaceAllStringFunc(q.Expr, func(s string) string {
			if strings.HasSuffix(s, "{") {
				return s
			}
			name := strings.TrimRight(s, "[) ")
			return name + "{}" + s[len(name):]
		})
		if err := consistent(expr); err != nil {
			t.Errorf("%s: %v", q.Question, err)
		}
		if strings.Contains(expr, "by (namespace") {
			t.Errorf("%s groups by the operator's namespace", q.Question)
		}
	}
}

func TestDocumentedQueriesAreInTheDocumentation(t *testing.T) {
	page := read(t, "docs/observability.md")
	for _, q := range Queries {
		for _, text := range []string{q.Question, q.Plain, q.Misleads, q.Expr, q.Expect} {
			if !strings.Contains(page, text) {
				t.Errorf("docs/observability.md does not say: %s", text)
			}
		}
	}
	for _, a := range Alerts {
		if !strings.Contains(page, "`"+a.Name+"`") {
			t.Errorf("docs/observability.md does not list %s", a.Name)
		}
	}
}

func TestEveryAlertHasWhatAPersonNeeds(t *testing.T) {
	headings := map[string]string{}
	for _, section := range strings.Split(read(t, "docs/runbook.md"), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		headings[strings.ToLower(strings.ReplaceAll(title, " ", "-"))] = text
	}
	used := map[string]bool{}
	for _, rule := range Rules(Namespace).Groups[1].Rules {
		name, notes := rule.Alert, rule.Annotations
		if !regexp.MustCompile(`^Agentic[A-Z][A-Za-z]+$`).MatchString(name) || used[name] {
			t.Errorf("%s is no good name, or used twice", name)
		}
		used[name] = true
		if s := rule.Labels["severity"]; s != Critical && s != Warning && s != Info {
			t.Errorf("%s has severity %q", name, s)
		}
		if rule.Labels["namespace"] != Namespace || rule.For == nil {
			t.Errorf("%s has no namespace, or does not wait", name)
		}
		if notes["summary"] == "" || strings.Contains(notes["summary"], "\n") || len(notes["description"]) < len(notes["summary"]) || strings.Contains(notes["description"], "$lease") {
			t.Errorf("%s: %q, %q", name, notes["summary"], notes["description"])
		}
		page, anchor, _ := strings.Cut(notes["runbook_url"], "#")
		text := headings[anchor]
		if page != Runbook || text == "" {
			t.Errorf("%s: docs/runbook.md has no heading for %s", name, notes["runbook_url"])
		}
		if !strings.Contains(text, "```sh\n") || !strings.Contains(text, "Expected") {
			t.Errorf("%s: its part of the runbook lacks commands or what to expect of them", name)
		}
	}
}

func TestTheObjectiveIsAnEdgeOfABucket(t *testing.T) {
	m, _ := known(metrics.StartupDuration)
	for _, edge := range m.Buckets {
		if edge == StartWithin {
			return
		}
	}
	t.Errorf("no bucket ends at %d s", StartWithin)
}

func TestTheConsoleDrawsEveryPanel(t *testing.T) {
	made, err := ConsoleDashboard()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(made), "${") || strings.Contains(string(made), "[[") || strings.Contains(string(made), "$job") {
		t.Error("the Console does not replace that variable")
	}
	var board consoleBoard
	if err := json.Unmarshal(made, &board); err != nil {
		t.Fatal(err)
	}
	if len(board.Rows) != len(Board) {
		t.Errorf("%d rows", len(board.Rows))
	}
	for _, v := range board.Templating.List {
		if v.Type != "query" || !regexp.MustCompile(`^label_values\(.*, \w+\)$`).MatchString(v.Query) || !regexp.MustCompile(`^\w+$`).MatchString(v.Name) || v.Name == "namespace" {
			t.Errorf("the Console makes nothing of the variable %+v", v)
		}
	}
	units := regexp.MustCompile(`^(bytes|ms|s|percentunit|short)$`)
	ids := map[int]bool{}
	for _, row := range board.Rows {
		if row.Title == "" || !row.ShowTitle {
			t.Errorf("row %q does not show its title", row.Title)
		}
		for _, p := range row.Panels {
			unit := p.Format
			switch p.Type {
			case "graph":
				unit = p.YAxes[0].Format
			case "singlestat":
			case "table":
				unit = p.Styles[len(p.Styles)-1].Unit
				if p.Transform != "table" || p.Styles[len(p.Styles)-1].Pattern != "Value #"+p.Targets[len(p.Targets)-1].RefID {
					t.Errorf("%s: the columns do not fit the targets", p.Title)
				}
			default:
				t.Errorf("%s: the Console draws no %s", p.Title, p.Type)
			}
			if !units.MatchString(string(unit)) || p.Span < 3 || p.Span > 12 || ids[p.ID] || p.ID == 0 || len(p.Targets) == 0 || p.Title == "" {
				t.Errorf("%s: %+v", p.Title, p)
			}
			if p.Type == "singlestat" && len(p.Targets) != 1 {
				t.Errorf("%s: only the first target is drawn", p.Title)
			}
			ids[p.ID] = true
		}
	}
}

func TestGrafanaDrawsTheSame(t *testing.T) {
	made, err := GrafanaDashboard()
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(made, &board); err != nil {
		t.Fatal(err)
	}
	var exprs []string
	taken := map[[2]int]bool{}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d is outside", p.ID)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] {
					t.Fatalf("panel %d lies over another", p.ID)
				}
				taken[at] = true
			}
		}
	}
	if got, want := strings.Join(exprs, "\n"), strings.Join(Targets(), "\n"); got != want {
		t.Errorf("the queries are not those of the board:\n%s\nwant\n%s", got, want)
	}
}

func TestTheConsolesExtras(t *testing.T) {
	sample := v1alpha1.AgenticSession{}
	if err := yaml.UnmarshalStrict([]byte(YAMLSample()["yaml"].(string)), &sample); err != nil || sample.Kind != "AgenticSession" {
		t.Errorf("the sample is no session: %v", err)
	}
	if !strings.HasSuffix(read(t, "config/samples/vteam_v1alpha1_agenticsession.yaml"), YAMLSample()["yaml"].(string)) {
		t.Error("the sample is not the one of config/samples: copy it to session.yaml, without the comment")
	}
	start := QuickStart()
	if d := start["description"].(string); len(d) > 256 {
		t.Errorf("the description has %d characters, 256 are allowed", len(d))
	}
	for _, task := range start["tasks"].([]any) {
		task := task.(map[string]any)
		review, summary := task["review"].(map[string]any), task["summary"].(map[string]any)
		if review["instructions"] == "" || review["failedTaskHelp"] == "" || len(summary["failed"].(string)) > 128 || summary["success"] == "" {
			t.Errorf("task %v is not as the Console wants it", task["title"])
		}
	}
}
