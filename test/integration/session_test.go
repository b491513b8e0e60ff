package integration

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Short names of the phases, for tables.
const (
	pending   = v1alpha1.PhasePending
	creating  = v1alpha1.PhaseCreating
	running   = v1alpha1.PhaseRunning
	stopping  = v1alpha1.PhaseStopping
	stopped   = v1alpha1.PhaseStopped
	completed = v1alpha1.PhaseCompleted
	failure   = v1alpha1.PhaseFailed
)

// scriptAnnotation on a pod tells a simulated node at once what the runner does.
const scriptAnnotation = "simnode.ambient-code.io/script"

// session is a session of a project. Its prompt is the script that a simulated node follows.
type session struct {
	*project
	name string
	uid  types.UID
}

type edit func(*v1alpha1.AgenticSession)

// session creates a session.
func (p *project) session(name, prompt string, edits ...edit) *session {
	p.t.Helper()
	object := &v1alpha1.AgenticSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: name},
		Spec:       v1alpha1.AgenticSessionSpec{InitialPrompt: prompt},
	}
	for _, e := range edits {
		e(object)
	}
	p.create(object)
	return &session{project: p, name: object.Name, uid: object.UID}
}

func timeout(seconds int64) edit {
	return func(s *v1alpha1.AgenticSession) { s.Spec.Timeout = &seconds }
}

func environment(name, value string) edit {
	return func(s *v1alpha1.AgenticSession) {
		s.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{name: v1alpha1.EnvironmentValue(value)}
	}
}

func asked(phase string) edit {
	return func(s *v1alpha1.AgenticSession) {
		s.Annotations = map[string]string{v1alpha1.AnnotationDesiredPhase: phase}
	}
}

// latest is the session as the recorder saw it last; nil when it is gone.
func (s *session) latest() *v1alpha1.AgenticSession {
	versions := suite.recorder.Versions(s.uid)
	if len(versions) == 0 || versions[len(versions)-1].Gone {
		return nil
	}
	return versions[len(versions)-1].Object
}

// until waits for a state of the session and returns it.
func (s *session) until(what string, check func(*v1alpha1.AgenticSession) error) *v1alpha1.AgenticSession {
	s.t.Helper()
	var latest *v1alpha1.AgenticSession
	s.eventually("session "+s.name+" "+what, func() error {
		if latest = s.latest(); latest == nil {
			return errors.New("it is not there")
		}
		return check(latest)
	})
	return latest
}

func is(phase v1alpha1.Phase) func(*v1alpha1.AgenticSession) error {
	return func(s *v1alpha1.AgenticSession) error {
		if s.Status.Phase != phase {
			ready := condition(s, v1alpha1.ConditionReady)
			return fmt.Errorf("it is %s (%s: %s)", s.Status.Phase, ready.Reason, ready.Message)
		}
		return nil
	}
}

// phaseIs complains unless the session is there and in a phase.
func (s *session) phaseIs(phase v1alpha1.Phase) error {
	latest := s.latest()
	if latest == nil {
		return errors.New("it is not there")
	}
	return is(phase)(latest)
}

// reaches waits until the session is in a phase.
func (s *session) reaches(phase v1alpha1.Phase) *v1alpha1.AgenticSession {
	s.t.Helper()
	return s.until("reaches "+string(phase), is(phase))
}

// reachesInRun waits until the session is in a phase of its n-th run.
func (s *session) reachesInRun(n int64, phase v1alpha1.Phase) *v1alpha1.AgenticSession {
	s.t.Helper()
	return s.until(fmt.Sprintf("reaches %s in run %d", phase, n), func(session *v1alpha1.AgenticSession) error {
		if session.Status.Run != n {
			return fmt.Errorf("it is %s in run %d", session.Status.Phase, session.Status.Run)
		}
		return is(phase)(session)
	})
}

