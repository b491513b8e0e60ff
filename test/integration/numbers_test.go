package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/metrics"
)

// numbers are counters of a namespace as they should be; those that are not named should be 0.
type numbers struct {
	created, started, ran, pods, tokens float64
	ended                               map[v1alpha1.Phase]float64
	moved                               map[string]float64
	because                             map[string]float64
}

// expect compares the numbers of an operator about this project. Counters move just after the write
// that they count.
func (n *numbers) expect(p *project, o *operatorRun) {
	p.t.Helper()
	of := *p
	of.operator = o
	of.counts(metrics.SessionsCreated, n.created, nil)
	of.counts(metrics.StartupDuration, n.started, nil)
	of.counts(metrics.RunDuration, n.ran, nil)
	of.counts(metrics.PodCreation, n.pods, nil)
	of.counts(metrics.TokenProvision, n.tokens, nil)
	of.counts(metrics.TokenRenewals, n.tokens, nil)
	total := func(all map[string]float64) (sum float64) {
		for _, value := range all {
			sum += value
		}
		return sum
	}
	of.counts(metrics.PhaseTransitions, total(n.moved), nil)
	for move, value := range n.moved {
		from, to, _ := strings.Cut(move, ">")
		of.counts(metrics.PhaseTransitions, value, map[string]string{"from_phase": from, "to_phase": to})
	}
	sum := 0.0
	for phase, value := range n.ended {
		sum += value
		of.counts(metrics.SessionsEnded, value, map[string]string{"final_phase": string(phase)})
	}
	of.counts(metrics.SessionsEnded, sum, nil)
	of.counts(metrics.RunOutcomes, total(n.because), nil)
	for reason, value := range n.because {
		of.counts(metrics.RunOutcomes, value, map[string]string{"reason": reason})
	}
}

// series is how many series of a metric there are in the project.
func (p *project) series(o *operatorRun, name string) int {
	p.t.Helper()
	families, err := o.registry.Gather()
	if err != nil {
		p.t.Fatal(err)
	}
	n := 0
	for _, family := range families {
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if (name == "" || family.GetName() == name) && label.GetName() == "namespace" && label.GetValue() == p.name {
					n++
				}
			}
		}
	}
	return n
}

// counted says that the operators of this run know a metric of projects. Sessions by phase are counted in
// the cache, which an operator with plain watches does not have.
func counted(name string) bool {
	return !legacyWatch() || name != metrics.Sessions && name != metrics.OldestAge
}

// begun waits until an operator has the series of the project.
func (p *project) begun(o *operatorRun) {
	p.t.Helper()
	p.eventually("its series begin", func() error {
		for _, m := range metrics.Table {
			if slices.Contains(m.Labels, "namespace") && counted(m.Name) && p.series(o, m.Name) == 0 {
				return fmt.Errorf("%s has none", m.Name)
			}
		}
		return nil
	})
}

// count is what the histories of sessions give.
func count(sessions ...*session) *numbers {
	n := &numbers{created: float64(len(sessions)), ended: map[v1alpha1.Phase]float64{}, moved: map[string]float64{}}
	for _, s := range sessions {
		checkEdges(s.t, s)
		history := s.history()
		for i := 1; i < len(history); i++ {
			n.moved[string(history[i-1])+">"+string(history[i])]++
			if history[i].Terminal() {
				n.ended[history[i]]++
			}
			if history[i] == running {
				n.started++
			}
		}
	}
	return n
}

// present compares the numbers of sessions that there are, by phase.
func present(p *project, o *operatorRun, want map[v1alpha1.Phase]float64) {
	p.t.Helper()
	if !counted(metrics.Sessions) {
		return
	}
	for _, info := range v1alpha1.Phases {
		p.eventually("sessions that are "+string(info.Phase), func() error {
			got, err := o.total(metrics.Sessions, map[string]string{"namespace": p.name, "phase": string(info.Phase)})
			if err == nil && got != want[info.Phase] {
				err = fmt.Errorf("there are %v, want %v", got, want[info.Phase])
			}
			return err
		})
	}
}

// value is a metric of an operator that has no labels.
func value(t *testing.T, o *operatorRun, name string) float64 {
	t.Helper()
	got, err := o.total(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// sum is the sum of a histogram in a project.
func (p *project) sum(o *operatorRun, name string) float64 {
	p.t.Helper()
	families, err := o.registry.Gather()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if family.GetName() == name && series.GetLabel()[0].GetValue() == p.name {
				return series.GetHistogram().GetSampleSum()
			}
		}
	}
	p.t.Fatalf("%s has no series of %s", name, p.name)
	return 0
}
