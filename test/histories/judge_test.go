package histories

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// judge looks at every write, whoever makes it.
func (h *history) judge(by, kind string, was, is client.Object) {
	operator := strings.HasPrefix(by, "operator")
	if operator {
		h.writes++
		h.note("  %s writes %s %s", by, kind, nameOf(was, is))
	}
	switch kind {
	case "Pod":
		h.judgePods()
	case "Job":
		if job, ok := is.(*batchv1.Job); ok && was == nil && operator {
			h.judgeJob(job)
		}
	case "AgenticSession":
		s, ok := is.(*v1alpha1.AgenticSession)
		before, known := was.(*v1alpha1.AgenticSession)
		if operator && ok && known {
			h.judgeMetadata(before, s)
			h.judgeStatus(before, s)
		}
	}
}

func nameOf(was, is client.Object) string {
	if is != nil {
		return is.GetName()
	}
	return was.GetName() + ", which is gone"
}

func alive(h *history, name string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, object := range h.api.list("Pod") {
		if pod := object.(*corev1.Pod); ofSession(pod, name) && !podEnded(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// told are the pods among them that still say whose they are.
func told(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return pod.Labels[v1alpha1.LabelSession] == "" })
}

// runners are the pods of a session that are alive. One whose label was taken off counts as long as the
// session is that for which it was made, and not another of its name.
func runners(h *history, s *v1alpha1.AgenticSession) []*corev1.Pod {
	return slices.DeleteFunc(alive(h, s.Name), func(pod *corev1.Pod) bool {
		return pod.Labels[v1alpha1.LabelSession] == "" && pod.Annotations[v1alpha1.AnnotationSessionUID] != string(s.UID)
	})
}

// judgePods: never two runners of a session, nor two in one workspace. Whose label was taken off is
// looked for when a run begins. What people have a Job of theirs do in a workspace is theirs.
func (h *history) judgePods() {
	claims := map[string]string{}
	for _, object := range h.api.list("Pod") {
		pod := object.(*corev1.Pod)
		if podEnded(pod) || pod.Labels[v1alpha1.LabelSession] == "" {
			continue
		}
		if job := metav1.GetControllerOf(pod); job == nil || !h.begun[job.UID] {
			continue
		}
		for i := range pod.Spec.Volumes {
			if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
				if other := claims[claim.ClaimName]; other != "" {
					h.complain("pods %s and %s are alive in the workspace %s", other, pod.Name, claim.ClaimName)
				}
				claims[claim.ClaimName] = pod.Name
			}
		}
	}
	for name := range h.stories {
		s := h.session(name)
		if s == nil {
			continue
		}
		if pods := told(runners(h, s)); len(pods) > 1 {
			h.complain("pods %s and %s of session %s are alive at once", pods[0].Name, pods[1].Name, name)
		}
	}
}

// judgeJob: a run begins when nothing of an earlier one is left, and as the status says.
func (h *history) judgeJob(job *batchv1.Job) {
	name := workload.SessionOfJob(job.Name)
	if pods := told(alive(h, name)); len(pods) > 0 {
		h.complain("Job %s is made while pod %s is alive", job.Name, pods[0].Name)
	}
	h.begun[job.UID] = true
	if h.recorded[job.Name+string(metav1.GetControllerOf(job).UID)] {
		h.complain("Job %s is made a second time", job.Name)
	}
	for _, object := range h.api.list("Job") {
		if other := object.(*batchv1.Job); other.Name != job.Name && ofSession(other, name) && !session.Finished(other) {
			h.complain("Job %s is made while Job %s is not finished", job.Name, other.Name)
		}
	}
	s := h.session(name)
	if s == nil || s.UID != metav1.GetControllerOf(job).UID {
		return // it was deleted at this moment; the garbage collector takes the Job
	}
	if workload.JobName(s.Name, s.Status.Run) != job.Name {
		h.complain("Job %s is made in run %d", job.Name, s.Status.Run)
	}
}

// judgeMetadata: what others put on a session stays, and a request goes only when it was honoured.
func (h *history) judgeMetadata(was, is *v1alpha1.AgenticSession) {
	t := h.stories[is.Name]
	for key, value := range t.foreign {
		if is.Annotations[key] != value {
			h.complain("annotation %s=%s of session %s is lost", key, value, is.Name)
		}
	}
	if !maps.Equal(was.Labels, is.Labels) || !slices.Equal(was.Finalizers, is.Finalizers) || !equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		h.complain("the operator changes labels, finalizers or spec of session %s", is.Name)
	}
	asked := was.Annotations[v1alpha1.AnnotationDesiredPhase]
	if now := is.Annotations[v1alpha1.AnnotationDesiredPhase]; asked != now && now != "" {
		h.complain("the operator asks for %s itself", now)
	} else if asked == now {
		return
	}
	request, phase := session.Request(was), was.Status.Phase
	honoured := request == "" || request == was.Status.HandledRequest
	switch phase {
	case "", v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning:
		honoured = honoured || asked == v1alpha1.DesiredRunning
	default:
		honoured = honoured || asked == v1alpha1.DesiredStopped
	}
	if !honoured {
		h.complain("the request %s of session %s is erased in %s", request, is.Name, phase)
	}
}

