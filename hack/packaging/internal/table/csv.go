package table

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// shown is what a user sees of the operator before it is installed.
func (f *files) shown() []Row {
	spec := f.csv.Spec
	icon := none
	for _, i := range spec.Icon {
		icon = fmt.Sprintf("%s, %d bytes", i.MediaType, base64.StdEncoding.DecodedLen(len(i.Data)))
	}
	owned := spec.CustomResourceDefinitions.Owned
	exampled := map[string]bool{}
	for _, e := range f.examples {
		exampled[fmt.Sprint(e["apiVersion"], e["kind"])] = true
	}
	var specs, specsX, statuses, statusesX, resources []string
	kinds := map[string]bool{}
	for i := range owned {
		x, y := 0, 0
		for _, d := range owned[i].SpecDescriptors {
			x += min(len(d.XDescriptors), 1)
			noteKinds(kinds, d.XDescriptors)
		}
		for _, d := range owned[i].StatusDescriptors {
			y += min(len(d.XDescriptors), 1)
			noteKinds(kinds, d.XDescriptors)
		}
		specs, specsX = append(specs, count(owned[i].SpecDescriptors)), append(specsX, fmt.Sprint(x))
		statuses, statusesX = append(statuses, count(owned[i].StatusDescriptors)), append(statusesX, fmt.Sprint(y))
		resources = append(resources, fmt.Sprintf("%d kinds", len(owned[i].Resources)))
	}
	return []Row{
		{"icon", icon},
		{"description (characters)", fmt.Sprint(len(spec.Description))},
		{"annotation description", or(f.csv.Annotations["description"])},
		{"alm-examples (kinds covered)", fmt.Sprintf("%d of %d", len(exampled), len(owned))},
		{"specDescriptors", strings.Join(specs, " + ")},
		{"... with x-descriptors", strings.Join(specsX, " + ")},
		{"statusDescriptors", strings.Join(statuses, " + ")},
		{"... with x-descriptors", strings.Join(statusesX, " + ")},
		{"x-descriptor kinds", list(slices.Sorted(maps.Keys(kinds)))},
		{"owned CRD resources", strings.Join(resources, ", ")},
		{"maturity / maintainers / links / keywords", fmt.Sprintf("%s / %d / %d / %d", or(spec.Maturity), len(spec.Maintainers), len(spec.Links), len(spec.Keywords))},
	}
}

func count[T any](all []T) string { return fmt.Sprint(len(all)) }

func noteKinds(kinds map[string]bool, descriptors []string) {
	for _, d := range descriptors {
		d = strings.TrimPrefix(strings.TrimPrefix(d, "urn:alm:descriptor:"), "com.tectonic.ui:")
		kind, _, _ := strings.Cut(d, ":")
		kinds[kind] = true
	}
}

// installed is what OLM makes of the ClusterServiceVersion.
func (f *files) installed() []Row {
	spec := f.csv.Spec
	var modes []string
	for _, m := range spec.InstallModes {
		if m.Supported {
			modes = append(modes, string(m.Type))
		}
	}
	digests := 0
	for _, i := range spec.RelatedImages {
		if strings.Contains(i.Image, "@sha256:") {
			digests++
		}
	}
	cleanup := none
	if spec.Cleanup.Enabled {
		cleanup = "enabled"
	}
	deployments := spec.InstallStrategy.StrategySpec.DeploymentSpecs
	related, hardening := 0, []string{}
	for i := range deployments {
		d := &deployments[i].Spec
		hardening = append(hardening, hard(d)...)
		for _, c := range d.Template.Spec.Containers {
			for _, e := range c.Env {
				if strings.HasPrefix(e.Name, "RELATED_IMAGE_") {
					related++
				}
			}
		}
	}
	return []Row{
		{"installModes", list(modes)},
		{"minKubeVersion", or(spec.MinKubeVersion)},
		{"relatedImages", fmt.Sprintf("%d, %d by digest", len(spec.RelatedImages), digests)},
		{"RELATED_IMAGE_* variables", fmt.Sprint(related)},
		{"webhookdefinitions", fmt.Sprint(len(spec.WebhookDefinitions))},
		{"spec.cleanup", cleanup},
		{"replaces / skips / skipRange", fmt.Sprintf("%s / %s / %s", or(spec.Replaces), list(spec.Skips), or(f.csv.Annotations["olm.skipRange"]))},
		{"hardening of the operator's pods", list(hardening)},
		{"wildcard RBAC (rules with *)", fmt.Sprint(wildcards(spec.InstallStrategy.StrategySpec))},
	}
}

// hard lists what makes the pods of a Deployment robust and restricted.
func hard(d *appsv1.DeploymentSpec) []string {
	pod := d.Template.Spec
	has := []string{fmt.Sprintf("%d replicas", *d.Replicas)}
	note := func(is bool, what string) {
		if is {
			has = append(has, what)
		}
	}
	note(pod.PriorityClassName != "", "priority class "+pod.PriorityClassName)
	note(pod.Affinity != nil, "affinity")
	note(len(pod.TopologySpreadConstraints) > 0, "topology spread")
	note(pod.SecurityContext != nil && pod.SecurityContext.RunAsNonRoot != nil && *pod.SecurityContext.RunAsNonRoot, "nonRoot")
	note(pod.SecurityContext != nil && pod.SecurityContext.SeccompProfile != nil, "seccomp")
	for i := range pod.Containers {
		c := &pod.Containers[i]
		note(len(c.Resources.Requests) > 0 && len(c.Resources.Limits) > 0, "requests and limits")
		probes := 0
		for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if p != nil {
				probes++
			}
		}
		note(probes > 0, fmt.Sprintf("%d probes", probes))
		if s := c.SecurityContext; s != nil {
			note(s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem, "readOnlyRootFilesystem")
			note(s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation, "no privilege escalation")
			note(s.Capabilities != nil && slices.Contains(s.Capabilities.Drop, "ALL"), "drop ALL")
		}
		note(c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError, "FallbackToLogsOnError")
	}
	return has
}

func wildcards(strategy operators.StrategyDetailsDeployment) int {
	found := 0
	for _, p := range slices.Concat(strategy.ClusterPermissions, strategy.Permissions) {
		found += len(slices.DeleteFunc(slices.Clone(p.Rules), func(r rbacv1.PolicyRule) bool {
			return !slices.Contains(slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.NonResourceURLs), "*")
		}))
	}
	return found
}
