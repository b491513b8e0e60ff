package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// uuidName is how the platform's backend names sessions.
const uuidName = "session-0f8e3c52-7d0c-4b6e-9a57-3f1f0a6f2c11"

// TestLifeToCompleted follows a session from its creation to its end and compares every object of
// it with the contract. (Case 13: one attempt; case 40: nothing is written once all is said.)
func TestLifeToCompleted(t *testing.T) {
	p := share(t)
	s := p.session(uuidName, "hang", timeout(900), func(s *v1alpha1.AgenticSession) {
		s.Spec.DisplayName = "A session"
		s.Spec.UserContext = &v1alpha1.UserContext{UserID: "u-1", DisplayName: "Ada", Groups: []string{"g"}}
		s.Spec.Repos = []v1alpha1.Repo{{URL: "https://git.example/a/one.git"}}
		s.Spec.ActiveWorkflow = &v1alpha1.Workflow{GitURL: "https://git.example/a/flow.git", Path: "sub"}
		s.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{
			"EXTRA": "more $(HOME)", "AGENTIC_SESSION_NAME": "forged", "AGUI_TOKEN": "forged", "USE_VERTEX": "1", "ANTHROPIC_API_KEY": "forged", "LLM_MODEL": "other",
		}
	})
	object := s.reaches(running)
	t.Run("job", func(t *testing.T) { checkJob(t, s, object) })
	t.Run("container", func(t *testing.T) { checkContainer(t, s) })
	t.Run("environment", func(t *testing.T) { checkEnvironment(t, s) })
	t.Run("objects", func(t *testing.T) { checkObjects(t, s) })
	if object.Annotations[v1alpha1.AnnotationRunnerServiceAccount] != "ambient-session-"+uuidName ||
		object.Annotations[v1alpha1.AnnotationRunnerTokenSecret] != "ambient-runner-token-"+uuidName {
		t.Errorf("the session's annotations %v do not name its identity and token Secret", object.Annotations)
	}
	if ready := condition(object, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue {
		t.Errorf("a Running session is not Ready: %s: %s", ready.Reason, ready.Message)
	}
	if s.job().Spec.TTLSecondsAfterFinished != nil {
		t.Error("the Job has a TTL before its outcome is known")
	}

	s.does("exit 0")
	object = s.reaches(completed)
	s.expectHistory(pending, creating, running, completed)
	s.ranOnce()
	if object.Status.CompletionTime == nil || object.Status.StartTime == nil || object.Status.Run != 1 || object.Status.PodName == "" {
		t.Errorf("the status of a completed session lacks something: %+v", object.Status)
	}
	s.eventually("the Job has a TTL", func() error {
		if s.job().Spec.TTLSecondsAfterFinished == nil {
			return fmt.Errorf("it has none")
		}
		return nil
	})
	ttlAfterOutcome(t, s)
	s.eventually("the token is gone", func() error {
		return p.absent("ambient-runner-token-"+uuidName, &corev1.Secret{})
	})
	before := auditedWrites(t, p)
	p.settles(3 * time.Second)
	p.patch(s.object(), `{"metadata":{"labels":{"touched":"yes"}}}`)
	p.settles(3 * time.Second)
	if after := auditedWrites(t, p); len(before) > 0 && len(after) > len(before)+1 {
		t.Errorf("the API server saw the operator write after all had settled: %v", after[len(before):])
	}
}

// ttlAfterOutcome compares when the TTL was set with when the outcome was in the status.
func ttlAfterOutcome(t *testing.T, s *session) {
	var said, set time.Time
	for _, v := range suite.recorder.Versions(s.uid) {
		if v.Object.Status.Phase == completed && said.IsZero() {
			said = v.Object.Status.CompletionTime.Time
		}
	}
	for _, v := range s.jobs() {
		if v.Object.Spec.TTLSecondsAfterFinished != nil && set.IsZero() {
			set = v.At
		}
	}
	if set.Before(said) {
		t.Errorf("the TTL was set at %s, before the outcome was told at %s", set, said)
	}
}

// auditedWrites lists the operator's writes about the project by the API server's account, Events
// left out.
func auditedWrites(t *testing.T, p *project) []string {
	if suite.audit == nil {
		return nil
	}
	events, err := suite.audit.of(p.name)
	if err != nil {
		t.Fatal(err)
	}
	var writes []string
	for i := range events {
		if e := &events[i]; e.write() && e.ObjectRef.Resource != "events" {
			writes = append(writes, fmt.Sprintf("%s %s %s %d", e.Verb, e.resource(), e.ObjectRef.Name, e.ResponseStatus.Code))
		}
	}
	return writes
}

func checkJob(t *testing.T, s *session, object *v1alpha1.AgenticSession) {
	job := s.job()
	spec := &job.Spec
	if object.Status.JobName != job.Name || object.Status.JobUID != string(job.UID) {
		t.Errorf("the status names Job %s %s, the Job is %s %s", object.Status.JobName, object.Status.JobUID, job.Name, job.UID)
	}
	if *spec.BackoffLimit != 0 || *spec.Completions != 1 || *spec.Parallelism != 1 || spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("the Job may run more than once")
	}
	if spec.PodReplacementPolicy == nil || *spec.PodReplacementPolicy != batchv1.Failed {
		t.Errorf("podReplacementPolicy is %v, want Failed", spec.PodReplacementPolicy)
	}
	if spec.ActiveDeadlineSeconds == nil || *spec.ActiveDeadlineSeconds < 900 {
		t.Errorf("activeDeadlineSeconds is %v, want at least the timeout of 900", spec.ActiveDeadlineSeconds)
	}
	checkOwner(t, job, object)
	labels := spec.Template.Labels
	if labels["agentic-session"] != s.name || labels["app"] != "ambient-code-runner" {
		t.Errorf("the labels of the pod are %v", labels)
	}
}