// judgeStatus: only legal phase changes, each with what it takes, and nothing of others is lost.
func (h *history) judgeStatus(was, is *v1alpha1.AgenticSession) {
	t, from, to := h.stories[is.Name], orPending(was.Status.Phase), orPending(is.Status.Phase)
	for _, kept := range []bool{
		equality.Semantic.DeepEqual(is.Status.LastActivityTime, t.value.LastActivityTime),
		is.Status.SDKSessionID == t.value.SDKSessionID, is.Status.SDKRestartCount == t.value.SDKRestartCount,
	} {
		if !kept {
			h.complain("what the backend wrote into the status of %s is lost", is.Name)
		}
	}
	if is.Status.ObservedGeneration < was.Status.ObservedGeneration || is.Status.ObservedGeneration > is.Generation {
		h.complain("the observed generation of %s goes from %d to %d of %d", is.Name, was.Status.ObservedGeneration, is.Status.ObservedGeneration, is.Generation)
	}
	if is.Status.Run != was.Status.Run && (is.Status.Run != was.Status.Run+1 || to != v1alpha1.PhaseCreating || from != v1alpha1.PhasePending) {
		h.complain("session %s goes from run %d to %d as it goes from %s to %s", is.Name, was.Status.Run, is.Status.Run, from, to)
	}
	if is.Status.JobUID != "" {
		h.recorded[is.Status.JobName+string(is.UID)] = true
	}
	if was.Status.JobUID != "" && is.Status.JobUID != "" && was.Status.Run == is.Status.Run && is.Status.JobUID != was.Status.JobUID {
		h.complain("session %s takes Job %s for that of its run, which was %s", is.Name, is.Status.JobUID, was.Status.JobUID)
	}
	if from == to {
		return
	}
	edge := session.Edge{From: from, To: to}
	h.ledger[edge]++
	if !slices.Contains(edges, edge) {
		h.complain("session %s goes from %s to %s", is.Name, from, to)
	}
	h.judgeMove(t, from, to, was, is)
}

var edges = session.Edges()

func orPending(phase v1alpha1.Phase) v1alpha1.Phase {
	if phase == "" {
		return v1alpha1.PhasePending
	}
	return phase
}

func (h *history) judgeMove(t *story, from, to v1alpha1.Phase, was, is *v1alpha1.AgenticSession) {
	pods := slices.DeleteFunc(runners(h, is), func(pod *corev1.Pod) bool { return h.unseen(pod, is) })
	switch {
	case to == v1alpha1.PhasePending:
		if was.Annotations[v1alpha1.AnnotationDesiredPhase] != v1alpha1.DesiredRunning || is.Status.HandledRequest != session.Request(was) || t.starts == 0 {
			h.complain("session %s is started again, which nobody asked for", is.Name)
		}
		t.starts = 0
	case to == v1alpha1.PhaseCreating && len(pods) > 0:
		h.complain("a run of %s begins while pod %s is alive", is.Name, pods[0].Name)
	case to == v1alpha1.PhaseStopped && from == v1alpha1.PhaseStopping && len(told(pods)) > 0:
		h.complain("session %s is Stopped while pod %s is alive", is.Name, told(pods)[0].Name)
	case h.taken[types.UID(is.Status.JobUID)] && to.Terminal() && fromJob(is):
		h.complain("session %s is %s by Job %s, which was being deleted", is.Name, to, is.Status.JobName)
	case to == v1alpha1.PhaseCompleted:
		if code, ended := h.exits[types.UID(is.Status.JobUID)]; !ended || code != 0 {
			h.complain("session %s is Completed, its runner exited: %t, %d", is.Name, ended, code)
		}
	case to == v1alpha1.PhaseFailed:
		h.judgeFailure(is)
	}
}

// unseen says that a pod has not come to the cache of pods yet, though its Job went from that of Jobs, and
// that it does no harm: a session that is Stopped removes it when it comes, and looks for it at the API
// server before it begins again; a run that begins beside a pod of an earlier session of the name has no Job
// before all that the other session had is gone.
func (h *history) unseen(pod *corev1.Pod, s *v1alpha1.AgenticSession) bool {
	predecessor := pod.Annotations[v1alpha1.AnnotationSessionUID] != string(s.UID)
	return (predecessor || s.Status.Phase == v1alpha1.PhaseStopped) && h.operator.caches.objects["Pod"][client.ObjectKeyFromObject(pod)] == nil
}

