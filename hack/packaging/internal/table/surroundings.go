package table

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
)

// surroundings are the bundle's other objects, the catalog and what the repository does to keep them
// right.
func (f *files) surroundings() ([]Row, error) {
	prometheus, err := f.prometheus()
	if err != nil {
		return nil, err
	}
	rows := []Row{
		{"ServiceMonitor", f.kind("ServiceMonitor")},
		{"PrometheusRule", f.kind("PrometheusRule")},
		{"prometheus Role/RoleBinding", prometheus},
	}
	for _, kind := range []string{"NetworkPolicy", "PodDisruptionBudget", "ConsoleLink", "ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsolePlugin"} {
		rows = append(rows, Row{kind, f.kind(kind)})
	}
	var roles []string
	for _, o := range f.bundle.Objects {
		if o.GetKind() == "ClusterRole" {
			roles = append(roles, o.GetName())
		}
	}
	rows = append(rows, Row{"ClusterRoles for users", list(roles)}, Row{"identity of who scrapes", f.scrapers()})
	rows = append(rows, f.graph()...)
	found, err := f.inCode()
	if err != nil {
		return nil, err
	}
	return append(rows, found...), nil
}

// kind says who makes objects of a kind: OLM, or the operator, which then has the right to.
func (f *files) kind(kind string) string {
	for _, o := range f.bundle.Objects {
		if o.GetKind() == kind {
			return "in the bundle"
		}
	}
	plural := strings.ToLower(kind) + "s"
	if strings.HasSuffix(kind, "y") {
		plural = strings.ToLower(strings.TrimSuffix(kind, "y")) + "ies"
	}
	strategy := f.csv.Spec.InstallStrategy.StrategySpec
	for _, p := range slices.Concat(strategy.ClusterPermissions, strategy.Permissions) {
		for _, r := range p.Rules {
			if slices.Contains(r.Resources, plural) && slices.Contains(r.Verbs, "create") {
				return "made by the operator"
			}
		}
	}
	return none
}

// prometheus says who gives OpenShift's Prometheus the right to find its targets.
func (f *files) prometheus() (string, error) {
	for _, o := range f.bundle.Objects {
		if o.GetKind() == "RoleBinding" && strings.Contains(o.GetName(), "prometheus") {
			return "in the bundle", nil
		}
	}
	code, err := f.mentions(`"name": "prometheus-k8s"`, "internal/monitoring")
	if err != nil || len(code) == 0 {
		return none, err
	}
	return fmt.Sprintf("%s (%s)", f.kind("RoleBinding"), list(code)), nil
}

// scrapers are the ServiceAccounts that may read the metrics.
func (f *files) scrapers() string {
	var found []string
	for _, p := range f.csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
		for _, r := range p.Rules {
			if slices.Contains(r.NonResourceURLs, "/metrics") {
				found = append(found, "ServiceAccount "+p.ServiceAccountName)
			}
		}
	}
	return list(found)
}

// graph is the catalog.
func (f *files) graph() []Row {
	var channels []string
	deprecated := 0
	for _, o := range f.template.Objects {
		switch o.Schema {
		case "olm.channel":
			channels = append(channels, fmt.Sprintf("%s (%d)", o.Name, len(o.Entries)))
		case "olm.deprecations":
			deprecated += len(o.Entries)
		}
	}
	form := none
	if _, err := os.Stat(f.path("catalog", catalog.Package, "index.yaml")); err == nil {
		form = "file-based: catalog/" + catalog.Package
	}
	return []Row{
		{"catalog", form},
		{"template of the catalog", "catalog/template.yaml, " + f.template.Schema},
		{"channels (entries)", list(channels)},
		{"olm.deprecations", fmt.Sprintf("%d entries", deprecated)},
	}
}

