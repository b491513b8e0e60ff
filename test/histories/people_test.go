package histories

import (
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

const people = "people"

// story is what people have done to a session, and what must therefore be found on it.
type story struct {
	name string
	// asked is the last request; of it, in which phase and run it met the session.
	asked string
	phase v1alpha1.Phase
	run   int64
	// starts counts requests to start that no restart has answered yet.
	starts int
	// foreign are annotations that are nobody's business; value is what the backend wrote last.
	foreign map[string]string
	value   v1alpha1.AgenticSessionStatus
	deleted bool
	// tokenLost says that the token Secret was deleted, and with it what the runner has read.
	tokenLost bool
}

func (h *history) session(name string) *v1alpha1.AgenticSession {
	object := h.api.objects["AgenticSession"][types.NamespacedName{Namespace: project, Name: name}]
	if object == nil {
		return nil
	}
	return object.DeepCopyObject().(*v1alpha1.AgenticSession)
}

// make creates a session, or an object around it.
func (h *history) make(object client.Object) {
	if err := h.api.create(people, object); err != nil {
		h.complain("making %s %s: %v", kindOf(object), object.GetName(), err)
	}
}

func (h *history) begin(name, parent string) {
	timeout, inactivity := int64([]int{0, 300, 3600}[h.pick(3)]), int64([]int{0, 600, 7200}[h.pick(3)])
	s := &v1alpha1.AgenticSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name, Annotations: map[string]string{}},
		Spec:       v1alpha1.AgenticSessionSpec{InitialPrompt: "a prompt", Timeout: &timeout},
	}
	if h.chance(0.5) {
		s.Spec.InactivityTimeout = &inactivity
	}
	if parent != "" {
		s.Annotations[v1alpha1.AnnotationParentSessionID] = parent
	}
	h.note("session %s is made, timeout %d, parent %q", name, timeout, parent)
	h.stories[name] = &story{name: name, foreign: map[string]string{}}
	h.make(s)
}

// change has people write a session.
func (h *history) change(s *v1alpha1.AgenticSession, status bool) {
	if err := h.api.update(people, s, status); err != nil {
		h.complain("writing session %s: %v", s.Name, err)
	}
}

func (h *history) request(s *v1alpha1.AgenticSession, desired, at string) {
	t := h.stories[s.Name]
	was := maps.Clone(s.Annotations)
	s.Annotations[v1alpha1.AnnotationDesiredPhase] = desired
	if h.chance(0.8) {
		s.Annotations[at] = h.now().UTC().Format(time.RFC3339)
	}
	if maps.Equal(was, s.Annotations) {
		return
	}
	if session.Request(s) == s.Status.HandledRequest {
		return // without a time of its own it is in nothing another than the one that was carried out
	}
	t.asked, t.phase, t.run = desired, s.Status.Phase, s.Status.Run
	if desired == v1alpha1.DesiredRunning {
		t.starts++
	}
	h.note("people ask for %s of %s, which is %s", desired, s.Name, s.Status.Phase)
	h.change(s, false)
}

// deed is something that people or programs do to a session. It says whether there was anything to do.
type deed struct {
	weight int
	do     func(h *history, s *v1alpha1.AgenticSession) bool
}

var deeds = []deed{
	{6, func(h *history, s *v1alpha1.AgenticSession) bool {
		h.request(s, v1alpha1.DesiredStopped, v1alpha1.AnnotationStopRequestedAt)
		return true
	}},
	{8, func(h *history, s *v1alpha1.AgenticSession) bool {
		h.request(s, v1alpha1.DesiredRunning, v1alpha1.AnnotationStartRequestedAt)
		return true
	}},
	{1, func(h *history, s *v1alpha1.AgenticSession) bool {
		if s.Annotations[v1alpha1.AnnotationDesiredPhase] != "" {
			return false
		}
		h.note("people ask for nonsense of %s", s.Name)
		s.Annotations[v1alpha1.AnnotationDesiredPhase] = "running"
		h.change(s, false)
		return true
	}},
	{3, annotate},
	{5, edit},
	{2, func(h *history, s *v1alpha1.AgenticSession) bool {
		s.Annotations[v1alpha1.AnnotationForceExecutePrompt] = "true"
		h.note("the prompt of %s is forced", s.Name)
		h.change(s, false)
		return true
	}},
	{4, func(h *history, s *v1alpha1.AgenticSession) bool {
		at := metav1.NewTime(h.now().Add(time.Duration(h.pick(120)-60) * time.Second).Truncate(time.Second))
		s.Status.LastActivityTime, s.Status.SDKSessionID, s.Status.SDKRestartCount = &at, fmt.Sprintf("sdk-%d", h.pick(1000)), int64(h.pick(5))
		h.stories[s.Name].value = *s.Status.DeepCopy()
		h.note("the backend writes the status of %s", s.Name)
		h.change(s, true)
		return true
	}},
	{1, func(h *history, s *v1alpha1.AgenticSession) bool {
		if s.DeletionTimestamp != nil {
			return false
		}
		h.stories[s.Name].deleted = true
		background := metav1.DeletePropagationBackground
		h.remove(people, "AgenticSession", s, client.DeleteOptions{PropagationPolicy: &background})
		return true
	}},
	{3, removeJob},
	{1, replaceJob},
	{2, hidePod},
	{3, removePod},
	{3, removeChild},
}

