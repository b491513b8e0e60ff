package checks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/scorecard/internal/operator"
)

// settling is how long Events and numbers may be behind the status that they speak of.
const settling = time.Minute

// Which conditions are True in a phase, beside v1alpha1.ConditionRecorded, which is True in each where
// the definitions are the operator's own; the others are False.
var (
	trueWhenRunning = []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionPVCReady, v1alpha1.ConditionSecretsReady, v1alpha1.ConditionJobCreated,
		v1alpha1.ConditionPodScheduled, v1alpha1.ConditionRunnerStarted, v1alpha1.ConditionReposReconciled,
		v1alpha1.ConditionWorkflowReconciled, v1alpha1.ConditionReconciled,
	}
	// What the run had and what outlives it; its token is gone.
	trueWhenCompleted = []string{
		v1alpha1.ConditionCompleted, v1alpha1.ConditionPVCReady, v1alpha1.ConditionJobCreated, v1alpha1.ConditionPodScheduled,
		v1alpha1.ConditionRunnerStarted, v1alpha1.ConditionReposReconciled, v1alpha1.ConditionWorkflowReconciled, v1alpha1.ConditionReconciled,
	}
	// A stop removes the Job and its pod; the workspace stays.
	trueWhenStopped = []string{
		v1alpha1.ConditionPVCReady, v1alpha1.ConditionReposReconciled, v1alpha1.ConditionWorkflowReconciled, v1alpha1.ConditionReconciled,
	}
)

// conditionsAndMetrics compares what the operator tells of two sessions, one that ends by itself and
// one that is stopped, and of a project, with what its documentation says.
func conditionsAndMetrics(ctx context.Context, s *Scene) error {
	ending, waiting := s.example(ctx), s.waiting(ctx, "waiting")
	for _, session := range []*v1alpha1.AgenticSession{ending, waiting} {
		if err := s.Project.Start(ctx, session); err != nil {
			return err
		}
	}
	settings, err := s.Project.Apply(ctx, s.Bundle.Settings)
	if err != nil {
		return err
	}
	s.conditions("ProjectSettings "+settings.Name, settings.Status.Conditions, nil, nil)
	running, err := s.Project.Reaches(ctx, waiting.Name, v1alpha1.PhaseRunning)
	if err != nil {
		return err
	}
	s.ofSession(running, trueWhenRunning)
	completed, err := s.Project.Reaches(ctx, ending.Name, v1alpha1.PhaseCompleted)
	if err != nil {
		return err
	}
	s.ofSession(completed, trueWhenCompleted)
	if err := s.Project.Ask(ctx, waiting.Name, v1alpha1.DesiredStopped); err != nil {
		return err
	}
	stopped, err := s.Project.Reaches(ctx, waiting.Name, v1alpha1.PhaseStopped)
	if err != nil {
		return err
	}
	s.ofSession(stopped, trueWhenStopped)
	// A runner that has nothing to do may be at its end before it was seen to answer.
	had, err := s.events(ctx, completed, []string{"PhaseCompleted"}, "PhaseRunning")
	if err != nil {
		return err
	}
	if _, err := s.events(ctx, stopped, []string{"PhaseRunning", "PhaseStopping", "PhaseStopped"}); err != nil {
		return err
	}
	return s.numbers(ctx, s.wanted(slices.Contains(had, "PhaseRunning")))
}

func (s *Scene) ofSession(session *v1alpha1.AgenticSession, isTrue []string) {
	var all []string
	for _, word := range v1alpha1.ConditionTypes {
		all = append(all, word.Word)
	}
	isTrue = append(slices.Clone(isTrue), v1alpha1.ConditionRecorded)
	s.conditions(fmt.Sprintf("session %s, which is %s,", session.Name, session.Status.Phase), session.Status.Conditions, all, isTrue)
}

// conditions compares: all of them are to be there, each with a reason and a message, and those that
// are listed are True, the others False. Without a list, all are True.
func (s *Scene) conditions(of string, have []metav1.Condition, all, isTrue []string) {
	failures := s.Failures()
	if len(have) == 0 {
		s.Fail("%s has no conditions", of)
	}
	for _, kind := range all {
		if !slices.ContainsFunc(have, func(c metav1.Condition) bool { return c.Type == kind }) {
			s.Fail("%s lacks the condition %s", of, kind)
		}
	}
	for _, c := range have {
		want := metav1.ConditionTrue
		if all != nil && !slices.Contains(isTrue, c.Type) {
			want = metav1.ConditionFalse
		}
		if c.Status != want || c.Reason == "" || c.Message == "" {
			s.Fail("%s has the condition %s=%s with reason %q, message %q; want %s, with a reason and a message", of, c.Type, c.Status, c.Reason, c.Message, want)
		}
	}
	if s.Failures() == failures {
		s.Note("%s has %d conditions, each as documented", of, len(have))
	}
}

