package workload_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

func TestCase13AJobIsNeverRetried(t *testing.T) {
	for _, c := range plans {
		spec := c.plan().Job(1).Spec
		if spec.BackoffLimit == nil || *spec.BackoffLimit != 0 {
			t.Errorf("%s: backoffLimit is %v, want 0", c.name, spec.BackoffLimit)
		}
		if spec.Completions == nil || *spec.Completions != 1 || spec.Parallelism == nil || *spec.Parallelism != 1 {
			t.Errorf("%s: completions %v, parallelism %v; want 1 and 1", c.name, spec.Completions, spec.Parallelism)
		}
		if spec.PodReplacementPolicy == nil || *spec.PodReplacementPolicy != batchv1.Failed {
			t.Errorf("%s: podReplacementPolicy is %v, want Failed", c.name, spec.PodReplacementPolicy)
		}
		if got := spec.Template.Spec.RestartPolicy; got != corev1.RestartPolicyNever {
			t.Errorf("%s: restartPolicy is %s, want Never", c.name, got)
		}
	}
}

func TestCase9AJobIsMadeWithoutATTL(t *testing.T) {
	for _, c := range plans {
		if ttl := c.plan().Job(1).Spec.TTLSecondsAfterFinished; ttl != nil {
			t.Errorf("%s: the TTL is %d before the outcome is recorded", c.name, *ttl)
		}
	}
}

func TestCase14TheDeadlineIsThePlans(t *testing.T) {
	if got := small().Job(1).Spec.ActiveDeadlineSeconds; got == nil || *got != 900 {
		t.Errorf("activeDeadlineSeconds is %v, want 900", got)
	}
	if got := other().Job(1).Spec.ActiveDeadlineSeconds; got != nil {
		t.Errorf("activeDeadlineSeconds is %d without a timeout", *got)
	}
}

func TestCase37PodsPassPodSecurityRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	refusals := func(template corev1.PodTemplateSpec) []string {
		var all []string
		for _, result := range evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
			if !result.Allowed {
				all = append(all, result.ForbiddenReason+": "+result.ForbiddenDetail)
			}
		}
		return all
	}
	for _, c := range plans {
		if wrong := refusals(c.plan().Job(1).Spec.Template); wrong != nil {
			t.Errorf("%s: %v", c.name, wrong)
		}
	}
	spoilt := small().Job(1).Spec.Template
	spoilt.Spec.Containers[0].SecurityContext.Capabilities = nil
	if refusals(spoilt) == nil {
		t.Error("a pod that keeps its capabilities passes: the check shows nothing")
	}
}

// containers are all containers of a pod.
func containers(spec corev1.PodSpec) []corev1.Container {
	return slices.Concat(spec.InitContainers, spec.Containers)
}

// OpenShift's restricted-v2 assigns users, groups and labels itself, and refuses pods that fix them.
func TestCase37PodsFixNoUserOrGroup(t *testing.T) {
	for _, c := range plans {
		p := c.plan()
		p.Operator.FSGroup = nil
		spec := p.Job(1).Spec.Template.Spec
		context := spec.SecurityContext
		if context.RunAsUser != nil || context.RunAsGroup != nil || context.FSGroup != nil || context.SupplementalGroups != nil || context.SELinuxOptions != nil {
			t.Errorf("%s: the pod fixes an identity: %+v", c.name, context)
		}
		for _, container := range containers(spec) {
			context := container.SecurityContext
			if context.RunAsUser != nil || context.RunAsGroup != nil || context.SELinuxOptions != nil {
				t.Errorf("%s: container %s fixes an identity: %+v", c.name, container.Name, context)
			}
			if context.ReadOnlyRootFilesystem == nil || *context.ReadOnlyRootFilesystem {
				t.Errorf("%s: container %s has a read-only root; the contract says false", c.name, container.Name)
			}
		}
		if spec.HostNetwork || spec.HostPID || spec.HostIPC || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s: the pod shares the host's namespaces or gets a token by itself", c.name)
		}
	}
	if group := full().Job(1).Spec.Template.Spec.SecurityContext.FSGroup; group == nil || *group != 1001 {
		t.Errorf("where the operator is told a group, fsGroup is %v, want 1001", group)
	}
}

func TestEveryContainerHasRequestsAndLimits(t *testing.T) {
	for _, c := range plans {
		for _, container := range containers(c.plan().Job(1).Spec.Template.Spec) {
			for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
				if list.Cpu().IsZero() || list.Memory().IsZero() {
					t.Errorf("%s: container %s has resources %v", c.name, container.Name, container.Resources)
				}
			}
		}
	}
}