// edit changes what a session is to do, and how.
func edit(h *history, s *v1alpha1.AgenticSession) bool {
	set := func(name string, values ...string) {
		if s.Spec.EnvironmentVariables == nil {
			s.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{}
		}
		if s.Spec.EnvironmentVariables[name] = v1alpha1.EnvironmentValue(values[h.pick(len(values))]); s.Spec.EnvironmentVariables[name] == "" {
			delete(s.Spec.EnvironmentVariables, name)
		}
	}
	switch h.pick(8) {
	case 0:
		set("RUNNER_TYPE", "", "claude-agent-sdk", "claude-agent-sdk", "no-such-type")
	case 1:
		set("GREETING", "", "hello", "good day")
	case 2:
		seconds := int64([]int{0, 600, 7200}[h.pick(3)])
		if s.Spec.InactivityTimeout = &seconds; h.chance(0.3) {
			s.Spec.InactivityTimeout = nil
		}
	case 3:
		s.Spec.Repos = []v1alpha1.Repo{{URL: "https://git.example.com/a.git", Branch: "main"}, {URL: "https://git.example.com/b.git", AutoPush: h.chance(0.5)}}[:h.pick(3)]
	case 4, 5:
		h.reparent(s, set)
	default:
		timeout := int64(100 + h.pick(1000))
		s.Spec.Timeout = &timeout
		s.Spec.InitialPrompt = fmt.Sprintf("prompt %d", h.pick(1000))
	}
	h.note("people edit %s: %v %v parent %q", s.Name, s.Spec.EnvironmentVariables, s.Spec.Repos, workload.Parent(s))
	h.change(s, false)
	return true
}

// reparent has a session continue another one, or none any more.
func (h *history) reparent(s *v1alpha1.AgenticSession, set func(string, ...string)) {
	others := append(h.names(), "", "nobody")
	switch parent := others[h.pick(len(others))]; h.pick(4) {
	case 0:
		set("PARENT_SESSION_ID", others...)
	case 1:
		s.Annotations[v1alpha1.AnnotationParentWorkspace] = []string{"true", "false", ""}[h.pick(3)]
	default:
		if s.Annotations[v1alpha1.AnnotationParentSessionID] = parent; parent == "" {
			delete(s.Annotations, v1alpha1.AnnotationParentSessionID)
		}
	}
}

func annotate(h *history, s *v1alpha1.AgenticSession) bool {
	t := h.stories[s.Name]
	switch h.pick(4) {
	case 0:
		if slices.Contains(s.Finalizers, "example.com/keep") {
			s.Finalizers = nil
		} else if s.DeletionTimestamp == nil {
			s.Finalizers = []string{"example.com/keep"}
		}
	case 1:
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels["team"] = fmt.Sprint(h.pick(1000))
	default:
		key := fmt.Sprintf("team/%d", h.pick(3))
		t.foreign[key] = fmt.Sprint(h.pick(1000))
		s.Annotations[key] = t.foreign[key]
	}
	h.note("people put something of their own on %s", s.Name)
	h.change(s, false)
	return true
}

func removeJob(h *history, s *v1alpha1.AgenticSession) bool {
	for _, job := range h.api.list("Job") {
		if !ofSession(job, s.Name) || job.GetDeletionTimestamp() != nil {
			continue
		}
		propagation := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}[h.pick(2)]
		h.remove(people, "Job", job, client.DeleteOptions{PropagationPolicy: &propagation})
		return true
	}
	return false
}

// replaceJob puts another Job in the place of one without a runner, as kubectl replace --force does.
func replaceJob(h *history, s *v1alpha1.AgenticSession) bool {
	for _, job := range copies[*batchv1.Job](h, "Job") {
		if !ofSession(job, s.Name) || len(alive(h, s.Name)) > 0 || h.ended {
			continue
		}
		h.note("people replace Job %s", job.Name)
		h.api.store(people, "Job", h.api.objects["Job"][client.ObjectKeyFromObject(job)], nil)
		another := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name, Labels: job.Labels, Annotations: job.Annotations, OwnerReferences: job.OwnerReferences}, Spec: job.Spec}
		another.Spec.TTLSecondsAfterFinished = nil
		h.make(another)
		return true
	}
	return false
}

// hidePod takes the label off a pod by which caches select it.
func hidePod(h *history, s *v1alpha1.AgenticSession) bool {
	for _, pod := range copies[*corev1.Pod](h, "Pod") {
		if ofSession(pod, s.Name) && pod.Labels[v1alpha1.LabelSession] != "" {
			// With its node lost as well, only people could end it.
			delete(pod.Labels, v1alpha1.LabelSession)
			delete(h.deaf, pod.UID)
			h.hidden = true
			h.note("people take the label off pod %s", pod.Name)
			h.write(pod, false)
			return true
		}
	}
	return false
}

