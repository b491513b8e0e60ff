package observability

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// promtool is the program that checks rules. "make test" builds it and says where it is; without,
// the tests that need it are skipped where nobody built it.
func promtool(t *testing.T) string {
	t.Helper()
	program := os.Getenv("PROMTOOL")
	if program == "" {
		program = filepath.Join(root, "bin", "promtool")
		if _, err := os.Stat(program); err != nil {
			t.Skip("bin/promtool is not built; \"make tools\" builds it")
		}
	}
	program, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// run runs promtool and fails the test with what it says if it finds fault.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	var said bytes.Buffer
	command := exec.CommandContext(t.Context(), program, args...)
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
}

// written writes a value as a YAML file.
func written(t *testing.T, name string, value any) string {
	t.Helper()
	content, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	program := promtool(t)
	run(t, program, "check", "rules", "--lint=all", "--lint-fatal", written(t, "rules.yaml", Rules(Namespace)))
	// Queries are checked by being made rules.
	spoken := monitoringv1.RuleGroup{Name: "queries"}
	add := func(expr string) {
		// What stands for the chosen projects is put in by those who draw.
		spoken.Rules = append(spoken.Rules, monitoringv1.Rule{Record: "job:query_" + string(rune('a'+len(spoken.Rules)/26)) + string(rune('a'+len(spoken.Rules)%26)) + ":x", Expr: intstr.FromString(expr)})
	}
	for _, expr := range Targets() {
		add(expr)
	}
	for _, q := range Queries {
		add(q.Expr)
		add(q.Plain)
	}
	run(t, program, "check", "rules", "--lint=none", written(t, "queries.yaml", monitoringv1.PrometheusRuleSpec{Groups: []monitoringv1.RuleGroup{spoken}}))
}

// alarm is an alert that must fire: what of its labels comes from the samples, and its value as it
// is put into the description.
type alarm struct {
	labels map[string]string
	value  string
}

// at is what must fire at a time; everything else must be silent then.
type at struct {
	time   string
	alarms map[string][]alarm
}

// scenario is samples and what they must lead to.
type scenario struct {
	name string
	// interval is between samples, 30s unless said.
	interval string
	samples  []series
	checks   []at
	answers  []answer
}

// answer is what a query must say at a time.
type answer struct {
	time, expr string
	value      float64
	labels     string
}

var value = regexp.MustCompile(`\{\{ \$value[^}]*\}\}`)

// expected is the alert as Alertmanager gets it.
func (a *alarm) expected(rule *monitoringv1.Rule) map[string]any {
	labels, notes := maps.Clone(rule.Labels), map[string]string{}
	maps.Copy(labels, a.labels)
	for key, text := range rule.Annotations {
		text = value.ReplaceAllLiteralString(text, a.value)
		for name, word := range a.labels {
			text = strings.ReplaceAll(text, "{{ $labels."+name+" }}", word)
		}
		notes[key] = text
	}
	return map[string]any{"exp_labels": labels, "exp_annotations": notes}
}

// file is the scenario as promtool reads it.
func (s *scenario) file(rules string) map[string]any {
	interval := s.interval
	if interval == "" {
		interval = "30s"
	}
	var input, alerts, queries []any
	for _, one := range s.samples {
		input = append(input, map[string]any{"series": one.name, "values": one.values})
	}
	for _, check := range s.checks {
		for _, rule := range Rules(Namespace).Groups[1].Rules {
			expected := []any{}
			for _, a := range check.alarms[rule.Alert] {
				expected = append(expected, a.expected(&rule))
			}
			alerts = append(alerts, map[string]any{"eval_time": check.time, "alertname": rule.Alert, "exp_alerts": expected})
		}
	}
	for _, a := range s.answers {
		queries = append(queries, map[string]any{"eval_time": a.time, "expr": a.expr,
			"exp_samples": []any{map[string]any{"labels": "{" + a.labels + "}", "value": a.value}}})
	}
	return map[string]any{
		"rule_files": []any{rules}, "evaluation_interval": interval, "fuzzy_compare": true,
		// Unless told, promtool takes the groups in any order, and alerts see recorded series or the last.
		"group_eval_order": []any{"agentic-operator.recordings", "agentic-operator.alerts"},
		"tests": []any{map[string]any{
			"name": s.name, "interval": interval, "input_series": input, "alert_rule_test": alerts, "promql_expr_test": queries,
		}},
	}
}

func TestCase62Alerts(t *testing.T) {
	program := promtool(t)
	rules := written(t, "rules.yaml", Rules(Namespace))
	fires := map[string]bool{}
	all := slices.Concat(operatorScenarios(t), workScenarios(t), sessionScenarios(t), endScenarios(t), startScenarios(t), scrapedScenarios(t))
	for _, s := range all {
		for _, check := range s.checks {
			for name := range check.alarms {
				if !slices.ContainsFunc(Alerts, func(a Alert) bool { return a.Name == name }) {
					t.Fatalf("%s expects %s, which is no alert", s.name, name)
				}
				fires[name] = true
			}
		}
		t.Run(s.name, func(t *testing.T) {
			run(t, program, "test", "rules", written(t, "scenario.yaml", s.file(rules)))
		})
	}
	for _, a := range Alerts {
		if !fires[a.Name] {
			t.Errorf("no scenario makes %s fire", a.Name)
		}
	}
}
