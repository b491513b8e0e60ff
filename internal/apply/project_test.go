package apply

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/project"
)

func projectPlan() *project.Plan {
	settings := &v1alpha1.ProjectSettings{ObjectMeta: metav1.ObjectMeta{Name: "projectsettings", Namespace: "project", UID: "settings-uid"}}
	return &project.Plan{Settings: settings, Callers: []string{"platform"}, RunnerPorts: []int32{8001}}
}

func TestCase24WhoseAProjectsObjectIs(t *testing.T) {
	yes := true
	by := func(kind, name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: kind, Name: name, UID: uid, Controller: &yes}}
	}
	for _, c := range []struct {
		name    string
		meta    metav1.ObjectMeta
		reason  string
		isFinal bool
	}{
		{"ours", metav1.ObjectMeta{OwnerReferences: by("ProjectSettings", "projectsettings", "settings-uid")}, "", false},
		{"ours, owner reference taken off", metav1.ObjectMeta{Labels: project.Labels()}, "", false},
		{"of settings deleted before", metav1.ObjectMeta{OwnerReferences: by("ProjectSettings", "projectsettings", "old-uid")}, "", false},
		{"of settings deleted before, being deleted", metav1.ObjectMeta{OwnerReferences: by("ProjectSettings", "projectsettings", "old-uid"), DeletionTimestamp: &metav1.Time{}}, v1alpha1.ReasonBeingDeleted, false},
		{"of other settings", metav1.ObjectMeta{OwnerReferences: by("ProjectSettings", "other", "other-uid")}, v1alpha1.ReasonNameCollision, true},
		{"of a session", metav1.ObjectMeta{OwnerReferences: by("AgenticSession", "a", "session-uid"), Labels: project.Labels()}, v1alpha1.ReasonNameCollision, true},
		{"of nobody", metav1.ObjectMeta{}, v1alpha1.ReasonNameCollision, true},
		{"of nobody, with the label on all that is ours", metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator}}, v1alpha1.ReasonNameCollision, true},
	} {
		c.meta.Name = "ambient-default-limits"
		blocked := standing("LimitRange", projectPlan().LimitRange(), &corev1.LimitRange{ObjectMeta: c.meta})
		switch {
		case blocked == nil:
			if c.reason != "" {
				t.Errorf("%s: it counts as the project's; want %s", c.name, c.reason)
			}
		case blocked.Reason != c.reason || blocked.Final != c.isFinal || !strings.HasPrefix(blocked.Message, "LimitRange ambient-default-limits ") || strings.Contains(blocked.Message, "session"):
			t.Errorf("%s: the obstacle is %+v; want %s, final: %t", c.name, blocked.Obstacle, c.reason, c.isFinal)
		}
	}
}

func TestCase28WhatWasChangedOfAProjectIsMended(t *testing.T) {
	limits, policy := projectPlan().LimitRange(), projectPlan().NetworkPolicy()
	for name, c := range map[string]struct {
		desired, changed client.Object
	}{
		"limits": {limits, served(projectPlan().LimitRange(), func(o *corev1.LimitRange) {
			o.Spec.Limits[0].Default[corev1.ResourceMemory] = resource.MustParse("1Ti")
			o.Spec.Limits = append(o.Spec.Limits, corev1.LimitRangeItem{Type: corev1.LimitTypePod})
		})},
		"peers": {policy, served(projectPlan().NetworkPolicy(), func(o *networkingv1.NetworkPolicy) { o.Spec.Ingress[0].From = nil })},
		"selector": {policy, served(projectPlan().NetworkPolicy(), func(o *networkingv1.NetworkPolicy) {
			o.Spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
		})},
		"label": {policy, served(projectPlan().NetworkPolicy(), func(o *networkingv1.NetworkPolicy) {
			delete(o.Labels, v1alpha1.LabelManagedBy)
		})},
		"owner": {policy, served(projectPlan().NetworkPolicy(), func(o *networkingv1.NetworkPolicy) { o.OwnerReferences = nil })},
		"owner of settings deleted before": {policy, served(projectPlan().NetworkPolicy(), func(o *networkingv1.NetworkPolicy) {
			o.OwnerReferences[0].UID = "old-uid"
		})},
	} {
		now, replace := mended(c.desired, c.changed)
		var want client.Object = served(projectPlan().NetworkPolicy(), func(*networkingv1.NetworkPolicy) {})
		if name == "limits" {
			want = served(projectPlan().LimitRange(), func(*corev1.LimitRange) {})
		}
		if replace || !equality.Semantic.DeepEqual(now, want) {
			t.Errorf("%s: mended it is (replace: %t)\n%+v, want\n%+v", name, replace, now, want)
		}
		if again, _ := mended(c.desired, now); !equality.Semantic.DeepEqual(again, now) {
			t.Errorf("%s: what is as it should be is written again", name)
		}
	}
}
