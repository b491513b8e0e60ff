package observability

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/internal/metrics"
)

// up is Prometheus' own.
var up = metrics.Metric{Name: "up", Type: metrics.Gauge}

// known finds a metric by the name of one of its series: what the operator exports, what the
// libraries in it export, and up.
func known(series string) (metrics.Metric, bool) {
	for _, m := range slices.Concat(metrics.Table, metrics.Libraries, []metrics.Metric{up}) {
		if series == m.Name {
			return m, true
		}
		if base, is := strings.CutSuffix(series, "_bucket"); is && base == m.Name && m.Type == metrics.Histogram {
			m.Labels = append(slices.Clone(m.Labels), "le")
			return m, true
		}
		for _, suffix := range []string{"_sum", "_count"} {
			if series == m.Name+suffix && m.Type == metrics.Histogram {
				return m, true
			}
		}
	}
	return metrics.Metric{}, false
}

// series is a time series as Prometheus stores it, in promtool's notation.
type series struct{ name, values string }

var (
	sampled = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? (\S+)$`)
	pair    = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// scraped are the samples of a real scrape: of a replica that leads, where a session has completed and
// another runs, of one that stands by, or of the leader after others have failed. The integration suite
// made the files, and sees to it that replicas export the series that are in them, and no others.
func scraped(t *testing.T, replica string) [][]string {
	t.Helper()
	var samples [][]string
	for line := range strings.Lines(read(t, "internal/observability/testdata/scrapes/"+replica+".txt")) {
		found := sampled.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil {
			t.Fatalf("the scrape of the %s has no sample: %s", replica, line)
		}
		samples = append(samples, found[1:])
	}
	return samples
}

// exported are the names of the series that real replicas export, with their labels.
var exported = map[string]bool{}

// isExported says that a real replica exports a series with these labels, which are in order.
func isExported(t *testing.T, metric string, labels []string) bool {
	t.Helper()
	if len(exported) == 0 {
		exported[form(up.Name, nil)] = true
		for _, sample := range slices.Concat(scraped(t, "leader"), scraped(t, "standby")) {
			exported[form(sample[0], slices.Sorted(maps.Keys(labelled(sample[1]))))] = true
		}
	}
	return exported[form(metric, labels)]
}

func form(metric string, labels []string) string {
	return metric + "{" + strings.Join(labels, ",") + "}"
}

func labelled(text string) map[string]string {
	labels := map[string]string{}
	for _, found := range pair.FindAllStringSubmatch(text, -1) {
		labels[found[1]] = found[2]
	}
	return labels
}

// of is what a scrape of a replica makes of a metric, as our ServiceMonitor has it scraped. It insists
// that the operator is described to export such a series, and was seen to.
func of(t *testing.T, pod, metric, labels, values string) series {
	t.Helper()
	m, is := known(metric)
	if !is {
		t.Fatalf("nothing exports %s", metric)
	}
	given := labelled(labels)
	if got, want := slices.Sorted(maps.Keys(given)), slices.Sorted(slices.Values(m.Labels)); !slices.Equal(got, want) {
		t.Fatalf("%s is exported with the labels %v, not %v", metric, want, got)
	} else if !isExported(t, metric, got) {
		t.Fatalf("no replica was seen to export %s with the labels %v", metric, got)
	}
	for label, closed := range m.Values {
		if !slices.Contains(closed, given[label]) {
			t.Fatalf("%s is never exported with %s=%q", metric, label, given[label])
		}
	}
	if session, is := given["namespace"]; is {
		given["exported_namespace"], given["session_namespace"] = session, session
	}
	maps.Copy(given, map[string]string{
		"job": Job, "namespace": Namespace, "pod": pod, "instance": pod + ":8443", "service": Job, "endpoint": "https", "container": "manager",
	})
	var all []string
	for _, label := range slices.Sorted(maps.Keys(given)) {
		all = append(all, fmt.Sprintf("%s=%q", label, given[label]))
	}
	return series{metric + "{" + strings.Join(all, ",") + "}", values}
}

// targetLabels are what a scrape adds.
var targetLabels = []string{"job", "namespace", "pod", "instance", "session_namespace"}

var (
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)"`)
	grouping = regexp.MustCompile(`(?:by|on) \(([^)]*)\)`)
	named    = regexp.MustCompile(`\b(ambient_|controller_runtime_|workqueue_|rest_client_|process_|up\b|job:)[a-z0-9_:]*`)
)

// consistent says what of an expression the operator does not export. Every metric in it must have
// braces.
func consistent(expr string) error {
	recorded := map[string]bool{}
	for _, r := range Recordings {
		recorded[r.Record] = true
	}
	labels := slices.Clone(targetLabels)
	selected := selector.FindAllStringSubmatch(expr, -1)
	for _, found := range selected {
		m, is := known(found[1])
		if !is && !recorded[found[1]] {
			return fmt.Errorf("nothing exports %s", found[1])
		}
		labels = append(labels, m.Labels...)
		for _, match := range matcher.FindAllStringSubmatch(found[2], -1) {
			label, value := match[1], match[3]
			if !slices.Contains(m.Labels, label) && !slices.Contains(targetLabels, label) {
				return fmt.Errorf("%s has no label %s", found[1], label)
			}
			pattern, err := regexp.Compile("^(?:" + strings.ReplaceAll(value, `\\`, `\`) + ")$")
			if err != nil {
				return fmt.Errorf("%s: %w", found[1], err)
			}
			if closed := m.Values[label]; closed != nil && !slices.ContainsFunc(closed, pattern.MatchString) {
				return fmt.Errorf("%s never has %s%s%q", found[1], label, match[2], value)
			}
			if label == "le" && !slices.ContainsFunc(m.Buckets, func(edge float64) bool { return pattern.MatchString(fmt.Sprint(edge)) }) {
				return fmt.Errorf("%s has no bucket %q", found[1], value)
			}
		}
	}
	for _, found := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.FieldsFunc(found[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(labels, label) {
				return fmt.Errorf("it groups by %s, which nothing in it has", label)
			}
		}
	}
	for _, name := range named.FindAllString(selector.ReplaceAllString(expr, ""), -1) {
		return fmt.Errorf("%s stands without braces", name)
	}
	return nil
}
