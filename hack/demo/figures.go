package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// figures shows what the dashboard would: made by Prometheus where there is one, else of what the
// operator's replicas count now.
func (d *demo) figures(ctx context.Context) error {
	headline("6. The figures of the dashboard")
	if d.prometheus != nil {
		return d.panels(ctx)
	}
	texts, err := d.scrape(ctx)
	if err != nil {
		return err
	}
	counts, err := parse(texts)
	if err != nil {
		return err
	}
	for _, row := range []struct{ title, value string }{
		{"Sessions, by phase", counts.by("ambient_sessions", "phase")},
		{"Sessions created", counts.by("ambient_sessions_total", "")},
		{"Runs ended", counts.by("ambient_sessions_completed_total", "final_phase")},
		{"From request to running", counts.average("ambient_session_startup_duration_seconds")},
		{"From Job to pod", counts.average("ambient_pod_creation_duration_seconds")},
		{"Making a token", counts.average("ambient_token_provision_duration_seconds")},
		{"Errors met", counts.by("ambient_session_errors_total", "error_type")},
	} {
		fmt.Printf("  %-26s %s\n", row.title, row.value)
	}
	if d.cluster.Node == rig.NodeReal {
		say("\nDEMO_PROMETHEUS=1 has a real Prometheus watch the demo; the operator wires itself to it.")
	}
	return nil
}

// scrape reads the metrics of the operator: of all its pods, or of the program here.
func (d *demo) scrape(ctx context.Context) ([][]byte, error) {
	if d.process != nil {
		text, err := scrapeHere(ctx, d.process.Metrics)
		return [][]byte{text}, err
	}
	pods := &corev1.PodList{}
	if err := d.cluster.Client.List(ctx, pods, client.InNamespace(rig.OperatorNamespace)); err != nil {
		return nil, fmt.Errorf("listing the operator's pods: %w", err)
	}
	var texts [][]byte
	for i := range pods.Items {
		text, err := d.cluster.Scrape(ctx, pods.Items[i].Name)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of %s: %w", pods.Items[i].Name, err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func scrapeHere(ctx context.Context, address string) (text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("asking for the metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if text, err = io.ReadAll(answer.Body); err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	return text, nil
}

// counts are the series of the demo's project, of all replicas.
type counts map[string][]*dto.Metric

func parse(texts [][]byte) (counts, error) {
	all := counts{}
	for _, text := range texts {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("reading the metrics: %w", err)
		}
		for name, family := range families {
			for _, series := range family.GetMetric() {
				if label(series, "namespace") == project {
					all[name] = append(all[name], series)
				}
			}
		}
	}
	return all, nil
}

func label(series *dto.Metric, name string) string {
	for _, pair := range series.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// by sums a metric up for each value of a label, leaving out what is 0.
func (c counts) by(metric, name string) string {
	sums := map[string]float64{}
	for _, series := range c[metric] {
		sums[label(series, name)] += series.GetCounter().GetValue() + series.GetGauge().GetValue()
	}
	var parts []string
	for value, sum := range sums {
		if sum != 0 {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %.0f", value, sum)))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// average is that of a histogram of seconds.
func (c counts) average(metric string) string {
	var sum float64
	var count uint64
	for _, series := range c[metric] {
		sum += series.GetHistogram().GetSampleSum()
		count += series.GetHistogram().GetSampleCount()
	}
	if count == 0 {
		return "never"
	}
	return fmt.Sprintf("%.2f s on average, %d times", sum/float64(count), count)
}
