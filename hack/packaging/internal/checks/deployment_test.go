package checks_test

import (
	"slices"
	"strings"
	"testing"

	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestTheOperatorsPodIsHardened(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		for _, d := range readCSV(t, dir).Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			pod := d.Spec.Template.Spec
			if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
				t.Errorf("%s: want two replicas, so that one takes over", d.Name)
			}
			if len(pod.TopologySpreadConstraints) == 0 || pod.PriorityClassName == "" {
				t.Errorf("%s: want a spread and a priority", d.Name)
			}
			if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser != nil || s.FSGroup != nil ||
				s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: the pod's security context is %+v; want non-root, no fixed user, RuntimeDefault", d.Name, s)
			}
			for i := range pod.Containers {
				hardened(t, &pod.Containers[i])
			}
		}
	})
}

func hardened(t *testing.T, c *corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
		s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") || s.RunAsUser != nil {
		t.Errorf("%s: the security context is %+v", c.Name, s)
	}
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		if list.Cpu().IsZero() || list.Memory().IsZero() {
			t.Errorf("%s: processor and memory must have requests and limits", c.Name)
		}
	}
	if c.StartupProbe == nil || c.LivenessProbe == nil || c.ReadinessProbe == nil {
		t.Errorf("%s: want three probes", c.Name)
	}
	if c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		t.Errorf("%s: a crash should tell its last words", c.Name)
	}
}

// The console hides an operator from nodes whose label it lacks, and the scheduler must not put it
// where there is no image.
func TestArchitecturesAreLabelledAndSelected(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		csv := readCSV(t, dir)
		labelled := map[string][]string{}
		for label, value := range csv.Labels {
			for _, kind := range []string{"arch", "os"} {
				if name, found := strings.CutPrefix(label, "operatorframework.io/"+kind+"."); found && value == "supported" {
					labelled["kubernetes.io/"+kind] = append(labelled["kubernetes.io/"+kind], name)
				}
			}
		}
		for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			terms := d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			if len(terms) != 1 {
				t.Fatalf("%s: %d node selector terms, want one", d.Name, len(terms))
			}
			for _, e := range terms[0].MatchExpressions {
				want := labelled[e.Key]
				slices.Sort(want)
				slices.Sort(e.Values)
				if e.Operator != corev1.NodeSelectorOpIn || !slices.Equal(e.Values, want) {
					t.Errorf("%s: %s %s %v; labelled are %v", d.Name, e.Key, e.Operator, e.Values, want)
				}
				delete(labelled, e.Key)
			}
			if len(labelled) > 0 {
				t.Errorf("%s: no node affinity for %v", d.Name, labelled)
			}
		}
	})
}

func TestCase48NoRightIsAWildcard(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		strategy := readCSV(t, dir).Spec.InstallStrategy.StrategySpec
		for _, p := range append(strategy.ClusterPermissions, strategy.Permissions...) {
			for _, r := range p.Rules {
				if wild(r) {
					t.Errorf("%+v", r)
				}
			}
		}
	})
}

func wild(r rbacv1.PolicyRule) bool {
	return slices.Contains(r.APIGroups, "*") || slices.Contains(r.Resources, "*") || slices.Contains(r.Verbs, "*")
}

func TestTheInstallModesAreThoseThatWork(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		modes := map[operators.InstallModeType]bool{}
		for _, m := range readCSV(t, dir).Spec.InstallModes {
			modes[m.Type] = m.Supported
		}
		if len(modes) != 4 || !modes[operators.InstallModeTypeAllNamespaces] {
			t.Errorf("install modes are %v; want all four answered, and AllNamespaces", modes)
		}
		limitable := false
		for _, d := range readCSV(t, dir).Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			limitable = limitable || slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Env, func(v corev1.EnvVar) bool {
				return v.Name == "WATCH_NAMESPACE" && v.ValueFrom.FieldRef.FieldPath == "metadata.annotations['olm.targetNamespaces']"
			})
		}
		for _, mode := range []operators.InstallModeType{operators.InstallModeTypeOwnNamespace, operators.InstallModeTypeSingleNamespace, operators.InstallModeTypeMultiNamespace} {
			if modes[mode] != limitable {
				t.Errorf("%s is supported: %t; that the operator learns its target namespaces: %t", mode, modes[mode], limitable)
			}
		}
	})
}
