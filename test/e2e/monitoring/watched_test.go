//go:build e2e

package monitoring

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/monitoring"
)

// rounds is how often the sessions of a round are run, each time by other pods of the operator.
const rounds = 2

// TestWatched: an operator that is installed before there is any monitoring finds itself scraped, its
// rules loaded and its dashboard in place once there is, without a restart; and what it counts is
// what happened, whatever happens to it. The steps build on each other. (Cases 58 to 63.)
func TestWatched(t *testing.T) {
	const project = "watched"
	if err := cluster.Project(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	var p *monitoring.Prometheus
	for _, step := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"CalmWithoutMonitoring", calm},
		{"MonitoringAppears", func(t *testing.T) { p = appears(t, monitoring.UserWorkload) }},
		{"ScrapedSafely", func(t *testing.T) { scrapedSafely(t, p) }},
		{"ToldToBeScraped", toldToBeScraped},
		{"TokenReplaced", func(t *testing.T) { tokenReplaced(t, p) }},
		{"Accepted", func(t *testing.T) { accepted(t) }},
		{"RulesLoaded", func(t *testing.T) { rulesLoaded(t, p) }},
		{"Counted", func(t *testing.T) { counted(t, p, project) }},
		{"Case61Documented", func(t *testing.T) { documented(t, p, project) }},
		{"Case61Dashboards", func(t *testing.T) { dashboards(t, p, project) }},
		{"Runbook", func(t *testing.T) { runbook(t, project) }},
		{"Drawn", func(t *testing.T) { drawn(t, p, project) }},
		{"PlatformTakesOver", func(t *testing.T) { takesOver(t, p) }},
	} {
		if !t.Run(step.name, step.do) {
			t.FailNow()
		}
	}
}

// calm wants an operator that works and says nothing of what it lacks but in its account.
func calm(t *testing.T) {
	for _, pod := range operatorPods(t) {
		log, err := cluster.RunKubectl(t.Context(), "-n", operatorNamespace, "logs", pod.Name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(log) {
			if bytes.Contains(bytes.ToLower(line), []byte("error")) && !leaseMadeByOther(line) {
				t.Errorf("without monitoring the operator complains: %s", line)
			}
		}
	}
}

// leaseMadeByOther tells the line that leader election writes when two replicas start at once and
// the other one was the first to make the lease. Nothing is wrong then, and it has nothing to do
// with monitoring.
func leaseMadeByOther(line []byte) bool {
	return bytes.Contains(line, []byte("Error initially creating lease lock")) && bytes.Contains(line, []byte("already exists"))
}

// appears adds monitoring to the cluster and waits until the operator is scraped by a Prometheus.
func appears(t *testing.T, kind monitoring.Kind) *monitoring.Prometheus {
	t.Helper()
	if err := stack.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{"ServiceMonitor", "PrometheusRule"} {
		eventually(t, "the operator makes its "+wanted, func(ctx context.Context) (bool, string, error) {
			_, err := ours(ctx, wanted)
			return err == nil, fmt.Sprint(err), client.IgnoreNotFound(err)
		})
	}
	p, err := stack.Run(t.Context(), kind, pace)
	if err != nil {
		t.Fatal(err)
	}
	target(t, p, len(operatorPods(t)))
	return p
}

// ours is an object that the operator keeps for its monitoring.
func ours(ctx context.Context, kind string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("monitoring.coreos.com/v1")
	object.SetKind(kind)
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: rig.OperatorName}, object)
	return object, err
}

// scrapedSafely wants scrapes that verify whom they ask and say who asks, as prometheus-operator
// wrote them down. (Case 60.)
func scrapedSafely(t *testing.T, p *monitoring.Prometheus) {
	if found := target(t, p, len(operatorPods(t))); !strings.HasPrefix(found.ScrapeURL, "https://") {
		t.Errorf("the operator is scraped at %s, want https", found.ScrapeURL)
	}
	config, err := p.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{
		"serviceMonitor/" + operatorNamespace + "/" + rig.OperatorName,
		"credentials: <secret>",
		"server_name: agentic-operator-metrics." + operatorNamespace + ".svc",
		"ca_file: " + p.Files,
		"target_label: session_namespace",
	} {
		if !strings.Contains(config.YAML, wanted) {
			t.Errorf("the configuration lacks %q", wanted)
		}
	}
	for _, unsafe := range []string{"insecure_skip_verify: true", "honor_labels: true", "bearer_token_file"} {
		if strings.Contains(config.YAML, unsafe) {
			t.Errorf("the configuration has %q", unsafe)
		}
	}
	if t.Failed() {
		t.Log(config.YAML)
	}
}