// checkOwner wants the session to be the controller, without blocking its deletion.
func checkOwner(t *testing.T, object client.Object, owner *v1alpha1.AgenticSession) {
	t.Helper()
	owners := object.GetOwnerReferences()
	if len(owners) != 1 || owners[0].UID != owner.UID || owners[0].Controller == nil || !*owners[0].Controller || owners[0].BlockOwnerDeletion != nil {
		t.Errorf("the owners of %T %s are %+v, want the session as controller without blockOwnerDeletion", object, object.GetName(), owners)
	}
}

func checkContainer(t *testing.T, s *session) {
	pod := s.job().Spec.Template.Spec
	c := pod.Containers[0]
	if c.Name != "ambient-code-runner" || len(pod.Containers) != 1 {
		t.Fatalf("the first of %d containers is %q", len(pod.Containers), c.Name)
	}
	if len(c.Ports) != 1 || c.Ports[0].ContainerPort != 8001 || c.Ports[0].Name != "agui" {
		t.Errorf("ports are %+v", c.Ports)
	}
	for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != "/health" || probe.HTTPGet.Port != intstr.FromString("agui") {
			t.Errorf("a probe is %+v", probe)
		}
	}
	security := c.SecurityContext
	if *security.AllowPrivilegeEscalation || *security.ReadOnlyRootFilesystem || len(security.Capabilities.Drop) != 1 || security.Capabilities.Drop[0] != "ALL" || security.RunAsUser != nil {
		t.Errorf("the security context is %+v", security)
	}
	if pod.SecurityContext.RunAsUser != nil || pod.SecurityContext.FSGroup != nil || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("the pod's security context is %+v", pod.SecurityContext)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("resources are %+v", c.Resources)
	}
	mounts := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounts[m.MountPath] = m.Name + ":" + m.SubPath
	}
	want := map[string]string{"/workspace": "workspace:", "/app/.claude": "workspace:.claude", "/var/run/secrets/ambient": "runner-token:"}
	if !maps.Equal(mounts, want) {
		t.Errorf("mounts are %v, want %v", mounts, want)
	}
	volumes := map[string]string{}
	for _, v := range pod.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			volumes[v.Name] = v.PersistentVolumeClaim.ClaimName
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				if source.Secret != nil {
					volumes[v.Name] += fmt.Sprint(source.Secret.Name, source.Secret.Items)
				}
			}
		}
	}
	if volumes["workspace"] != "ambient-workspace-"+s.name || !strings.HasPrefix(volumes["runner-token"], "ambient-runner-token-"+s.name+"[{k8s-token bot-token") {
		t.Errorf("volumes are %v", volumes)
	}
	if *pod.AutomountServiceAccountToken || pod.ServiceAccountName != "ambient-session-"+s.name {
		t.Errorf("the pod runs as %s, mounting its token: %t", pod.ServiceAccountName, *pod.AutomountServiceAccountToken)
	}
}

