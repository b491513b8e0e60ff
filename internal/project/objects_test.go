package project_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/project"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

func TestEveryObjectIsOwnedAndLabelled(t *testing.T) {
	p := plan()
	objects := map[string]metav1.Object{
		"ambient-default-limits":    p.LimitRange(),
		"runner-allow-backend-only": p.NetworkPolicy(),
		"ambient-session-trigger":   p.TriggerAccount(),
	}
	for name, object := range objects {
		if object.GetName() != name {
			t.Errorf("%T is named %s, want %s", object, object.GetName(), name)
		}
	}
	for _, object := range []metav1.Object{p.LimitRange(), p.NetworkPolicy(), p.TriggerAccount(), p.TriggerRole(), p.TriggerBinding(), p.GroupBinding(grant("a", view))} {
		if object.GetNamespace() != "project" {
			t.Errorf("%T is in namespace %q", object, object.GetNamespace())
		}
		yes := true
		want := metav1.OwnerReference{APIVersion: "vteam.ambient-code/v1alpha1", Kind: "ProjectSettings", Name: "projectsettings", UID: "uid", Controller: &yes}
		if owners := object.GetOwnerReferences(); len(owners) != 1 || !equality.Semantic.DeepEqual(owners[0], want) {
			t.Errorf("%T is owned by %v, want %v", object, owners, want)
		}
		// The operator's caches select by this label.
		if object.GetLabels()[v1alpha1.LabelManagedBy] != "agentic-operator" || object.GetLabels()[v1alpha1.LabelProjectSettings] != "projectsettings" {
			t.Errorf("%T has the labels %v", object, object.GetLabels())
		}
	}
}

func TestTheDefaultSettings(t *testing.T) {
	s := project.Default("project", 90*time.Second)
	if s.Namespace != "project" || s.Name != "projectsettings" {
		t.Errorf("they are %s/%s", s.Namespace, s.Name)
	}
	if s.Spec.GroupAccess == nil || len(s.Spec.GroupAccess) > 0 {
		t.Errorf("groupAccess is %v, want an empty list", s.Spec.GroupAccess)
	}
	if got := s.Spec.InactivityTimeoutSeconds; got == nil || *got != 90 {
		t.Errorf("inactivityTimeoutSeconds is %v, want the operator's 90", got)
	}
	if got := project.Default("project", 0).Spec.InactivityTimeoutSeconds; got == nil || *got != 0 {
		t.Errorf("inactivityTimeoutSeconds is %v, want 0 (off), as the operator says", got)
	}
}

func TestTheLimitRange(t *testing.T) {
	limits := plan().LimitRange().Spec.Limits
	if len(limits) != 1 || limits[0].Type != corev1.LimitTypeContainer {
		t.Fatalf("it limits %v", limits)
	}
	for _, c := range []struct {
		got  corev1.ResourceList
		name corev1.ResourceName
		want string
	}{
		{limits[0].DefaultRequest, corev1.ResourceCPU, "250m"},
		{limits[0].DefaultRequest, corev1.ResourceMemory, "256Mi"},
		{limits[0].Default, corev1.ResourceCPU, "2"},
		{limits[0].Default, corev1.ResourceMemory, "4Gi"},
	} {
		if got := c.got[c.name]; got.String() != c.want {
			t.Errorf("%s is %s, want %s", c.name, got.String(), c.want)
		}
	}
	if len(limits[0].Max)+len(limits[0].Min) > 0 {
		t.Error("it refuses pods; it is to give defaults only")
	}
}

func TestCase36TheNetworkPolicySelectsRunnersOnly(t *testing.T) {
	policy := plan().NetworkPolicy()
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: "project", Name: "a"}}
	job := (&workload.Plan{Session: s, Runtime: runtimes.Default("image")}).Job(1)
	if !selector.Matches(labels.Set(job.Spec.Template.Labels)) {
		t.Errorf("%s does not select a runner with the labels %v", selector, job.Spec.Template.Labels)
	}
	for _, other := range []labels.Set{{}, {"app": "backend"}, {v1alpha1.LabelSession: "a"}, {v1alpha1.LabelManagedBy: "agentic-operator"}} {
		if selector.Matches(other) {
			t.Errorf("%s selects %v", selector, other)
		}
	}
	if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress"}) {
		t.Errorf("its types are %v: what runners reach is not to be limited", policy.Spec.PolicyTypes)
	}
}

func TestCase36TheNetworkPolicyNamesItsCallers(t *testing.T) {
	for _, c := range []struct {
		callers, want []string
		ports         []int32
	}{
		{[]string{"platform", "operators"}, []string{"operators", "platform"}, []int32{8001}},
		{[]string{"platform", "platform"}, []string{"platform"}, []int32{8001, 9000}},
	} {
		p := plan()
		p.Callers, p.RunnerPorts = c.callers, append(slices.Clone(c.ports), c.ports...)
		ingress := p.NetworkPolicy().Spec.Ingress
		if len(ingress) != 1 {
			t.Fatalf("there are %d rules", len(ingress))
		}
		var from []string
		for _, peer := range ingress[0].From {
			if peer.PodSelector != nil || peer.IPBlock != nil || peer.NamespaceSelector == nil || len(peer.NamespaceSelector.MatchLabels) != 1 || len(peer.NamespaceSelector.MatchExpressions) > 0 {
				t.Errorf("a peer is %v", peer)
				continue
			}
			from = append(from, peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
		}
		if !slices.Equal(from, c.want) {
			t.Errorf("it allows %v, want %v", from, c.want)
		}
		var ports []int32
		for _, port := range ingress[0].Ports {
			if port.Protocol == nil || *port.Protocol != corev1.ProtocolTCP || port.EndPort != nil {
				t.Errorf("a port is %v", port)
			}
			ports = append(ports, port.Port.IntVal)
		}
		if !slices.Equal(ports, c.ports) {
			t.Errorf("it allows the ports %v, want %v", ports, c.ports)
		}
	}
}