// tells waits until condition Ready has a reason.
func (s *session) tells(phase v1alpha1.Phase, reason string) *v1alpha1.AgenticSession {
	s.t.Helper()
	return s.until("is "+string(phase)+" for "+reason, func(session *v1alpha1.AgenticSession) error {
		if err := is(phase)(session); err != nil {
			return err
		}
		if ready := condition(session, v1alpha1.ConditionReady); ready.Reason != reason {
			return fmt.Errorf("its reason is %s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
}

// condition is a condition of the session; an empty one when it has none of the type.
func condition(s *v1alpha1.AgenticSession, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{Type: kind}
}

// soon is how long the operator may take to tell what became of a run; source: the list of cases. It takes
// a fraction of that, also on a machine that is busy with other tests; with plain watches, each pass waits
// for all that it reads from the API server.
var soon = map[bool]time.Duration{false: 10 * time.Second, true: 30 * time.Second}[legacyWatch()]

// wasSoon wants the session to have come to the phase in which it is soon after a moment.
func (s *session) wasSoon(phase v1alpha1.Phase, after time.Time) {
	s.t.Helper()
	versions := suite.recorder.Versions(s.uid)
	came := len(versions) - 1
	for came > 0 && versions[came-1].Object.Status.Phase == phase {
		came--
	}
	if took := versions[came].At.Sub(after); took > soon {
		s.t.Errorf("session %s was %s after %s, want that within %s", s.name, phase, took, soon)
	}
}

// annotate sets an annotation of the session as a user does.
func (s *session) annotate(key, value string) {
	s.t.Helper()
	s.patch(s.object(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

func (s *session) ask(phase string) {
	s.t.Helper()
	s.annotate(v1alpha1.AnnotationDesiredPhase, phase)
}

func (s *session) stop()  { s.t.Helper(); s.ask(v1alpha1.DesiredStopped) }
func (s *session) start() { s.t.Helper(); s.ask(v1alpha1.DesiredRunning) }

// object names the session for a client.
func (s *session) object() *v1alpha1.AgenticSession {
	return &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: s.project.name, Name: s.name}}
}

// history lists the session's phases so far.
func (s *session) history() []v1alpha1.Phase { return phases(suite.recorder.Versions(s.uid)) }

func (s *session) expectHistory(want ...v1alpha1.Phase) {
	s.t.Helper()
	if got := s.history(); !slices.Equal(got, want) {
		s.t.Errorf("session %s went through %v, want %v", s.name, got, want)
	}
}

func (s *session) never(phase v1alpha1.Phase) {
	s.t.Helper()
	if got := s.history(); slices.Contains(got, phase) {
		s.t.Errorf("session %s went through %v, must never be %s", s.name, got, phase)
	}
}

func (s *session) jobs() []moment[*batchv1.Job] {
	return suite.recorder.JobsOf(s.key(s.name))
}

func (s *session) pods() []moment[*corev1.Pod] {
	return suite.recorder.PodsOf(s.key(s.name))
}

// ranOnce fails unless exactly one pod was ever made for the session.
func (s *session) ranOnce() {
	s.t.Helper()
	if pods := uids(s.pods()); len(pods) != 1 {
		s.t.Errorf("session %s had %d pods, want 1", s.name, len(pods))
	}
}

// pod waits for the session's only pod.
func (s *session) pod() *corev1.Pod {
	s.t.Helper()
	var pod *corev1.Pod
	s.eventually("session "+s.name+" has a pod", func() error {
		pods := remaining(s.pods())
		if len(pods) != 1 {
			return fmt.Errorf("it has %d", len(pods))
		}
		pod = pods[0].DeepCopy()
		return nil
	})
	return pod
}

// job waits for the session's only Job.
func (s *session) job() *batchv1.Job {
	s.t.Helper()
	var job *batchv1.Job
	s.eventually("session "+s.name+" has a Job", func() error {
		jobs := remaining(s.jobs())
		if len(jobs) != 1 {
			return fmt.Errorf("it has %d", len(jobs))
		}
		job = jobs[0].DeepCopy()
		return nil
	})
	return job
}

// does has the runner follow a new script from now on.
func (s *session) does(script string) {
	s.t.Helper()
	s.patch(s.pod(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, scriptAnnotation, script))
}

// settles waits until the operator has done what it does after the end of a run and has written
// nothing about the project for a while, then checks that it stays so.
func (p *project) settles(quiet time.Duration) {
	p.t.Helper()
	p.eventually("the project has its objects", p.provided)
	p.eventually("what belongs to ended runs is given back", p.givenBack)
	p.eventually("the time of the runs under way is limited", p.limited)
	last := p.stopsWriting(2 * time.Second)
	time.Sleep(quiet)
	if writes := p.operator.gate.written(p.name); len(writes) != last {
		p.t.Errorf("the operator went on writing after all had settled: %v", writes[last:])
	}
}

// stopsWriting waits until the operator has written nothing about the project for a while, and returns
// how often it had. With plain watches a pass reads all from the API server and may take longer than that
// before it writes, so there it must have asked for nothing either.
func (p *project) stopsWriting(quiet time.Duration) int {
	p.t.Helper()
	calls := p.operator.gate.written
	if legacyWatch() {
		calls = p.operator.gate.asked
	}
	last, since := -1, time.Now()
	p.eventually("the operator stops writing", func() error {
		if n := len(calls(p.name)); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("it made %d calls so far", last)
		}
		return nil
	})
	return len(p.operator.gate.written(p.name))
}

// provided complains while the settings of a managed namespace have not been looked at.
func (p *project) provided() error {
	namespace := &corev1.Namespace{}
	if err := suite.admin.Get(p.ctx, client.ObjectKey{Name: p.name}, namespace); err != nil {
		return err
	}
	if namespace.Labels[v1alpha1.LabelManaged] != "true" {
		return nil
	}
	settings := p.settingsObject()
	if err := suite.admin.Get(p.ctx, client.ObjectKeyFromObject(settings), settings); err != nil {
		return err
	}
	ready := meta.FindStatusCondition(settings.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != settings.Generation {
		return errors.New("nobody looked at its settings yet")
	}
	return nil
}

// givenBack complains while an ended session has its token or identity, or a finished Job without
// a TTL.
func (p *project) givenBack() error {
	sessions := sessionList()
	if err := suite.admin.List(p.ctx, sessions, client.InNamespace(p.name)); err != nil {
		return err
	}
	for i := range sessions.Items {
		s := &sessions.Items[i]
		if !s.Status.Phase.Terminal() || condition(s, v1alpha1.ConditionReady).Reason == v1alpha1.ReasonNameCollision {
			continue
		}
		if err := p.absent("ambient-runner-token-"+s.Name, &corev1.Secret{}); err != nil {
			return err
		}
		if err := p.absent("ambient-session-"+s.Name, &corev1.ServiceAccount{}); err != nil {
			return err
		}
		for _, job := range remaining(suite.recorder.JobsOf(p.key(s.Name))) {
			if job.Spec.TTLSecondsAfterFinished == nil {
				return fmt.Errorf("Job %s has no TTL", job.Name)
			}
		}
	}
	return nil
}

// limited complains while the Job of a running session has another deadline than follows from when the
// runner started. It is set once that is known, which on a busy machine may be long after.
func (p *project) limited() error {
	sessions := sessionList()
	if err := suite.admin.List(p.ctx, sessions, client.InNamespace(p.name)); err != nil {
		return err
	}
	for i := range sessions.Items {
		s := &sessions.Items[i]
		job := &batchv1.Job{}
		if s.Status.Phase != v1alpha1.PhaseRunning || suite.admin.Get(p.ctx, p.key(s.Status.JobName), job) != nil {
			continue
		}
		timeout, err := strconv.ParseInt(job.Annotations[v1alpha1.AnnotationTimeoutSeconds], 10, 64)
		if err != nil || timeout == 0 || job.Status.StartTime == nil || s.Status.StartTime == nil || job.DeletionTimestamp != nil {
			continue
		}
		late := max(0, s.Status.StartTime.Sub(job.Status.StartTime.Time))
		if want := timeout + int64(late/time.Second); job.Spec.ActiveDeadlineSeconds == nil || *job.Spec.ActiveDeadlineSeconds != want {
			return fmt.Errorf("Job %s has not yet its deadline of %d seconds", job.Name, want)
		}
	}
	return nil
}

// remove deletes the session.
func (s *session) remove() {
	s.t.Helper()
	s.delete(s.object(), client.Preconditions{UID: &s.uid})
}
