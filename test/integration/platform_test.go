package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// platformCRDs applies the platform's own definitions over this operator's, as in clusters that have
// both. The operator's are back after the test, or when restore is called.
func platformCRDs(t *testing.T, p *project) (restore func()) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "platform", "*.yaml"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the definitions of the platform are not there: %v %v", files, err)
	}
	ours, err := crds()
	if err != nil {
		t.Fatal(err)
	}
	apply := func(all []*unstructured.Unstructured) {
		for _, crd := range all {
			if err := applyObject(context.Background(), crd.DeepCopy()); err != nil {
				t.Error(err)
			}
		}
	}
	restore = func() {
		apply(ours)
		p.eventually("this operator's definitions are served", func() error { return p.servesRuns(true) })
	}
	t.Cleanup(func() { apply(ours) })
	for _, file := range files {
		theirs, err := manifests(file)
		if err != nil {
			t.Fatal(err)
		}
		apply(theirs)
	}
	p.eventually("the platform's definitions are served", func() error { return p.servesRuns(false) })
	return restore
}

// servesRuns says whether the definition of sessions that is served has fields of this operator's.
func (p *project) servesRuns(want bool) error {
	probe := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"inactivityTimeout": int64(1)}}}
	probe.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AgenticSession"))
	probe.SetNamespace(p.name)
	probe.SetName("probe")
	if err := suite.admin.Create(p.ctx, probe, client.DryRunAll); err != nil {
		return err
	}
	if _, kept, err := unstructured.NestedInt64(probe.Object, "spec", "inactivityTimeout"); err != nil || kept != want {
		return fmt.Errorf("the field is kept: %t (%w)", kept, err)
	}
	return nil
}

// stored is a field of the status as the API server has it, without what a decoder puts back.
func (s *session) stored(field string) any {
	s.t.Helper()
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AgenticSession"))
	s.get(s.name, raw)
	value, _, err := unstructured.NestedFieldNoCopy(raw.Object, "status", field)
	if err != nil {
		s.t.Fatal(err)
	}
	return value
}

// rests waits until the operator has stopped writing about the project, and sees that it stays so. A
// status that only tells of progress is written ten seconds after a run began.
func (p *project) rests() {
	p.t.Helper()
	last := p.stopsWriting(11 * time.Second)
	p.always(time.Second, "the operator rests", func() error {
		if writes := p.operator.gate.written(p.name); len(writes) != last {
			return fmt.Errorf("it wrote %v", writes[last:])
		}
		return nil
	})
}

// resumes fails unless the session's newest runner was told whether it goes on.
func (s *session) resumes(want bool) {
	s.t.Helper()
	is := false
	for _, v := range s.latestPod().Spec.Containers[0].Env {
		is = is || v.Name == "IS_RESUME" && v.Value == "true"
	}
	if is != want {
		s.t.Errorf("the runner of session %s was told to go on: %t, want %t", s.name, is, want)
	}
}

