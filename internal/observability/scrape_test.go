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

// of is what a scrape of a replica makes of a metric, as our ServiceMonitor has it scraped. It insists
// that the operator exports such a series.
func of(t *testing.T, pod, metric, labels, values string) series {
	t.Helper()
	m, is := known(metric)
	if !is {
		t.Fatalf("nothing exports %s", metric)
	}
	given := map[string]string{}
	for _, pair := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(labels, -1) {
		given[pair[1]] = pair[2]
	}
	if got, want := slices.Sorted(maps.Keys(given)), slices.Sorted(slices.Values(m.Labels)); !slices.Equal(got, want) {
		t.Fatalf("%s is exported with the labels %v, not %v", metric, want, got)
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
