//go:build e2e

package monitoring

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/metrics"
)

// truth is what happened, told by the sessions and not by metrics.
type truth struct {
	project string
	pods    int
	// starts and runs are the bounds of how long each took, in seconds.
	starts, runs []span
	// created is when each session got its Job.
	created []time.Time
}

type span struct{ least, most float64 }

// happened reads the truth from the statuses of the sessions, which have whole seconds.
func happened(t *testing.T, project string) *truth {
	t.Helper()
	sessions := &v1alpha1.AgenticSessionList{}
	if err := cluster.Client.List(t.Context(), sessions, client.InNamespace(project)); err != nil {
		t.Fatal(err)
	}
	is := &truth{project: project, pods: len(operatorPods(t))}
	for i := range sessions.Items {
		s := &sessions.Items[i].Status
		if s.QueuedTime == nil || s.ProvisionedTime == nil || s.StartTime == nil || s.CompletionTime == nil {
			t.Fatalf("session %s does not say when it began and ended: %+v", sessions.Items[i].Name, s)
		}
		// A runner is ready after it has started and before it has ended.
		is.starts = append(is.starts, span{s.StartTime.Sub(s.QueuedTime.Time).Seconds() - 1, s.CompletionTime.Sub(s.QueuedTime.Time).Seconds() + 1})
		run := span{0, s.CompletionTime.Sub(s.StartTime.Time).Seconds() + 1}
		if s.Phase != v1alpha1.PhaseStopped {
			run.least = 5 // their scripts sleep for 6
		}
		is.runs = append(is.runs, run)
		is.created = append(is.created, s.ProvisionedTime.Time)
	}
	if len(sessions.Items) != 12 {
		t.Fatalf("there are %d sessions, want 12", len(sessions.Items))
	}
	return is
}

// recent is how many sessions got their Job within a time before now.
func (is *truth) recent(within time.Duration) int {
	n := 0
	for _, at := range is.created {
		if time.Since(at) < within {
			n++
		}
	}
	return n
}

// mean bounds the mean of spans, of which some may not have been counted.
func mean(spans []span) (least, most float64) {
	for _, s := range spans {
		least += max(0, s.least) / float64(len(spans))
		most += s.most / float64(len(spans))
	}
	return least, most
}

// quantile bounds what histogram_quantile makes of spans: it lies within the bucket of the one at
// that rank, or of its neighbours, as windows cut series off.
func quantile(q float64, spans []span, metric string) (least, most float64) {
	var buckets []float64
	for i := range metrics.Table {
		if metrics.Table[i].Name == metric {
			buckets = metrics.Table[i].Buckets
		}
	}
	var low, high []float64
	for _, s := range spans {
		low, high = append(low, s.least), append(high, s.most)
	}
	slices.Sort(low)
	slices.Sort(high)
	rank := int(q * float64(len(spans)))
	for _, edge := range buckets {
		if edge <= low[max(0, rank-2)] {
			least = edge
		}
	}
	most = math.Inf(1)
	for _, edge := range slices.Backward(buckets) {
		if edge >= high[min(len(high)-1, rank+1)] {
			most = edge
		}
	}
	return least, most
}

// sees says what is wrong with a result; empty for nothing.
type sees func(model.Vector) string

// between wants one series, whose value lies between two.
func between(least, most float64) sees {
	return func(result model.Vector) string {
		if len(result) != 1 {
			return fmt.Sprintf("%d series, want 1: %v", len(result), result)
		}
		return outside(result[0], least, most)
	}
}

func about(is, tolerance float64) sees { return between(is-tolerance, is+tolerance) }

// outside does not take what is no number for one.
func outside(sample *model.Sample, least, most float64) string {
	if is := float64(sample.Value); !(is >= least && is <= most) {
		return fmt.Sprintf("%v is %v, want %v to %v", sample.Metric, is, least, most)
	}
	return ""
}

// exactly wants these series and no others, by the values of a label, each within its bounds.
func exactly(label string, wanted map[string]span) sees {
	return func(result model.Vector) string {
		said := among(label, wanted)(result)
		for _, sample := range result {
			if _, known := wanted[string(sample.Metric[model.LabelName(label)])]; !known {
				said += fmt.Sprintf("; unexpected is %v", sample)
			}
		}
		return strings.TrimPrefix(said, "; ")
	}
}

// among wants these series, and may see others.
func among(label string, wanted map[string]span) sees {
	return func(result model.Vector) string {
		var wrong []string
		for value, bounds := range wanted {
			found := slices.IndexFunc(result, func(s *model.Sample) bool { return string(s.Metric[model.LabelName(label)]) == value })
			if found < 0 {
				wrong = append(wrong, fmt.Sprintf("there is no %s=%q in %v", label, value, result))
			} else if said := outside(result[found], bounds.least, bounds.most); said != "" {
				wrong = append(wrong, said)
			}
		}
		return strings.Join(wrong, "; ")
	}
}

// each wants this many series at least, and every one within the bounds.
func each(number int, least, most float64) sees {
	return func(result model.Vector) string {
		if len(result) < number {
			return fmt.Sprintf("%d series, want %d: %v", len(result), number, result)
		}
		var wrong []string
		for _, sample := range result {
			if said := outside(sample, least, most); said != "" {
				wrong = append(wrong, said)
			}
		}
		return strings.Join(wrong, "; ")
	}
}

// idle takes away what is no number because nothing happened there, such as the share of 0 of 0.
func idle(of sees) sees {
	return func(result model.Vector) string {
		return of(slices.DeleteFunc(slices.Clone(result), func(s *model.Sample) bool { return math.IsNaN(float64(s.Value)) }))
	}
}