// events waits for the Events of a session, one for each change of its phase, and returns those
// changes. There are to be those that are wanted, and may be the other ones.
func (s *Scene) events(ctx context.Context, session *v1alpha1.AgenticSession, want []string, others ...string) (have []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		list := &eventsv1.EventList{}
		if err := s.client.List(ctx, list, client.InNamespace(s.Project.Name)); err != nil {
			return false, err
		}
		have = nil
		for _, e := range list.Items {
			if e.Regarding.UID == session.UID && strings.HasPrefix(e.Action, "Phase") {
				have = append(have, e.Action)
			}
		}
		return !slices.ContainsFunc(want, func(action string) bool { return !slices.Contains(have, action) }), nil
	})
	if err != nil && !wait.Interrupted(err) {
		return nil, fmt.Errorf("listing the Events of session %s: %w", session.Name, err)
	}
	told := slices.Sorted(slices.Values(have))
	told = slices.DeleteFunc(told, func(action string) bool { return slices.Contains(others, action) })
	if !slices.Equal(told, slices.Sorted(slices.Values(want))) {
		s.Fail("session %s has Events of the changes %v, want %v", session.Name, have, want)
		return have, nil
	}
	s.Note("session %s has an Event for each change of its phase", session.Name)
	return have, nil
}

// number is one that the two sessions must have brought the metrics of the project to.
type number struct {
	family string
	labels map[string]string
	want   float64
}

// wanted are the numbers of a session that completed and one that was stopped. The first may have
// completed without having been seen to run.
func (s *Scene) wanted(seen bool) []number {
	ran, unseen := 2.0, 0.0
	if !seen {
		ran, unseen = 1, 1
	}
	of := func(more ...string) map[string]string {
		labels := map[string]string{"namespace": s.Project.Name}
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		return labels
	}
	change := func(from, to v1alpha1.Phase, want float64) number {
		return number{"ambient_session_phase_transitions_total", of("from_phase", string(from), "to_phase", string(to)), want}
	}
	ended := func(phase v1alpha1.Phase, reason string) []number {
		return []number{
			{"ambient_sessions_completed_total", of("final_phase", string(phase)), 1},
			{"ambient_session_run_outcomes_total", of("final_phase", string(phase), "reason", reason), 1},
			{"ambient_sessions", of("phase", string(phase)), 1},
		}
	}
	numbers := []number{
		{"ambient_sessions_total", of(), 2},
		{"ambient_session_startup_duration_seconds", of(), ran},
		{"ambient_session_run_duration_seconds", of(), 2},
		{"ambient_token_renewals_total", of("result", "success"), 2},
		{"ambient_sessions_completed_total", of("final_phase", string(v1alpha1.PhaseFailed)), 0},
		change(v1alpha1.PhasePending, v1alpha1.PhaseCreating, 2),
		change(v1alpha1.PhaseCreating, v1alpha1.PhaseRunning, ran),
		change(v1alpha1.PhaseRunning, v1alpha1.PhaseCompleted, 1-unseen),
		change(v1alpha1.PhaseCreating, v1alpha1.PhaseCompleted, unseen),
		change(v1alpha1.PhaseRunning, v1alpha1.PhaseStopping, 1),
		change(v1alpha1.PhaseStopping, v1alpha1.PhaseStopped, 1),
	}
	numbers = append(numbers, ended(v1alpha1.PhaseCompleted, v1alpha1.ReasonRunnerCompleted)...)
	return append(numbers, ended(v1alpha1.PhaseStopped, v1alpha1.ReasonStoppedByUser)...)
}

// numbers reads the metrics of the replica that leads, which alone counts.
func (s *Scene) numbers(ctx context.Context, wanted []number) error {
	scraper, err := s.Operator.Scraper(ctx, s.config, s.Home)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	var wrong []string
	var last error
	err = wait.PollUntilContextCancel(ctx, 2*time.Second, true, func(ctx context.Context) (bool, error) {
		var m operator.Metrics
		if m, last = scraper.Leader(ctx); last != nil {
			// A right that was given a moment ago may not be known yet.
			return errors.Is(last, operator.ErrUnreachable), nil
		}
		wrong = compare(m, wanted)
		return len(wrong) == 0, nil
	})
	switch {
	case errors.Is(last, operator.ErrUnreachable):
		s.Suggest("the numbers were not looked at, since %v; let the pods of namespace %s reach the operator's port", last, s.Home)
		return nil
	case len(wrong) > 0:
		s.Fail("the metrics are wrong: %s", strings.Join(wrong, "; "))
	case last != nil:
		return last
	case err != nil:
		return fmt.Errorf("reading the operator's metrics: %w", err)
	default:
		s.Note("the operator's metrics have the %d numbers that the two sessions make", len(wanted))
	}
	return nil
}

func compare(m operator.Metrics, wanted []number) (wrong []string) {
	for _, n := range wanted {
		if have := m.Value(n.family, n.labels); have != n.want {
			var labels []string
			for _, name := range slices.Sorted(maps.Keys(n.labels)) {
				labels = append(labels, name+"="+n.labels[name])
			}
			wrong = append(wrong, fmt.Sprintf("%s{%s} is %v, want %v", n.family, strings.Join(labels, ","), have, n.want))
		}
	}
	return wrong
}
