package project

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Problem is why something is not as it should be.
type Problem struct {
	// Reason is one of v1alpha1.Reasons or v1alpha1.ProjectReasons.
	Reason string
	// Message is a sentence for people.
	Message string
}

// Outcome is what one pass made of the settings.
type Outcome struct {
	// Unserved says why the settings have no effect; nil when they are served.
	Unserved *Problem
	// Bound counts the RoleBindings of groups that are in place.
	Bound int32
	// Groups are the entries of groupAccess that are not in effect.
	Groups []v1alpha1.GroupError
	// Problems are what stands in the way of each condition, by its type.
	Problems map[string][]Problem
}

// Add notes a problem of the part of the project that a condition tells of.
func (o *Outcome) Add(condition string, problem Problem) {
	if o.Problems == nil {
		o.Problems = map[string][]Problem{}
	}
	o.Problems[condition] = append(o.Problems[condition], problem)
}

// Refuse notes why an entry of groupAccess is not in effect.
func (o *Outcome) Refuse(entry v1alpha1.GroupAccess, problem Problem) {
	o.Groups = append(o.Groups, entryError(entry, problem.Reason, cut(problem.Message, 1000)))
}

// Ignored is why settings of another name have no effect.
func Ignored(name string) *Problem {
	return &Problem{v1alpha1.ReasonIgnored, fmt.Sprintf("only the ProjectSettings named %s has an effect, this one is named %q: move what it says over there and delete it", SettingsName, name)}
}

// NotManaged is why the settings of a namespace without the label have no effect.
func NotManaged() *Problem {
	return &Problem{v1alpha1.ReasonNamespaceNotManaged, "the namespace does not have the label " + v1alpha1.LabelManaged + "=true: edits have no effect, and what was made for the project before stays as it is, the access of its groups included; set the label again, or delete this object to have all of it removed"}
}

// Status is what the settings' status tells after a pass. Unserved settings keep what was counted
// while they were served, because nothing of it is taken away.
func Status(settings *v1alpha1.ProjectSettings, o *Outcome, now time.Time) v1alpha1.ProjectSettingsStatus {
	status := *settings.Status.DeepCopy()
	status.ObservedGeneration = settings.Generation
	set := func(kind string, is metav1.ConditionStatus, problem Problem) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: is, Reason: problem.Reason, Message: cut(problem.Message, 4000),
			ObservedGeneration: settings.Generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		})
	}
	if o.Unserved != nil {
		set(v1alpha1.ConditionReady, metav1.ConditionFalse, *o.Unserved)
		for _, part := range parts {
			set(part.condition, metav1.ConditionUnknown, *o.Unserved)
		}
		return status
	}
	status.GroupBindingsCreated = o.Bound
	status.GroupErrors = o.Groups
	problems := o.problems()
	status.ScheduledSessionRBACReady = len(problems[v1alpha1.ConditionScheduledRBACReady]) == 0
	status.LimitRangeReady = len(problems[v1alpha1.ConditionLimitRangeReady]) == 0
	var all []Problem
	for _, part := range parts {
		if found := problems[part.condition]; len(found) > 0 {
			all = append(all, found...)
			set(part.condition, metav1.ConditionFalse, sum(found))
			continue
		}
		set(part.condition, metav1.ConditionTrue, Problem{v1alpha1.ReasonPresent, part.present})
	}
	if len(all) > 0 {
		set(v1alpha1.ConditionReady, metav1.ConditionFalse, sum(all))
	} else {
		set(v1alpha1.ConditionReady, metav1.ConditionTrue, Problem{v1alpha1.ReasonPresent, "everything that the settings ask for is in place"})
	}
	return status
}

// parts are the conditions besides Ready, each with what it says when all is well.
var parts = []struct{ condition, present string }{
	{v1alpha1.ConditionGroupAccessReady, "every entry of groupAccess is in effect, and nobody else has access through it"},
	{v1alpha1.ConditionScheduledRBACReady, "the ServiceAccount, Role and RoleBinding " + TriggerName + " are in place"},
	{v1alpha1.ConditionLimitRangeReady, "the LimitRange " + LimitRangeName + " is in place"},
	{v1alpha1.ConditionNetworkPolicyReady, "the NetworkPolicy " + NetworkPolicyName + " is in place"},
}

// problems adds the entries that are not in effect to the problems of the access. What keeps
// access that was taken away comes first: it matters most.
func (o *Outcome) problems() map[string][]Problem {
	all := map[string][]Problem{}
	for condition, found := range o.Problems {
		all[condition] = append(all[condition], found...)
	}
	for _, entry := range o.Groups {
		all[v1alpha1.ConditionGroupAccessReady] = append(all[v1alpha1.ConditionGroupAccessReady], Problem{entry.Reason, entry.Message})
	}
	return all
}

// sum makes one problem of several: the first one's reason, and all they say.
func sum(problems []Problem) Problem {
	const told = 5
	var messages []string
	for i, problem := range problems {
		if i == told {
			messages = append(messages, fmt.Sprintf("%d more", len(problems)-told))
			break
		}
		messages = append(messages, problem.Message)
	}
	return Problem{problems[0].Reason, strings.Join(messages, "; ")}
}

// cut keeps a message short: a status holds many, and an object of the API no more than a megabyte.
func cut(message string, limit int) string {
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + "..."
}

// Collides says that an object of somebody else's stood in the way in the pass before. Such
// objects are not cached, so they are to be looked for.
func Collides(status *v1alpha1.ProjectSettingsStatus) bool {
	for i := range status.Conditions {
		if status.Conditions[i].Reason == v1alpha1.ReasonNameCollision {
			return true
		}
	}
	for i := range status.GroupErrors {
		if status.GroupErrors[i].Reason == v1alpha1.ReasonNameCollision {
			return true
		}
	}
	return false
}