// TestPlatformCRDs: under the platform's own definitions, which drop most of the status and know none
// of this operator's rules, every way through a session's life comes out right.
func TestPlatformCRDs(t *testing.T) {
	first := alone(t, nil)
	p := newProject(t, first)
	before := p.session("before", "hang")
	before.reaches(running)
	restore := platformCRDs(t, p)

	sessions := map[string]*session{}
	for name, script := range map[string]string{
		"completes": "hang", "fails": "hang", "lost": "hang", "stops": "hang", "renews": "hang", "parent": "hang", "unready": "never-ready\nhang",
	} {
		sessions[name] = p.session(name, script)
	}
	timedOut := p.session("times-out", "hang", timeout(3))
	idle := newProject(t, first)
	idle.settings("are there", exist)
	idle.patch(idle.settingsObject(), `{"spec":{"inactivityTimeoutSeconds":2}}`)
	idles := idle.session("idles", "hang", timeout(0))
	for name, s := range sessions {
		if name != "unready" {
			s.reaches(running)
		}
	}
	if run := sessions["stops"].stored("run"); run != nil {
		t.Fatalf("the definitions of the platform keep status.run: %v", run)
	}
	timedOut.tells(failure, v1alpha1.ReasonTimeout)
	if s := idles.tells(stopped, v1alpha1.ReasonInactivityTimeout); s.Status.StoppedReason != v1alpha1.StoppedByInactivity {
		t.Errorf("stoppedReason is %q", s.Status.StoppedReason)
	}
	sessions["unready"].stop()
	sessions["unready"].reaches(stopped)
	p.checkTold(sessions["renews"])
	p.rests()

	t.Run("another operator takes over", func(t *testing.T) {
		if err := first.stop(); err != nil {
			t.Fatal(err)
		}
	})
	second := alone(t, nil)
	p.operator, idle.operator = second, second
	p.platformLives(sessions, before)
	p.platformContinues(sessions["parent"])
	p.platformRefuses()
	p.platformSettings()
	p.rests()

	restore()
	s := sessions["renews"]
	p.eventually("the operator's own definition is in use again", s.keepsFields)
	s.ask(v1alpha1.DesiredStopped)
	s.reaches(stopped)
	s.start()
	s.reachesInRun(2, running)
	// One of which nothing but the request changes.
	resumed := sessions["stops"]
	resumed.project = p
	resumed.stop()
	resumed.reaches(stopped)
	for s, run := range map[*session]int64{s: 2, resumed: 3} {
		// A watch that the API server opened under the old definition shows objects without the fields
		// until it ends, so a change is needed that comes after it.
		p.eventually(s.name+" has its fields back", func() error {
			s.annotate("team/seen", time.Now().Format(time.RFC3339))
			if c := condition(s.latest(), v1alpha1.ConditionRecorded); c.Status != metav1.ConditionTrue {
				return fmt.Errorf("condition %s is %s for %s", c.Type, c.Status, c.Reason)
			}
			return nil
		})
		if kept := s.stored("run"); kept != run {
			t.Errorf("session %s: status.run is %v", s.name, kept)
		}
		if before := s.stored("ranBefore"); before != true {
			t.Errorf("session %s: status.ranBefore is %v", s.name, before)
		}
	}
}