func removePod(h *history, s *v1alpha1.AgenticSession) bool {
	for _, object := range h.api.list("Pod") {
		if !ofSession(object, s.Name) {
			continue
		}
		options := client.DeleteOptions{}
		if h.chance(0.2) {
			now := int64(0)
			options.GracePeriodSeconds = &now
		}
		h.remove(people, "Pod", object, options)
		return true
	}
	return false
}

// removeChild takes away another object of the session, or changes it.
func removeChild(h *history, s *v1alpha1.AgenticSession) bool {
	kind, name := "Secret", workload.TokenSecretName(s.Name)
	switch h.pick(6) {
	case 5:
		kind, name = "PersistentVolumeClaim", workload.WorkspaceName(s.Name)
	case 0:
		kind, name = "ServiceAccount", workload.ServiceAccountName(s.Name)
	case 1:
		kind, name = "Role", workload.RoleName(s.Name)
	case 2:
		kind, name = "RoleBinding", workload.RoleBindingName(s.Name)
	case 3:
		kind, name = "Service", workload.ServiceName(s.Name)
	}
	object := h.api.objects[kind][types.NamespacedName{Namespace: project, Name: name}]
	if object == nil {
		return false
	}
	if service, ok := object.DeepCopyObject().(*corev1.Service); ok && h.chance(0.5) {
		service.Spec.Selector = map[string]string{"app": "another"}
		h.note("people change Service %s", name)
		h.write(service, false)
		return true
	}
	h.claimLost = h.claimLost || kind == "PersistentVolumeClaim"
	h.stories[s.Name].tokenLost = h.stories[s.Name].tokenLost || kind == "Secret"
	h.remove(people, kind, object, client.DeleteOptions{})
	return true
}

// surroundings changes what is around the sessions: the Secret that runners need, the label of the
// namespace, the namespace itself.
func (h *history) surroundings() {
	key := types.NamespacedName{Namespace: project, Name: "ambient-runner-secrets"}
	namespace := h.api.objects["Namespace"][types.NamespacedName{Name: project}].DeepCopyObject().(*corev1.Namespace)
	switch {
	case h.chance(0.02):
		if namespace.DeletionTimestamp == nil {
			now := metav1.NewTime(h.now().Truncate(time.Second))
			namespace.DeletionTimestamp, namespace.Finalizers = &now, []string{"kubernetes"}
			h.note("the namespace is deleted")
			h.ended = true
			h.api.store(people, "Namespace", h.api.objects["Namespace"][types.NamespacedName{Name: project}], namespace)
		}
	case h.chance(0.2):
		h.limit()
	case h.chance(0.4):
		h.projectDeed()
	case h.chance(0.5):
		if secret := h.api.objects["Secret"][key]; secret != nil {
			h.remove(people, "Secret", secret, client.DeleteOptions{})
		} else if !h.ended {
			h.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
		}
	default:
		h.label(namespace, namespace.Labels[v1alpha1.LabelManaged] == "")
	}
}

// limit has the quota of the project run out, or be raised.
func (h *history) limit() {
	if len(h.full) > 0 {
		h.full = map[string]bool{}
		h.note("the quota is raised")
		return
	}
	for _, kind := range limited {
		if h.chance(0.5) {
			h.full[kind] = true
		}
	}
	h.note("the quota has run out: %v", slices.Sorted(maps.Keys(h.full)))
}

func (h *history) label(namespace *corev1.Namespace, managed bool) {
	namespace.Labels = map[string]string{}
	if managed {
		namespace.Labels[v1alpha1.LabelManaged] = "true"
	}
	h.note("the namespace is managed: %t", managed)
	h.write(namespace, false)
}

// heal makes the surroundings be as they should be.
func (h *history) heal() {
	namespace := h.api.objects["Namespace"][types.NamespacedName{Name: project}].DeepCopyObject().(*corev1.Namespace)
	if namespace.Labels[v1alpha1.LabelManaged] == "" && !h.ended {
		h.label(namespace, true)
	}
	h.full = map[string]bool{}
	if own := h.projectSettings(); own != nil && own.Spec.RunnerSecretsName != "" && !h.ended {
		own.Spec.RunnerSecretsName = ""
		h.writeSettings(own)
	}
	if h.api.objects["Secret"][types.NamespacedName{Namespace: project, Name: "ambient-runner-secrets"}] == nil && !h.ended {
		h.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "ambient-runner-secrets"}})
	}
	for _, s := range copies[*v1alpha1.AgenticSession](h, "AgenticSession") {
		if len(s.Finalizers) > 0 {
			s.Finalizers = nil
			h.note("people take their finalizer off %s", s.Name)
			h.change(s, false)
		}
	}
}
