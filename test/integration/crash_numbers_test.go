package integration

import (
	"fmt"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/metrics"
)

// tally is what the operators of a project must have counted together: what the histories of its
// sessions say, without what was stored by the one write of which the answer never arrived.
func tally(victims []*victim) map[string]float64 {
	want := map[string]float64{}
	for _, v := range victims {
		v.mu.Lock()
		lost := v.lost
		v.mu.Unlock()
		counts := map[string]float64{metrics.SessionsCreated: 1, metrics.TokenRenewals: float64(int(v.scenario.run) + v.scenario.renewals)}
		history := v.history()
		for i := 1; i < len(history); i++ {
			counts[moved(history[i-1], history[i])]++
			counts[metrics.PhaseTransitions]++
			if history[i].Terminal() {
				counts[metrics.SessionsEnded]++
				counts[metrics.RunOutcomes]++
				counts[metrics.RunDuration]++
			}
			if history[i] == running {
				counts[metrics.StartupDuration]++
			}
		}
		counts[metrics.PodCreation] = v.podsNamed()
		v.forget(counts, lost, history)
		for name, n := range counts {
			want[name] += n
		}
	}
	return want
}

// podsNamed is how often the status came to name a pod. A run that is over at once may never do so.
func (v *victim) podsNamed() (n float64) {
	named := ""
	for _, version := range suite.recorder.Versions(v.uid) {
		if is := version.Object.Status.PodName; is != named {
			if named == "" {
				n++
			}
			named = is
		}
	}
	return n
}

func moved(from, to v1alpha1.Phase) string {
	return fmt.Sprintf("%s %s>%s", metrics.PhaseTransitions, from, to)
}

// forget takes off what nobody could count: the operator never learned that it was stored.
func (v *victim) forget(counts map[string]float64, lost *storedStatus, history []v1alpha1.Phase) {
	if lost == nil {
		return
	}
	if lost.PodName != "" {
		counts[metrics.PodCreation]--
	}
	if lost.ObservedGeneration > 0 && v.firstStatus() {
		counts[metrics.SessionsCreated]--
	}
	if lost.Phase == "" {
		return
	}
	for i := len(history) - 1; i > 0; i-- {
		if history[i] != lost.Phase {
			continue
		}
		counts[moved(history[i-1], history[i])]--
		counts[metrics.PhaseTransitions]--
		if lost.Phase.Terminal() {
			counts[metrics.SessionsEnded]--
			counts[metrics.RunOutcomes]--
			counts[metrics.RunDuration]--
		}
		if lost.Phase == running {
			counts[metrics.StartupDuration]--
		}
		return
	}
}

// firstStatus says that the write that met the blow was the first of the session's status.
func (v *victim) firstStatus() bool {
	return v.scenario.ready == nil && v.scenario.armedIn == "" && v.n == 1
}

// counted compares what operators have counted in a project with its tally.
func (p *project) counted(victims []*victim, operators ...*operatorRun) error {
	for name, want := range tally(victims) {
		metric, move, _ := strings.Cut(name, " ")
		labels := map[string]string{"namespace": p.name}
		if from, to, ok := strings.Cut(move, ">"); ok {
			labels["from_phase"], labels["to_phase"] = from, to
		}
		got := 0.0
		if metric == metrics.TokenRenewals {
			if b := victims[0].blow; b.kills() || b == unanswered {
				continue // the token itself may be lost with the operator, and is minted again
			}
			labels["result"] = "success"
		}
		for _, o := range operators {
			n, err := o.total(metric, labels)
			if err != nil {
				return err
			}
			got += n
		}
		if got != want {
			return fmt.Errorf("%s: %v were counted, want %v", name, got, want)
		}
	}
	return nil
}

// toldOnce compares the Events of phase changes with the phase changes: each is told once, or not at all
// if the operator died over it.
func (p *project) toldOnce(victims []*victim) error {
	list := &eventsv1.EventList{}
	if err := suite.admin.List(p.ctx, list, client.InNamespace(p.name)); err != nil {
		return err
	}
	events := map[string]int{}
	for i := range list.Items {
		e := &list.Items[i]
		phase, ok := strings.CutPrefix(e.Action, "Phase")
		if !ok {
			continue
		}
		times := 1
		if e.Series != nil {
			times = int(e.Series.Count)
		}
		events[e.Regarding.Name+" "+phase] += times
	}
	for _, v := range victims {
		history, changes := v.history(), map[v1alpha1.Phase]int{}
		for _, phase := range history[1:] {
			changes[phase]++
		}
		delete(changes, v1alpha1.PhaseCreating) // has no Event
		v.mu.Lock()
		if v.lost != nil && v.lost.Phase != "" && changes[v.lost.Phase] > 0 {
			changes[v.lost.Phase]--
		}
		v.mu.Unlock()
		for _, info := range v1alpha1.Phases {
			got, most := events[v.name+" "+string(info.Phase)], changes[info.Phase]
			if got > most || got < most && !v.blow.kills() {
				return fmt.Errorf("%s: %d Events tell that it became %s, want %d", v, got, info.Phase, most)
			}
		}
	}
	return nil
}
