// Command genmonitoring writes out what internal/observability describes, for use without the
// operator's own wiring: the rules as config/prometheus, the dashboards as docs/dashboards, and the
// tables of docs/observability.md between its marks.
//
// Run it from the root of the repository: go run ./hack/genmonitoring.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/internal/observability"
)

// page holds prose and, between marks, what is made.
const page = "docs/observability.md"

func main() {
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	if err := generate(*root); err != nil {
		fmt.Fprintln(os.Stderr, "genmonitoring:", err)
		os.Exit(1)
	}
}

func generate(root string) error {
	made, err := render(root)
	if err != nil {
		return err
	}
	for path, content := range made {
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", path, err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

// render makes every file, by its path.
func render(root string) (map[string][]byte, error) {
	rules, err := rules()
	if err != nil {
		return nil, err
	}
	console, err := observability.ConsoleDashboard()
	if err != nil {
		return nil, err
	}
	grafana, err := observability.GrafanaDashboard()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", page, err)
	}
	documented, err := between(string(text), "questions", questions())
	if err != nil {
		return nil, err
	}
	documented, err = between(documented, "alerts", alerts())
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"config/prometheus/rules.yaml": rules,
		"docs/dashboards/console.json": console,
		"docs/dashboards/grafana.json": grafana,
		page:                           []byte(documented),
	}, nil
}

func rules() ([]byte, error) {
	rule := monitoringv1.PrometheusRule{
		TypeMeta: metav1.TypeMeta{APIVersion: monitoringv1.SchemeGroupVersion.String(), Kind: monitoringv1.PrometheusRuleKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: "agentic-operator", Namespace: observability.Namespace,
			Labels: map[string]string{
				"app.kubernetes.io/name": "agentic-operator",
				// Nothing but the operator's own series is used.
				"openshift.io/prometheus-rule-evaluation-scope": "leaf-prometheus",
			},
		},
		Spec: observability.Rules(observability.Namespace),
	}
	content, err := yaml.Marshal(&rule)
	if err != nil {
		return nil, fmt.Errorf("writing the rules as YAML: %w", err)
	}
	return append([]byte("# Made from the code by hack/genmonitoring; do not edit.\n"), content...), nil
}

// between puts text between the two marks of a name.
func between(page, name, text string) (string, error) {
	begin, end := "<!-- "+name+": made by hack/genmonitoring -->\n", "<!-- end of "+name+" -->"
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the page has no marks for %s", name)
	}
	return before + begin + "\n" + text + "\n" + end + after, nil
}

func questions() string {
	var out strings.Builder
	for _, q := range observability.Queries {
		fmt.Fprintf(&out, "### %s\n\n```promql\n%s\n```\n\n%s\n\nNot `%s`: %s\n\n", q.Question, q.Expr, q.Expect, q.Plain, q.Misleads)
	}
	return strings.TrimSpace(out.String()) + "\n"
}

func alerts() string {
	var out strings.Builder
	out.WriteString("| Alert | Severity | Holds for | Says |\n|---|---|---|---|\n")
	for _, a := range observability.Alerts {
		fmt.Fprintf(&out, "| [`%s`](runbook.md#%s) | %s | %s | %s |\n", a.Name, strings.ToLower(a.Name), a.Severity, a.For, a.Summary)
	}
	return out.String()
}