// accepted wants no word from prometheus-operator against what the operator made.
func accepted(t *testing.T) {
	t.Helper()
	events := &corev1.EventList{}
	if err := cluster.Client.List(t.Context(), events, client.InNamespace(operatorNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Reason == "InvalidConfiguration" {
			t.Errorf("prometheus-operator rejects %s %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Message)
		}
	}
	log, err := os.ReadFile(stack.OperatorLog())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("skipping")) && bytes.Contains(line, []byte(operatorNamespace)) {
			t.Errorf("prometheus-operator says: %s", line)
		}
	}
}

// rulesLoaded wants every rule of the operator loaded and evaluated without an error.
func rulesLoaded(t *testing.T, p *monitoring.Prometheus) {
	rules, err := ours(t.Context(), "PrometheusRule")
	if err != nil {
		t.Fatal(err)
	}
	groups, _, err := unstructured.NestedSlice(rules.Object, "spec", "groups")
	if err != nil || len(groups) == 0 {
		t.Fatalf("the PrometheusRule has the groups %v (%v)", groups, err)
	}
	wanted := 0
	for _, group := range groups {
		wanted += len(group.(map[string]any)["rules"].([]any))
	}
	eventually(t, fmt.Sprintf("%d rules are loaded and evaluate", wanted), func(ctx context.Context) (bool, string, error) {
		loaded, err := p.Rules(ctx, nil)
		if err != nil {
			return false, "", err
		}
		good, sees := 0, ""
		for _, group := range loaded.Groups {
			for _, rule := range group.Rules {
				switch rule := rule.(type) {
				case promv1.AlertingRule:
					if rule.Health == promv1.RuleHealthGood {
						good++
					}
					sees += fmt.Sprintf("%s is %s (%s), ", rule.Name, rule.Health, rule.LastError)
				case promv1.RecordingRule:
					if rule.Health == promv1.RuleHealthGood {
						good++
					}
					sees += fmt.Sprintf("%s is %s (%s), ", rule.Name, rule.Health, rule.LastError)
				}
			}
		}
		return good == wanted, sees, nil
	})
}

// counted runs sessions with a restart of the operator in their middle. None is lost by it and none
// counted twice, though the pods that count are others. (Case 63.)
func counted(t *testing.T, p *monitoring.Prometheus, project string) {
	total := 0
	for number := range rounds {
		if number > 0 {
			restart(t)
		}
		pods := len(operatorPods(t))
		target(t, p, pods)
		// Counters begin at 0 before anything happens, or the first session would be missed.
		born := fmt.Sprintf(`count(ambient_sessions_total{session_namespace=%q} == 0)`, project)
		eventually(t, "the counters of the project are there", func(ctx context.Context) (bool, string, error) {
			result, err := ask(ctx, p, born)
			return err == nil && len(result) == 1, result.String(), err
		})
		round(t, project, number)
		for _, count := range endings {
			total += count
		}
		// What happens between the last scrape of a pod and its end cannot be known to Prometheus.
		for _, counter := range []string{"ambient_sessions_total", "ambient_sessions_completed_total"} {
			becomes(t, p, fmt.Sprintf(`sum(increase(%s{session_namespace=%q}[1h]))`, counter, project), float64(total), 0.5)
		}
	}
	if total != 12 {
		t.Fatalf("the test ran %d sessions, meant 12", total)
	}
}

// takesOver makes the namespace one of the platform: the other Prometheus scrapes it from then on,
// and the one before no more.
func takesOver(t *testing.T, before *monitoring.Prometheus) {
	namespace := &corev1.Namespace{}
	namespace.Name = operatorNamespace
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"openshift.io/cluster-monitoring":"true"}}}`))
	if err := cluster.Client.Patch(t.Context(), namespace, patch); err != nil {
		t.Fatal(err)
	}
	p, err := stack.Run(t.Context(), monitoring.Platform, pace)
	if err != nil {
		t.Fatal(err)
	}
	target(t, p, len(operatorPods(t)))
	rulesLoaded(t, p)
	accepted(t)
	eventually(t, "the other Prometheus has no target", func(ctx context.Context) (bool, string, error) {
		targets, err := before.Targets(ctx)
		return err == nil && len(targets.Active) == 0, fmt.Sprintf("%+v", targets.Active), err
	})
}

// drawn makes the pictures of the documentation, where they are asked for.
func drawn(t *testing.T, p *monitoring.Prometheus, project string) {
	folder := os.Getenv(monitoring.PicturesVariable)
	if folder == "" {
		t.Skip("pictures are made by: go run ./hack/screenshot")
	}
	first := slices.MinFunc(happened(t, project).created, time.Time.Compare)
	address := p.Graph(2+int(time.Since(first).Minutes()),
		`sum by (session_namespace) (increase(ambient_session_startup_duration_seconds_count[1h]))`,
		`histogram_quantile(0.95, sum by (le, session_namespace) (rate(ambient_session_startup_duration_seconds_bucket[1h])))`)
	if err := monitoring.Picture(t.Context(), address, filepath.Join(folder, "prometheus-session-startup.png"), 1280, 1795); err != nil {
		t.Error(err)
	}
}
