package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/ambient-code/agentic-operator/internal/observability"
	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/monitoring"
)

const (
	// scrapeEvery stands for the half minute of a real cluster: the demo is over in one.
	scrapeEvery = time.Second
	// startup is how long sessions take to start, on average.
	startup = `sum(ambient_session_startup_duration_seconds_sum) / sum(ambient_session_startup_duration_seconds_count)`
)

// watch adds monitoring to the cluster, where DEMO_PROMETHEUS asks for it: the operator, which is
// there already, wires itself to it.
func (d *demo) watch(ctx context.Context) error {
	if os.Getenv("DEMO_PROMETHEUS") != "1" {
		return nil
	}
	if d.cluster.Node != rig.NodeReal {
		return errors.New("DEMO_PROMETHEUS needs a real node: run the demo as root")
	}
	say("Adding prometheus-operator and Prometheus. The first time they are built from source, which takes some minutes.")
	dir, err := os.MkdirTemp("", "agentic-operator-demo-")
	if err != nil {
		return fmt.Errorf("making a folder for Prometheus: %w", err)
	}
	d.files = dir
	if d.stack, err = monitoring.Prepare(ctx, d.cluster, dir); err != nil {
		return err
	}
	if err := d.stack.Install(ctx); err != nil {
		return err
	}
	d.prometheus, err = d.stack.Run(ctx, monitoring.Plain, scrapeEvery)
	return err
}

// unwatch ends what watch started.
func (d *demo) unwatch() error {
	if d.stack == nil {
		return nil
	}
	if err := d.stack.Stop(); err != nil {
		return err
	}
	if err := os.RemoveAll(d.files); err != nil {
		return fmt.Errorf("removing the files of Prometheus: %w", err)
	}
	return nil
}

// panels shows what Prometheus says to the queries of the dashboard: of a graph its last points.
func (d *demo) panels(ctx context.Context) error {
	for _, row := range observability.Board {
		fmt.Printf("\n  %s\n", row.Title)
		for _, panel := range row.Panels {
			var shown []string
			for _, target := range panel.Targets {
				texts, err := d.points(ctx, panel, target)
				if err != nil {
					return err
				}
				shown = append(shown, texts...)
			}
			fmt.Printf("    %-42s %s\n", panel.Title, cmp.Or(strings.Join(shown, ", "), "nothing"))
		}
	}
	return nil
}

// points are the values of a target now, with what tells them apart.
func (d *demo) points(ctx context.Context, panel observability.Panel, target observability.Target) ([]string, error) {
	expression := strings.NewReplacer("$session_namespace", project, "$job", `job="`+observability.Job+`"`).Replace(target.Expr)
	value, _, _, err := d.prometheus.Query(ctx, expression, time.Now())
	if err != nil {
		return nil, fmt.Errorf("asking Prometheus for %s: %w", panel.Title, err)
	}
	samples, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("asking Prometheus for %s: the answer is a %s", panel.Title, value.Type())
	}
	var texts []string
	for _, sample := range samples {
		if number := float64(sample.Value); number != 0 && !math.IsNaN(number) {
			texts = append(texts, strings.TrimSpace(called(sample, target)+" "+inUnit(number, panel.Unit)))
		}
	}
	slices.Sort(texts)
	return texts, nil
}

// called is the legend of a series, or what its labels say.
func called(sample *model.Sample, target observability.Target) string {
	name := target.Legend
	for key, value := range sample.Metric {
		name = strings.ReplaceAll(name, "{{"+string(key)+"}}", string(value))
	}
	return name
}

func inUnit(value float64, unit observability.Unit) string {
	switch unit {
	case observability.Share:
		return fmt.Sprintf("%.0f%%", 100*value)
	case observability.Seconds:
		return fmt.Sprintf("%.2fs", value)
	case observability.Bytes:
		return fmt.Sprintf("%.0f MiB", value/(1<<20))
	}
	return fmt.Sprintf("%.3g", value)
}