// inCode looks for what the repository does: targets of make, tests, settings of the operator.
func (f *files) inCode() ([]Row, error) {
	make1, err := f.text("Makefile")
	if err != nil {
		return nil, err
	}
	make2, err := f.text("hack", "packaging", "packaging.mk")
	if err != nil {
		return nil, err
	}
	made := make1 + make2
	e2e, err := f.tests()
	if err != nil {
		return nil, err
	}
	named := func(words string) string {
		return list(slices.DeleteFunc(slices.Clone(e2e), func(name string) bool { return !regexp.MustCompile(words).MatchString(name) }))
	}
	condition, err := f.mentions(`Upgradeable = "Upgradeable"`, "internal", "controllers")
	if err != nil {
		return nil, err
	}
	scorecard, err := f.mentions(".Scorecard(", "test/e2e")
	if err != nil {
		return nil, err
	}
	ci, err := f.text(".ci", "run")
	if err != nil {
		return nil, err
	}
	preflight, err := f.mentions("preflight", "hack/packaging/internal/checks")
	if err != nil {
		return nil, err
	}
	var own []string
	for _, t := range f.scorecard {
		if strings.Contains(t.Image, catalog.Package) {
			own = append(own, t.Labels["test"])
		}
	}
	return []Row{
		{"flavours of the bundle", f.flavours()},
		{"OperatorCondition", list(condition)},
		{"checks of preflight", list(preflight)},
		{"OLM v1", f.extension()},
		{"bundle validate in the Makefile", or(regexp.MustCompile(`bundle validate bundle .*`).FindString(made))},
		{"scorecard's built-in tests", fmt.Sprint(len(f.scorecard) - len(own))},
		{"custom scorecard tests", list(own)},
		{"scorecard on a cluster", list(scorecard)},
		{"installation through OLM", named("OLM|Install")},
		{"upgrade through OLM", named("Upgrade")},
		{"run by CI", list(steps(ci))},
		{"drift gate", target(made, "verify-generated")},
		{"layout for the community's repositories", target(made, "publish")},
		{"images for several architectures", target(made, "images")},
	}, nil
}

// steps are the targets that CI runs.
func steps(script string) (found []string) {
	for _, m := range regexp.MustCompile(`(?m)^ *step "(make [^"]+)"`).FindAllStringSubmatch(script, -1) {
		found = append(found, m[1])
	}
	return found
}

func (f *files) flavours() string {
	found, err := filepath.Glob(f.path("bundle*", "manifests"))
	if err != nil || len(found) != 1 {
		return fmt.Sprint(len(found))
	}
	return "one for Kubernetes and OpenShift"
}

func (f *files) extension() string {
	found, err := filepath.Glob(f.path("config", "olmv1", "*.yaml"))
	if err != nil {
		return none
	}
	names := make([]string, len(found))
	for i := range found {
		names[i] = path.Join("config/olmv1", filepath.Base(found[i]))
	}
	return list(names)
}

// target is how a target of make is called, if there is one.
func target(made, name string) string {
	if regexp.MustCompile(`(?m)^` + name + `:( |$)`).MatchString(made) {
		return "make " + name
	}
	return none
}

func (f *files) text(parts ...string) (string, error) {
	content, err := os.ReadFile(f.path(parts...))
	if err != nil {
		return "", fmt.Errorf("reading a file of the repository: %w", err)
	}
	return string(content), nil
}

// tests are the names of the end-to-end tests.
func (f *files) tests() (names []string, err error) {
	err = f.goFiles([]string{"test"}, func(_, text string) {
		if strings.HasPrefix(text, "//go:build e2e") {
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(text, -1) {
				names = append(names, m[1])
			}
		}
	})
	return names, err
}

// mentions are the Go files below some folders that have a word.
func (f *files) mentions(word string, folders ...string) (found []string, err error) {
	err = f.goFiles(folders, func(name, text string) {
		if strings.Contains(text, word) {
			found = append(found, name)
		}
	})
	return found, err
}

func (f *files) goFiles(folders []string, visit func(name, text string)) error {
	for _, folder := range folders {
		err := filepath.WalkDir(f.path(folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" {
				return err
			}
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(f.root, name)
			visit(relative, string(content))
			return err
		})
		if err != nil {
			return fmt.Errorf("reading the code below %s: %w", folder, err)
		}
	}
	return nil
}