// fromJob says that a session ended with what its Job or pod told.
func fromJob(is *v1alpha1.AgenticSession) bool {
	ready := meta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && slices.Contains([]string{v1alpha1.ReasonRunnerCompleted, v1alpha1.ReasonRunnerFailed, v1alpha1.ReasonOOMKilled}, ready.Reason)
}

// judgeFailure: a run is lost only when its Job is, and no work that succeeded is told as failed.
func (h *history) judgeFailure(is *v1alpha1.AgenticSession) {
	ready := meta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConditionReady)
	job, there := h.api.objects["Job"][types.NamespacedName{Namespace: is.Namespace, Name: workload.JobName(is.Name, is.Status.Run)}].(*batchv1.Job)
	if ready.Reason == v1alpha1.ReasonRunnerLost && there && h.begun[job.UID] && job.DeletionTimestamp == nil && (is.Status.JobUID == "" || is.Status.JobUID == string(job.UID)) {
		h.complain("the run of %s is told to be lost, but Job %s is there", is.Name, job.Name)
	}
	if ready.Reason == v1alpha1.ReasonQuotaExceeded && !strings.HasPrefix(ready.Message, "the runner was not ready within") {
		h.complain("session %s is Failed for a quota, which may be raised: %s", is.Name, ready.Message)
	}
	if !there || job.DeletionTimestamp != nil || refused(is) {
		return // it failed before there was a run, and the Job is that of the last
	}
	if hasCondition(job, batchv1.JobComplete) != nil && h.before(job) {
		h.complain("session %s is Failed with %s, but its Job is complete", is.Name, ready.Reason)
	}
	if strings.HasPrefix(ready.Message, "the runner was not ready within") {
		for _, pod := range told(h.podsOf(job)) {
			if runner := runnerOf(pod); pod.DeletionTimestamp == nil && runner != nil && runner.Ready && h.before(pod) {
				h.complain("session %s is Failed with %s, but the runner in pod %s is ready", is.Name, ready.Reason, pod.Name)
			}
		}
	}
}

// before says that an object was as it is when the pass in progress began.
func (h *history) before(object client.Object) bool {
	version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	return err == nil && version <= h.began
}

// judgeRest checks what must hold when nothing happens any more.
func (h *history) judgeRest() {
	for name, t := range h.stories {
		s := h.session(name)
		if s == nil || h.ended {
			h.judgeGone(name, s)
			continue
		}
		h.judgeRequest(t, s)
		phase := orPending(s.Status.Phase)
		if s.Status.ObservedGeneration != s.Generation {
			h.complain("session %s rests at generation %d of %d", name, s.Status.ObservedGeneration, s.Generation)
		}
		ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.ObservedGeneration != s.Generation || (ready.Status == metav1.ConditionTrue) != (phase == v1alpha1.PhaseRunning) && !t.tokenLost && !h.withoutClaim(ready) {
			h.complain("session %s rests in %s with Ready %v", name, phase, ready)
		}
		switch {
		case phase.Terminal():
			h.judgeEnded(s)
		case phase == v1alpha1.PhaseRunning:
			h.judgeRunning(s)
		case phase == v1alpha1.PhasePending && ready != nil && ready.Reason == v1alpha1.ReasonWorkspaceInUse:
			h.judgeWaiting(s)
		default:
			h.complain("session %s rests in %s, which is no place to rest", name, phase)
		}
	}
	h.judgeProject()
	h.judgeCounters()
}

// withoutClaim says that a session is not well because somebody deleted its volume claim, which is there
// for as long as the run.
func (h *history) withoutClaim(ready *metav1.Condition) bool {
	return h.claimLost && ready != nil && (ready.Reason == v1alpha1.ReasonBeingDeleted || ready.Reason == v1alpha1.ReasonMissing)
}

// judgeWaiting: for the workspace of another session waits only who must have it, or whom another session
// keeps from it that has not ended.
func (h *history) judgeWaiting(s *v1alpha1.AgenticSession) {
	for _, name := range h.names() {
		if other := h.session(name); other != nil && name != s.Name && !other.Status.Phase.Terminal() {
			return
		}
	}
	if !workload.NeedsParentWorkspace(s) {
		h.complain("session %s waits for a workspace that nobody uses", s.Name)
	}
}