func TestTheRunnerIsWhatTheContractSays(t *testing.T) {
	job := small().Job(1)
	container := job.Spec.Template.Spec.Containers[0]
	if container.Name != session.RunnerContainer || container.Ports[0].Name != "agui" || container.Ports[0].ContainerPort != 8001 {
		t.Errorf("container %s, port %+v; want %s, agui on 8001", container.Name, container.Ports[0], session.RunnerContainer)
	}
	for name, probe := range map[string]*corev1.Probe{"readiness": container.ReadinessProbe, "liveness": container.LivenessProbe} {
		if probe.HTTPGet.Path != "/health" || probe.HTTPGet.Port.StrVal != "agui" {
			t.Errorf("the %s probe asks %s at %v; want /health at agui", name, probe.HTTPGet.Path, probe.HTTPGet.Port)
		}
	}
	mounts := map[string]corev1.VolumeMount{}
	for _, m := range container.VolumeMounts {
		mounts[m.MountPath] = m
	}
	if m := mounts["/workspace"]; m.Name != "workspace" || m.SubPath != "" {
		t.Errorf("/workspace is %+v", m)
	}
	if m := mounts["/app/.claude"]; m.Name != "workspace" || m.SubPath != ".claude" {
		t.Errorf("the state of the framework is %+v; want .claude of the workspace", m)
	}
	if m := mounts["/var/run/secrets/ambient"]; m.SubPath != "" || !m.ReadOnly {
		t.Errorf("case 34: the token is %+v; a sub-path would never be renewed", m)
	}
	labels := job.Spec.Template.Labels
	if labels["agentic-session"] != "hello" || labels["app"] != "ambient-code-runner" {
		t.Errorf("the pod's labels are %v", labels)
	}
}

func TestTheServiceReachesTheRunnerOfItsSessionAlone(t *testing.T) {
	p, stranger := small(), small()
	stranger.Session.Name = "hello2"
	selector := p.Service().Spec.Selector
	matches := func(labels map[string]string) bool {
		for key, value := range selector {
			if labels[key] != value {
				return false
			}
		}
		return true
	}
	if !matches(p.Job(3).Spec.Template.Labels) {
		t.Errorf("selector %v misses the runner's pod", selector)
	}
	if matches(stranger.Job(1).Spec.Template.Labels) {
		t.Errorf("selector %v matches another session's pod", selector)
	}
	for name, labels := range map[string]map[string]string{"Job": p.Job(1).Labels, "token Secret": p.TokenSecret(1).Labels} {
		if matches(labels) {
			t.Errorf("case 36: the %s looks like a runner pod: %v", name, labels)
		}
	}
	port := p.Service().Spec.Ports[0]
	if port.Name != "agui" || port.Port != 8001 || port.TargetPort.StrVal != "agui" {
		t.Errorf("the port is %+v", port)
	}
}

func TestCase19ObjectsAreOwnedWithoutBlocking(t *testing.T) {
	for _, c := range plans {
		p := c.plan()
		for _, object := range objects(p) {
			o, ok := object.(metav1.Object)
			if !ok {
				t.Fatalf("%T has no metadata", object)
			}
			owners := o.GetOwnerReferences()
			if len(owners) != 1 || owners[0].UID != p.Session.UID || owners[0].Kind != "AgenticSession" || owners[0].APIVersion != "vteam.ambient-code/v1alpha1" {
				t.Errorf("%s %s is owned by %v", c.name, o.GetName(), owners)
			}
			if owners[0].Controller == nil || !*owners[0].Controller || owners[0].BlockOwnerDeletion != nil {
				t.Errorf("%s %s: controller %v, blockOwnerDeletion %v; want true and unset", c.name, o.GetName(), owners[0].Controller, owners[0].BlockOwnerDeletion)
			}
			if o.GetNamespace() != "project" || o.GetLabels()[v1alpha1.LabelSession] != p.Session.Name || o.GetAnnotations()[v1alpha1.AnnotationSessionUID] != string(p.Session.UID) {
				t.Errorf("%s %s does not say whose it is: %v %v", c.name, o.GetName(), o.GetLabels(), o.GetAnnotations())
			}
		}
	}
}

func TestCase34TheTokenSecretSaysWhichRunItIsOf(t *testing.T) {
	secret := small().TokenSecret(7)
	if secret.Labels["app"] != "ambient-runner-token" || secret.Labels[v1alpha1.LabelRun] != "7" || secret.Data != nil {
		t.Errorf("labels %v, data %v", secret.Labels, secret.Data)
	}
}

func TestTheForcedPromptIsWrittenOnTheJob(t *testing.T) {
	p := full()
	if job := p.Job(2); job.Annotations[v1alpha1.AnnotationForceExecutePrompt] != "" {
		t.Error("a Job says that its prompt was forced though nobody asked")
	}
	p.Session.Annotations[v1alpha1.AnnotationForceExecutePrompt] = "true"
	if job := p.Job(2); job.Annotations[v1alpha1.AnnotationForceExecutePrompt] != "true" {
		t.Errorf("the Job's annotations are %v", job.Annotations)
	}
}

func TestRunnerSecret(t *testing.T) {
	if got := workload.RunnerSecret(nil); got != "ambient-runner-secrets" {
		t.Errorf("without settings it is %s", got)
	}
	if got := workload.RunnerSecret(&v1alpha1.ProjectSettings{}); got != "ambient-runner-secrets" {
		t.Errorf("with empty settings it is %s", got)
	}
	p := full()
	if got := p.RunnerSecret(); got != "team-keys" {
		t.Errorf("it is %s, want the project's", got)
	}
	var names []string
	for _, from := range small().Job(1).Spec.Template.Spec.Containers[0].EnvFrom {
		name := from.SecretRef.Name
		if *from.SecretRef.Optional {
			name += "?"
		}
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "ambient-runner-secrets ambient-non-vertex-integrations?" {
		t.Errorf("the runner gets %s", got)
	}
}
