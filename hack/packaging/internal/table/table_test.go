package table

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..", "..", "..")

// Every feature has a value, and every check a result.
func TestTheTableHasNoEmptyCell(t *testing.T) {
	sections, err := Features(root)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := scorecardRows(root)
	if err != nil {
		t.Fatal(err)
	}
	sections = append(sections, Section{"Scorecard on a cluster", pods})
	if len(sections) != 4 {
		t.Fatalf("the table has %d sections", len(sections))
	}
	for _, s := range sections {
		if len(s.Rows) < 9 {
			t.Errorf("%s has %d rows", s.Title, len(s.Rows))
		}
		for _, r := range s.Rows {
			if strings.TrimSpace(r.Name) == "" || strings.TrimSpace(r.Value) == "" || strings.Contains(r.Value, "\n") {
				t.Errorf("%s: the row %q has the value %q", s.Title, r.Name, r.Value)
			}
		}
	}
	var out bytes.Buffer
	if err := Print(&out, sections); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines < 60 {
		t.Errorf("the table has %d lines", lines)
	}
}

// wanted are the features that well-packaged operators differ in, section by section: what the table is
// for is to have them all.
var wanted = [][]string{
	{
		"icon", "description (characters)", "annotation description", "alm-examples (kinds covered)", "specDescriptors",
		"... with x-descriptors", "statusDescriptors", "x-descriptor kinds", "owned CRD resources", "installModes", "minKubeVersion",
		"maturity / maintainers / links / keywords", "relatedImages", "RELATED_IMAGE_* variables", "webhookdefinitions", "spec.cleanup",
		"replaces / skips / skipRange", "hardening of the operator's pods", "wildcard RBAC (rules with *)",
	},
	{
		"capabilities", "categories", "containerImage / createdAt / support", "repository", "certified",
		"operators.openshift.io/valid-subscription", "operators.openshift.io/infrastructure-features (legacy)",
		"operators.openshift.io/must-gather-image", "features.operators.openshift.io/*", "suggested-namespace",
		"suggested-namespace-template", "cluster-monitoring", "initialization-resource",
		"operators.operatorframework.io/internal-objects", "console.openshift.io/plugins",
		"console.openshift.io/disable-operand-delete", "openshift.io/required-scc", "target.workload.openshift.io/management",
		"arch.* labels", "os.* labels", "com.redhat.openshift.versions", "olm.maxOpenShiftVersion", "channels / default channel",
	},
	{
		"ServiceMonitor", "PrometheusRule", "prometheus Role/RoleBinding", "NetworkPolicy", "PodDisruptionBudget", "ConsoleLink",
		"ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsolePlugin", "ClusterRoles for users",
		"flavours of the bundle", "OperatorCondition", "catalog", "template of the catalog", "olm.deprecations", "checks of preflight",
		"OLM v1", "bundle validate in the Makefile", "scorecard's built-in tests", "scorecard on a cluster", "custom scorecard tests",
		"installation through OLM", "upgrade through OLM", "drift gate", "layout for the community's repositories",
		"images for several architectures",
	},
}

func TestTheTableHasEveryFeature(t *testing.T) {
	sections, err := Features(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(sections) != len(wanted) {
		t.Fatalf("the table has %d sections of features, want %d", len(sections), len(wanted))
	}
	for i, names := range wanted {
		for _, name := range names {
			if !slices.ContainsFunc(sections[i].Rows, func(r Row) bool { return r.Name == name }) {
				t.Errorf("%s: there is no row %q", sections[i].Title, name)
			}
		}
	}
}

// The values are those of the files, not words of the table.
func TestTheTableReadsTheFiles(t *testing.T) {
	f, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	f.csv.Annotations["capabilities"] = ""
	f.csv.Spec.Icon = nil
	f.csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions[0].Rules[0].Verbs = []string{"*"}
	for _, want := range []Row{
		{"prometheus Role/RoleBinding", "made by the operator (internal/monitoring/access.go)"},
		{"images for several architectures", "make images"},
	} {
		outside, err := f.surroundings()
		if err != nil || !slices.Contains(outside, want) {
			t.Errorf("the table does not say %+v: %v", want, err)
		}
	}
	for _, want := range []Row{{"capabilities", none}, {"icon", none}, {"wildcard RBAC (rules with *)", "1"}} {
		if !slices.Contains(slices.Concat(f.shown(), f.installed(), f.labelled()), want) {
			t.Errorf("the table does not say %+v", want)
		}
	}
}

// The upgrades of a run on a cluster are shown, and that there was none.
func TestTheTableShowsUpgrades(t *testing.T) {
	root := t.TempDir()
	none, err := upgrades(root)
	if err != nil || !slices.Equal(none.Rows, []Row{{"upgrades", notRun}}) {
		t.Errorf("without a report: %v, %v", none.Rows, err)
	}
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	report := `[{"From":"0.1.0","To":"0.2.0","Took":"13s","LeaderGap":"2.2s","Sessions":[{"Name":"runs","Before":"Running, run 1","After":"gone"}]}]`
	if err := os.WriteFile(filepath.Join(root, "bin", "upgrades.json"), []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	some, err := upgrades(root)
	want := []Row{{"0.1.0 to 0.2.0", "took 13s, 2.2s without a leader"}, {"0.1.0 to 0.2.0: runs", "before  Running, run 1"}, {"", "after   gone"}}
	if err != nil || !slices.Equal(some.Rows, want) {
		t.Errorf("with a report: %v, %v", some.Rows, err)
	}
}

// A check counts once, where it is told apart by bundle or further; one that failed is told so.
func TestResultsOfChecks(t *testing.T) {
	events := `{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/next"}
{"Action":"run","Test":"TestA/next/one"}
{"Action":"pass","Test":"TestA/next/one"}
{"Action":"pass","Test":"TestA/next"}
{"Action":"run","Test":"TestA/0.1.0"}
{"Action":"fail","Test":"TestA/0.1.0"}
{"Action":"fail","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"pass","Test":"TestB"}
{"Action":"fail"}
`
	rows, err := checkRows(strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{{"A", "fail"}, {"A/next/one", "pass"}, {"A/0.1.0", "fail"}, {"B", "pass"}}
	if !slices.Equal(rows, want) {
		t.Errorf("the rows are %v, want %v", rows, want)
	}
}
