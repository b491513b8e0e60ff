package project_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/project"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func problem(condition, reason, message string) func(*project.Outcome) {
	return func(o *project.Outcome) { o.Add(condition, project.Problem{Reason: reason, Message: message}) }
}

func refuse(group, reason, message string) func(*project.Outcome) {
	return func(o *project.Outcome) {
		o.Refuse(grant(group, view), project.Problem{Reason: reason, Message: message})
	}
}

func outcome(bound int32, changes ...func(*project.Outcome)) *project.Outcome {
	o := &project.Outcome{Bound: bound}
	for _, change := range changes {
		change(o)
	}
	return o
}

func TestTheStatusTells(t *testing.T) {
	const access, trigger, limits, network, ready = v1alpha1.ConditionGroupAccessReady, v1alpha1.ConditionScheduledRBACReady,
		v1alpha1.ConditionLimitRangeReady, v1alpha1.ConditionNetworkPolicyReady, v1alpha1.ConditionReady
	for _, c := range []struct {
		name    string
		outcome *project.Outcome
		// no maps the conditions that are False to their reasons; the others are True.
		no              map[string]string
		trigger, limits bool
		says            string
	}{
		{"all is well", outcome(2), nil, true, true, "in place"},
		{"a group is refused", outcome(1, refuse("system:authenticated", v1alpha1.ReasonGroupRefused, "no")),
			map[string]string{access: v1alpha1.ReasonGroupRefused, ready: v1alpha1.ReasonGroupRefused}, true, true, "no"},
		{"a removal failed and a group is refused", outcome(1, refuse("g", v1alpha1.ReasonGroupRefused, "no"), problem(access, v1alpha1.ReasonRevocationFailed, "still there")),
			map[string]string{access: v1alpha1.ReasonRevocationFailed, ready: v1alpha1.ReasonRevocationFailed}, true, true, "still there; no"},
		{"the trigger's Role is taken", outcome(0, problem(trigger, v1alpha1.ReasonNameCollision, "taken")),
			map[string]string{trigger: v1alpha1.ReasonNameCollision, ready: v1alpha1.ReasonNameCollision}, false, true, "taken"},
		{"limits and policy fail", outcome(0, problem(network, v1alpha1.ReasonNotApplied, "second"), problem(limits, v1alpha1.ReasonQuotaExceeded, "first")),
			map[string]string{limits: v1alpha1.ReasonQuotaExceeded, network: v1alpha1.ReasonNotApplied, ready: v1alpha1.ReasonQuotaExceeded}, true, false, "first; second"},
	} {
		status := project.Status(settings(), c.outcome, noon)
		if status.ObservedGeneration != 3 || status.GroupBindingsCreated != c.outcome.Bound || status.ScheduledSessionRBACReady != c.trigger || status.LimitRangeReady != c.limits {
			t.Errorf("%s: the status is %+v", c.name, status)
		}
		if len(status.Conditions) != len(v1alpha1.ProjectConditionTypes) {
			t.Errorf("%s: there are %d conditions", c.name, len(status.Conditions))
		}
		for _, word := range v1alpha1.ProjectConditionTypes {
			got := meta.FindStatusCondition(status.Conditions, word.Word)
			if got == nil || got.ObservedGeneration != 3 || got.Message == "" || !known(got.Reason) {
				t.Errorf("%s: condition %s is %+v", c.name, word.Word, got)
				continue
			}
			want, is := v1alpha1.ReasonPresent, metav1.ConditionTrue
			if reason, no := c.no[word.Word]; no {
				want, is = reason, metav1.ConditionFalse
			}
			if got.Status != is || got.Reason != want {
				t.Errorf("%s: condition %s is %s for %s, want %s for %s", c.name, word.Word, got.Status, got.Reason, is, want)
			}
		}
		if message := meta.FindStatusCondition(status.Conditions, ready).Message; !strings.Contains(message, c.says) {
			t.Errorf("%s: Ready says %q, want %q", c.name, message, c.says)
		}
	}
}