// mounted says that a pod that is alive uses a volume claim.
func (h *history) mounted(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(h.api.list("Pod"), func(object client.Object) bool { return workload.Mounts(object.(*corev1.Pod), claim.Name) })
}

func (h *history) judgeGone(name string, s *v1alpha1.AgenticSession) {
	for _, pod := range alive(h, name) {
		if h.deaf[pod.UID] {
			return // without its session, nobody ends what is on a node that is lost
		}
		h.complain("pod %s outlives its session or namespace", pod.Name)
	}
	if s != nil {
		return
	}
	for _, kind := range collected {
		for _, object := range h.api.list(kind) {
			if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && h.mounted(claim) {
				continue // by a session that goes on in it; it goes with that one's pod
			}
			if controller := metav1.GetControllerOf(object); controller != nil && controller.Name == name {
				h.complain("%s %s outlives session %s", kind, object.GetName(), name)
			}
		}
	}
}

// judgeRequest: the last request wins.
func (h *history) judgeRequest(t *story, s *v1alpha1.AgenticSession) {
	if asked := s.Annotations[v1alpha1.AnnotationDesiredPhase]; asked != "" {
		h.complain("the request %s is still on session %s, which is %s", asked, s.Name, s.Status.Phase)
	}
	switch {
	case t.asked == v1alpha1.DesiredStopped && !s.Status.Phase.Terminal():
		h.complain("session %s is %s, and a stop was the last that was asked for", s.Name, s.Status.Phase)
	case t.asked == v1alpha1.DesiredRunning && (t.phase.Terminal() || t.phase == v1alpha1.PhaseStopping) && s.Status.Run == t.run && s.Status.Phase != v1alpha1.PhasePending && !refused(s):
		h.complain("session %s is %s in run %d, and a start was the last that was asked for", s.Name, s.Status.Phase, s.Status.Run)
	}
}

// refused says that a session cannot be run as it is specified.
func refused(s *v1alpha1.AgenticSession) bool {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonInvalidSpec
}

func (h *history) judgeEnded(s *v1alpha1.AgenticSession) {
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: s.Namespace, Name: name}
	}
	if h.api.objects["Secret"][key(workload.TokenSecretName(s.Name))] != nil {
		h.complain("session %s is %s and has a token", s.Name, s.Status.Phase)
	}
	if h.api.objects["ServiceAccount"][key(workload.ServiceAccountName(s.Name))] != nil {
		h.complain("session %s is %s and has an identity", s.Name, s.Status.Phase)
	}
	if s.Status.CompletionTime == nil && s.Status.Run > 0 {
		h.complain("session %s is %s without a time of its end", s.Name, s.Status.Phase)
	}
	for _, object := range h.api.list("Job") {
		if job := object.(*batchv1.Job); ofSession(job, s.Name) && !session.Finished(job) {
			h.complain("session %s is %s, and Job %s is not finished", s.Name, s.Status.Phase, job.Name)
		}
	}
	if pods := alive(h, s.Name); len(pods) > 0 {
		h.complain("session %s is %s, and pod %s is alive", s.Name, s.Status.Phase, pods[0].Name)
	}
}

func (h *history) judgeRunning(s *v1alpha1.AgenticSession) {
	if len(alive(h, s.Name)) != 1 {
		h.complain("session %s is Running without a pod", s.Name)
	}
	if secret := h.api.objects["Secret"][types.NamespacedName{Namespace: s.Namespace, Name: workload.TokenSecretName(s.Name)}]; secret == nil {
		h.complain("session %s is Running without a token", s.Name)
	}
}

// judgeCounters: every phase change is counted once; one whose writer did not live to see it, at most.
func (h *history) judgeCounters() {
	counted := map[session.Edge]int{}
	for _, registry := range h.registries {
		families, err := registry.Gather()
		if err != nil {
			h.complain("gathering the metrics: %v", err)
			return
		}
		for _, family := range families {
			if family.GetName() != metrics.PhaseTransitions {
				continue
			}
			for _, m := range family.GetMetric() {
				counted[session.Edge{From: phaseLabel(m, "from_phase"), To: phaseLabel(m, "to_phase")}] += int(m.GetCounter().GetValue())
			}
		}
	}
	for _, edge := range edges {
		if n, most := counted[edge], h.ledger[edge]; n > most || n < most-h.unanswered[edge] {
			h.complain("%s to %s was counted %d times, happened %d times, %d of them without an answer", edge.From, edge.To, n, most, h.unanswered[edge])
		}
	}
}

func phaseLabel(m *dto.Metric, name string) v1alpha1.Phase {
	for _, label := range m.GetLabel() {
		if label.GetName() == name {
			return v1alpha1.Phase(label.GetValue())
		}
	}
	return ""
}