// keepsFields complains while the definition that the API server uses drops fields of the status.
func (s *session) keepsFields() error {
	tried := &unstructured.Unstructured{}
	tried.SetAPIVersion(v1alpha1.GroupVersion.String())
	tried.SetKind("AgenticSession")
	tried.SetNamespace(s.project.name)
	tried.SetName(s.name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"podName":"tried"}}`))
	if err := suite.admin.Status().Patch(s.ctx, tried, patch, client.DryRunAll); err != nil {
		return err
	}
	kept, _, err := unstructured.NestedString(tried.Object, "status", "podName")
	if err == nil && kept != "tried" {
		err = fmt.Errorf("status.podName is %q", kept)
	}
	return err
}

// checkTold checks that what is dropped is told once, and kept.
func (p *project) checkTold(s *session) {
	p.t.Helper()
	s.until("tells what is dropped", func(object *v1alpha1.AgenticSession) error {
		c := condition(object, v1alpha1.ConditionRecorded)
		if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonFieldsDropped || !strings.Contains(c.Message, `"run":1`) {
			return fmt.Errorf("condition %s is %s for %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
		return nil
	})
	if lines := suite.logs.containing("drops fields of the status; they are kept"); len(lines) != 1 {
		p.t.Errorf("the log tells it %d times, want once", len(lines))
	}
}

// platformLives ends runs in every way and starts them again, with an operator that saw none begin.
func (p *project) platformLives(sessions map[string]*session, before *session) {
	t := p.t
	sessions["completes"].does("exit 0")
	sessions["completes"].tells(completed, v1alpha1.ReasonRunnerCompleted)
	sessions["fails"].does("exit 1")
	sessions["fails"].tells(failure, v1alpha1.ReasonRunnerFailed)
	p.delete(sessions["lost"].job(), client.PropagationPolicy(metav1.DeletePropagationBackground))
	sessions["lost"].tells(failure, v1alpha1.ReasonRunnerLost)
	for _, name := range []string{"completes", "fails", "lost"} {
		sessions[name].ranOnce()
	}

	renews := sessions["renews"]
	old := renews.runnerSecret()
	p.patch(old.DeepCopy(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationTokenExpiresAt, time.Now().UTC().Format(time.RFC3339)))
	renews.eventually("the token is renewed", func() error {
		if string(renews.runnerSecret().Data["k8s-token"]) == string(old.Data["k8s-token"]) {
			return errors.New("it is the old one")
		}
		return nil
	})
	renews.ranOnce()

	stops := sessions["stops"]
	for run := int64(2); run <= 3; run++ {
		stops.annotate(v1alpha1.AnnotationStopRequestedAt, time.Now().Format(time.RFC3339Nano))
		stops.stop()
		stops.reaches(stopped)
		stops.start()
		stops.reachesInRun(run, running)
		stops.resumes(true)
	}
	stops.never(failure)
	// Its container had started when it was stopped.
	unready := sessions["unready"]
	unready.start()
	unready.reachesInRun(2, creating)
	unready.pod()
	unready.resumes(true)

	// It began under the other definitions.
	before.project = p
	before.ranOnce()
	before.does("exit 0")
	before.tells(completed, v1alpha1.ReasonRunnerCompleted)
	before.start()
	before.reachesInRun(2, running)
	before.resumes(true)
	for _, s := range append([]*session{before}, stops, unready) {
		if most := mostAtOnce(s.pods()); most > 1 {
			t.Errorf("session %s had %d pods at once", s.name, most)
		}
	}
}

// platformContinues has a session go on in the workspace of another.
func (p *project) platformContinues(parent *session) {
	child := p.session("child", "hang", continues(parent))
	child.tells(pending, v1alpha1.ReasonWorkspaceInUse)
	parent.project = p
	parent.stop()
	parent.reaches(stopped)
	child.reaches(running)
	child.worksIn(parent)
	parent.start()
	parent.tells(pending, v1alpha1.ReasonWorkspaceInUse)
	child.does("exit 0")
	child.reaches(completed)
	parent.reachesInRun(2, running)
}

// platformRefuses creates what only this operator's own definitions refuse.
func (p *project) platformRefuses() {
	for name, spec := range map[string]map[string]any{
		"with.dots":               {},
		"trigger":                 {},
		strings.Repeat("l", 53):   {},
		strings.Repeat("l", 253):  {},
		"negative":                {"timeout": int64(-1)},
		"repository-without-name": {"repos": []any{map[string]any{"input": map[string]any{"url": "https://git.example/a/b"}}}},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AgenticSession"))
		object.SetNamespace(p.name)
		object.SetName(name)
		p.create(object)
		s := &session{project: p, name: name, uid: object.GetUID()}
		s.tells(failure, v1alpha1.ReasonInvalidSpec)
		s.nothingMade()
	}
}

// nothingMade fails if there is an object of the session.
func (s *session) nothingMade() {
	s.t.Helper()
	for _, kind := range childKinds {
		object := kind.empty()
		err := suite.admin.Get(s.ctx, s.key(kind.name(s.name)), object)
		if err == nil && object.GetAnnotations()[v1alpha1.AnnotationSessionUID] == string(s.uid) {
			s.t.Errorf("session %s cannot run, but has a %s", shorten(s.name), kind.kind)
		}
	}
	if jobs := uids(s.jobs()); len(jobs) > 0 {
		s.t.Errorf("session %s cannot run, but has a Job", shorten(s.name))
	}
}

// platformSettings gives and takes away access; as the status has no place, the log tells.
func (p *project) platformSettings() {
	p.giveAccess("one", "admin", "two", "view")
	p.has("one", "admin")
	p.has("two", "view")
	p.giveAccess("two", "edit", "system:authenticated", "view")
	p.has("one", "")
	p.has("two", "edit")
	p.eventually("the log tells of the entry that is refused", func() error {
		for _, line := range suite.logs.containing("has no place for a status") {
			if strings.Contains(line, p.name) && strings.Contains(line, "system:authenticated") {
				return nil
			}
		}
		return errors.New("it does not")
	})
	p.get("projectsettings", p.settingsObject())
	p.get(workload.DefaultRunnerSecret, &corev1.Secret{})
}