func known(reason string) bool {
	for _, words := range [][]v1alpha1.Word{v1alpha1.Reasons, v1alpha1.ProjectReasons} {
		for _, word := range words {
			if word.Word == reason {
				return true
			}
		}
	}
	return false
}

func TestCase17UnservedSettingsSaySo(t *testing.T) {
	for _, why := range []*project.Problem{project.NotManaged(), project.Ignored("other")} {
		s := settings()
		s.Status = project.Status(s, outcome(2, refuse("g", v1alpha1.ReasonGroupRefused, "no")), noon)
		s.Generation = 4
		status := project.Status(s, &project.Outcome{Unserved: why}, noon.Add(time.Hour))
		for _, c := range status.Conditions {
			is := metav1.ConditionUnknown
			if c.Type == v1alpha1.ConditionReady {
				is = metav1.ConditionFalse
			}
			if c.Status != is || c.Reason != why.Reason || c.Message != why.Message || c.ObservedGeneration != 4 {
				t.Errorf("%s: condition %s is %s for %s", why.Reason, c.Type, c.Status, c.Reason)
			}
		}
		if status.GroupBindingsCreated != 2 || !status.LimitRangeReady {
			t.Errorf("%s: what is still there is no longer counted: %+v", why.Reason, status)
		}
	}
}

func TestCase40TheStatusSettles(t *testing.T) {
	s := settings()
	o := outcome(1, refuse("g", v1alpha1.ReasonGroupRefused, "no"), problem(v1alpha1.ConditionLimitRangeReady, v1alpha1.ReasonNotApplied, "later"))
	s.Status = project.Status(s, o, noon)
	again := project.Status(s, o, noon.Add(time.Hour))
	if !equality.Semantic.DeepEqual(s.Status, again) {
		t.Errorf("the same outcome makes another status: %+v, then %+v", s.Status, again)
	}
	s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: "Theirs", Status: metav1.ConditionTrue})
	status := project.Status(s, outcome(1), noon.Add(time.Hour))
	if meta.FindStatusCondition(status.Conditions, "Theirs") == nil {
		t.Error("somebody else's condition is gone")
	}
	if at := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionLimitRangeReady).LastTransitionTime; !at.Equal(&metav1.Time{Time: noon.Add(time.Hour)}) {
		t.Errorf("the condition changed at %s", at)
	}
	if at := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionNetworkPolicyReady).LastTransitionTime; !at.Equal(&metav1.Time{Time: noon}) {
		t.Errorf("a condition that did not change did so at %s", at)
	}
}

func TestALongMessageIsCut(t *testing.T) {
	var changes []func(*project.Outcome)
	for range 200 {
		changes = append(changes, refuse("g", v1alpha1.ReasonNotApplied, strings.Repeat("é", 3000)))
	}
	status := project.Status(settings(), outcome(0, changes...), noon)
	for _, c := range status.Conditions {
		if len(c.Message) > 32768 || strings.ToValidUTF8(c.Message, "?") != c.Message {
			t.Errorf("condition %s has a message of %d bytes", c.Type, len(c.Message))
		}
	}
	if len(status.GroupErrors) != 200 {
		t.Errorf("there are %d groupErrors", len(status.GroupErrors))
	}
}

func TestCase24CollisionsAreRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		outcome *project.Outcome
		want    bool
	}{
		"none":                {outcome(1, refuse("g", v1alpha1.ReasonGroupRefused, "no")), false},
		"of the limits":       {outcome(0, problem(v1alpha1.ConditionLimitRangeReady, v1alpha1.ReasonNameCollision, "taken")), true},
		"of the second group": {outcome(0, refuse("f", v1alpha1.ReasonGroupRefused, "no"), refuse("g", v1alpha1.ReasonNameCollision, "taken")), true},
	} {
		status := project.Status(settings(), c.outcome, noon)
		if got := project.Collides(&status); got != c.want {
			t.Errorf("%s: collides is %t, want %t", name, got, c.want)
		}
	}
}