func checkEnvironment(t *testing.T, s *session) {
	c := s.job().Spec.Template.Spec.Containers[0]
	env := map[string]string{}
	for _, e := range c.Env {
		if _, twice := env[e.Name]; twice {
			t.Errorf("variable %s stands twice", e.Name)
		}
		env[e.Name] = e.Value
		if e.Name == "AGUI_TOKEN" {
			if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef.Name != "ambient-runner-token-"+s.name || e.ValueFrom.SecretKeyRef.Key != "agui-token" {
				t.Errorf("AGUI_TOKEN comes from %+v", e.ValueFrom)
			}
			env[e.Name] = "from Secret"
		}
	}
	want := map[string]string{
		"AGENTIC_SESSION_NAME": s.name, "AGENTIC_SESSION_NAMESPACE": s.project.name, "SESSION_ID": s.name, "PROJECT_NAME": s.project.name,
		"WORKSPACE_PATH": "/workspace", "ARTIFACTS_DIR": "artifacts", "AGUI_PORT": "8001", "AGUI_TOKEN": "from Secret", "INITIAL_PROMPT": "hang",
		"LLM_MODEL": "other", "LLM_TEMPERATURE": "0.70", "LLM_MAX_TOKENS": "4000", "USE_AGUI": "true", "TIMEOUT": "900", "INTERACTIVE": "false",
		"BACKEND_API_URL": "http://backend-service." + suite.access.namespace + ".svc.cluster.local:8080/api",
		"USER_ID":         "u-1", "USER_NAME": "Ada", "REPOS_JSON": `[{"url":"https://git.example/a/one.git","branch":"main","autoPush":false}]`,
		"ACTIVE_WORKFLOW_GIT_URL": "https://git.example/a/flow.git", "ACTIVE_WORKFLOW_BRANCH": "main", "ACTIVE_WORKFLOW_PATH": "sub",
		"USE_VERTEX": "0", "CLAUDE_CODE_USE_VERTEX": "0", "EXTRA": "more $$(HOME)",
	}
	for name, value := range want {
		if name == "REPOS_JSON" {
			if !sameJSON(env[name], value) {
				t.Errorf("REPOS_JSON is %s, want %s", env[name], value)
			}
		} else if env[name] != value {
			t.Errorf("%s is %q, want %q", name, env[name], value)
		}
		delete(env, name)
	}
	delete(env, "IS_RESUME") // judged by the tests of restarts
	for name := range env {
		t.Errorf("the runner gets a variable %s=%q that the contract does not know", name, env[name])
	}
	if len(c.EnvFrom) != 2 || c.EnvFrom[0].SecretRef.Name != "ambient-runner-secrets" || *c.EnvFrom[0].SecretRef.Optional ||
		c.EnvFrom[1].SecretRef.Name != "ambient-non-vertex-integrations" || !*c.EnvFrom[1].SecretRef.Optional {
		t.Errorf("envFrom is %+v", c.EnvFrom)
	}
}

func sameJSON(a, b string) bool {
	var left, right []map[string]any
	if json.Unmarshal([]byte(a), &left) != nil || json.Unmarshal([]byte(b), &right) != nil || len(left) != len(right) {
		return false
	}
	for i := range left {
		if fmt.Sprint(left[i]) != fmt.Sprint(right[i]) {
			return false
		}
	}
	return true
}

func checkObjects(t *testing.T, s *session) {
	owner := s.latest()
	account, role, binding := &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}
	secret, claim, service := &corev1.Secret{}, &corev1.PersistentVolumeClaim{}, &corev1.Service{}
	for name, object := range map[string]client.Object{
		"ambient-session-": account, "ambient-runner-token-": secret, "ambient-workspace-": claim, "session-": service,
	} {
		s.get(name+s.name, object)
		checkOwner(t, object, owner)
	}
	s.get("ambient-session-"+s.name+"-role", role)
	s.get("ambient-session-"+s.name+"-rb", binding)
	checkOwner(t, role, owner)
	checkOwner(t, binding, owner)
	if binding.RoleRef.Name != role.Name || len(binding.Subjects) != 1 || binding.Subjects[0].Name != account.Name {
		t.Errorf("the binding gives %s to %v", binding.RoleRef.Name, binding.Subjects)
	}
	if account.Annotations["ambient-code.io/created-by-user-id"] != "u-1" {
		t.Errorf("the ServiceAccount's annotations are %v", account.Annotations)
	}
	if len(secret.Data["k8s-token"]) == 0 || len(secret.Data["agui-token"]) < 32 || secret.Labels["app"] != "ambient-runner-token" {
		t.Errorf("the token Secret has labels %v and %d + %d bytes", secret.Labels, len(secret.Data["k8s-token"]), len(secret.Data["agui-token"]))
	}
	if _, err := time.Parse(time.RFC3339, secret.Annotations["ambient-code.io/token-refreshed-at"]); err != nil {
		t.Errorf("token-refreshed-at: %v", err)
	}
	if len(claim.Spec.AccessModes) != 1 || claim.Spec.AccessModes[0] != corev1.ReadWriteOnce {
		t.Errorf("the workspace's access modes are %v", claim.Spec.AccessModes)
	}
	ports := service.Spec.Ports
	selector := map[string]string{"agentic-session": s.name, "app": "ambient-code-runner"}
	if len(ports) != 1 || ports[0].Name != "agui" || ports[0].Port != 8001 || !maps.Equal(service.Spec.Selector, selector) {
		t.Errorf("the Service has ports %+v and selector %v", ports, service.Spec.Selector)
	}
}
