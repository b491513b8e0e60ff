package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dto "github.com/prometheus/client_model/go"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// judgeNumbers compares what the operator counts with what was recorded. A counter lives as long as the
// process, so it tells at the most what happened; what a leader counts that nobody disturbs must be
// just that, and so must what it says of the sessions that exist.
func (r *round) judgeNumbers(ctx context.Context) error {
	calm := r.prefix + "calm"
	if err := r.project(ctx, calm); err != nil {
		return err
	}
	var wishes []*wish
	for i := range 8 {
		prompt, ends := "sleep 1s\nexit 0", v1alpha1.PhaseCompleted
		if i%2 == 0 {
			prompt, ends = "sleep 1s\nexit 3", v1alpha1.PhaseFailed
		}
		w := &wish{key: types.NamespacedName{Namespace: calm, Name: fmt.Sprintf("calm-%d", i)}, prompt: prompt, ends: ends}
		if err := r.bring(ctx, w); err != nil {
			return err
		}
		wishes = append(wishes, w)
	}
	var wrong error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; pause(ctx, 500*time.Millisecond) {
		if wrong = r.numbersWrong(ctx, calm, wishes); wrong == nil {
			break
		}
	}
	if wrong != nil {
		r.violation("seed %d: %v", r.seed, wrong)
	}
	return r.deleteNow(ctx, calm)
}

// numbersWrong says which number is not as it should be.
func (r *round) numbersWrong(ctx context.Context, calm string, wishes []*wish) error {
	for _, w := range wishes {
		if err := r.fulfilled(w); err != nil {
			return fmt.Errorf("session %s: %w", w.key, err)
		}
	}
	leader, err := r.alone(ctx)
	if err != nil {
		return err
	}
	families, err := leader.scrape(ctx)
	if err != nil {
		return err
	}
	changes, gaps := r.changes()
	for edge, n := range changes {
		labels := map[string]string{"namespace": edge.namespace, "from_phase": string(edge.from), "to_phase": string(edge.to)}
		counted := total(families, "ambient_session_phase_transitions_total", labels)
		if counted > float64(n) && !gaps[edge.namespace] || edge.namespace == calm && counted != float64(n) {
			return fmt.Errorf("in %s the operator counts %v changes from %s to %s, and %d happened", edge.namespace, counted, edge.from, edge.to, n)
		}
	}
	for phase, n := range map[v1alpha1.Phase]float64{v1alpha1.PhaseCompleted: 4, v1alpha1.PhaseFailed: 4} {
		labels := map[string]string{"namespace": calm, "final_phase": string(phase)}
		if counted := total(families, "ambient_sessions_completed_total", labels); counted != n {
			return fmt.Errorf("in %s the operator counts %v runs that ended as %s, and %v did", calm, counted, phase, n)
		}
	}
	r.holds("counters equal history", len(changes))
	return r.gaugesWrong(ctx, families)
}

type edge struct {
	namespace string
	from, to  v1alpha1.Phase
}

// changes counts the phase changes of the round, and tells of which namespaces some may be missing.
func (r *round) changes() (changes map[edge]int, gaps map[string]bool) {
	changes, gaps = map[edge]int{}, map[string]bool{}
	for _, versions := range r.recorder.Sessions() {
		for i := 1; i < len(versions); i++ {
			was, is := versions[i-1].Object, versions[i].Object
			if versions[i].Listed && was.ResourceVersion != is.ResourceVersion {
				gaps[is.Namespace] = true
			}
			if was.Status.Phase != is.Status.Phase {
				changes[edge{is.Namespace, was.Status.Phase, is.Status.Phase}]++
			}
		}
	}
	return changes, gaps
}

// gaugesWrong compares how many sessions there are in each phase with what the operator says.
func (r *round) gaugesWrong(ctx context.Context, families map[string]*dto.MetricFamily) error {
	for _, namespace := range append(r.good, r.hostile...) {
		sessions := &v1alpha1.AgenticSessionList{}
		if err := r.cluster.Client.List(ctx, sessions, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing sessions: %w", err)
		}
		there := map[v1alpha1.Phase]float64{}
		for i := range sessions.Items {
			there[sessions.Items[i].Status.Phase]++
		}
		for i := range v1alpha1.Phases {
			phase := v1alpha1.Phases[i].Phase
			labels := map[string]string{"namespace": namespace, "phase": string(phase)}
			if told := total(families, "ambient_sessions", labels); told != there[phase] {
				return fmt.Errorf("in %s the operator says that %v sessions are %s, and %v are", namespace, told, phase, there[phase])
			}
		}
	}
	r.holds("gauges equal what exists", len(v1alpha1.Phases)*(len(r.good)+len(r.hostile)))
	return nil
}
