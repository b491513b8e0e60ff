package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestCase15ServiceRefused: an object that cannot be made is named, the session is not Ready
// meanwhile, and the object is made as soon as that is possible.
func TestCase15ServiceRefused(t *testing.T) {
	p := share(t)
	p.create(quota(p, "services"))
	time.Sleep(500 * time.Millisecond) // the quota's controller fills in what is used
	s := p.session("unreachable", "hang")
	object := s.until("names the Service", func(object *v1alpha1.AgenticSession) error {
		ready := condition(object, v1alpha1.ConditionReady)
		if ready.Reason != v1alpha1.ReasonQuotaExceeded || !strings.Contains(ready.Message, "session-unreachable") {
			return fmt.Errorf("it says %s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
	if condition(object, v1alpha1.ConditionReady).Status != metav1.ConditionFalse {
		t.Error("the session is Ready without its Service")
	}
	// A generation that was looked at is not one that is in effect: that is what Ready says, of the same
	// generation, so that nobody who waits for both is told too soon.
	edited := s.edits(`{"displayName":"edited"}`)
	s.until("says of the edited spec that it is not Ready", func(object *v1alpha1.AgenticSession) error {
		ready := condition(object, v1alpha1.ConditionReady)
		if object.Status.ObservedGeneration != edited || ready.ObservedGeneration != edited {
			return fmt.Errorf("generation %d was looked at, and %d by Ready", object.Status.ObservedGeneration, ready.ObservedGeneration)
		}
		if ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "session-unreachable") {
			t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
		}
		return nil
	})
	if out, err := runKubectl(p.ctx, "", "-n", p.name, "wait", "--for=condition=Ready", "agenticsession/unreachable", "--timeout=1s"); err == nil {
		t.Errorf("kubectl wait ends although the session cannot be reached: %s", out)
	}
	p.delete(quota(p, "services"))
	s.reaches(running)
	s.until("is Ready", func(object *v1alpha1.AgenticSession) error {
		if ready := condition(object, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != edited {
			return fmt.Errorf("%s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
	s.ranOnce()
}

// TestCase17NamespaceLabel: the label opens a namespace for its sessions, at any time; taking it
// away starts no new runs and leaves those that go on alone.
func TestCase17NamespaceLabel(t *testing.T) {
	t.Parallel()
	p := emptyProject(t, sharedOperator(t), nil)
	p.createRunnerSecret()
	s := p.session("early", "hang")
	object := s.tells(pending, v1alpha1.ReasonNamespaceNotManaged)
	if message := condition(object, v1alpha1.ConditionReady).Message; !strings.Contains(message, "kubectl label namespace "+p.name) {
		t.Errorf("the message does not say what to do: %s", message)
	}
	p.settles(time.Second)
	p.label(v1alpha1.LabelManaged, "true")
	s.reaches(running)

	p.label(v1alpha1.LabelManaged, "")
	late := p.session("late", "hang")
	late.tells(pending, v1alpha1.ReasonNamespaceNotManaged)
	if err := is(running)(s.latest()); err != nil {
		t.Errorf("a running session was not left alone: %v", err)
	}
	s.does("exit 0")
	s.reaches(completed)
	s.start()
	s.tells(pending, v1alpha1.ReasonNamespaceNotManaged)
	p.label(v1alpha1.LabelManaged, "true")
	late.reaches(running)
	s.reachesInRun(2, running)
}

// TestSample: the sample manifest runs in a project that holds the runner Secret alone.
func TestSample(t *testing.T) {
	p := share(t)
	objects, err := manifests(repository + "/config/samples/vteam_v1alpha1_agenticsession.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		object.SetNamespace(p.name)
		if err := applyObject(p.ctx, object); err != nil {
			t.Fatal(err)
		}
		s := &session{project: p, name: object.GetName()}
		stored := &v1alpha1.AgenticSession{}
		p.get(s.name, stored)
		s.uid = stored.UID
		s.reaches(running)
		s.stop()
		s.reaches(stopped)
	}
}

// TestCase19NothingBlocksDeletion: owner references do not ask for what OpenShift's admission
// refuses. That no request was forbidden is judged at the end of all tests.
func TestCase19NothingBlocksDeletion(t *testing.T) {
	p := share(t)
	s := p.session("owned", "hang")
	s.reaches(running)
	for _, object := range p.objectsOf(s) {
		checkOwner(t, object, s.latest())
	}
	checkOwner(t, s.job(), s.latest())
}

// objectsOf reads all objects of a session that last as long as its run, or longer.
func (p *project) objectsOf(s *session) []client.Object {
	p.t.Helper()
	var all []client.Object
	for _, kind := range childKinds {
		object := kind.empty()
		p.get(kind.name(s.name), object)
		all = append(all, object)
	}
	return all
}

// childKind is a kind of object that a session has.
type childKind struct {
	kind  string
	name  func(string) string
	empty func() client.Object
}

func wrap(prefix, suffix string) func(string) string {
	return func(s string) string { return prefix + s + suffix }
}

var childKinds = []childKind{
	{"serviceaccount", wrap("ambient-session-", ""), func() client.Object { return &corev1.ServiceAccount{} }},
	{"role", wrap("ambient-session-", "-role"), func() client.Object { return &rbacv1.Role{} }},
	{"rolebinding", wrap("ambient-session-", "-rb"), func() client.Object { return &rbacv1.RoleBinding{} }},
	{"secret", wrap("ambient-runner-token-", ""), func() client.Object { return &corev1.Secret{} }},
	{"claim", wrap("ambient-workspace-", ""), func() client.Object { return &corev1.PersistentVolumeClaim{} }},
	{"service", wrap("session-", ""), func() client.Object { return &corev1.Service{} }},
}

// TestCase21NothingIsLeft: deleting a session, in whatever phase, or its namespace, leaves nothing.
func TestCase21NothingIsLeft(t *testing.T) {
	p := share(t)
	sessions := []*session{
		p.session("running", "hang"), p.session("completed", "exit 0"), p.session("stopped", "hang"), p.session("deaf", "hang"), p.session("other", "hang"),
	}
	for i, phase := range []v1alpha1.Phase{running, completed, running, running, running} {
		sessions[i].reaches(phase)
	}
	sessions[2].stop()
	sessions[2].reaches(stopped)
	kept := sessions[4]
	creates, fails, stops := p.session("creating", "never-ready\nhang"), p.session("failed", "exit 1"), p.session("stopping", "ignore-sigterm\nhang")
	creates.pod()
	fails.reaches(failure)
	stops.reaches(running)
	stops.stop()
	stops.reaches(stopping)
	sessions = append(sessions[:4], creates, fails, stops)
	for _, s := range sessions {
		s.remove()
	}
	for _, s := range sessions {
		// The garbage collector learns of a new kind of owner only every 30 s.
		s.within(2*patience, "nothing of session "+s.name+" is left", func() error { return nothingLeft(s) })
	}
	if err := is(running)(kept.latest()); err != nil {
		t.Errorf("another session went with them: %v", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	p.delete(namespace)
	p.within(2*patience, "the namespace is gone", func() error {
		err := suite.admin.Get(p.ctx, client.ObjectKeyFromObject(namespace), namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// nothingLeft looks for objects with the session's label or one of its names.
func nothingLeft(s *session) error {
	for _, list := range []client.ObjectList{
		&batchv1.JobList{}, &corev1.PodList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{}, &corev1.ServiceList{},
		&corev1.PersistentVolumeClaimList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		if err := suite.admin.List(s.ctx, list, client.InNamespace(s.project.name), client.MatchingLabels{"agentic-session": s.name}); err != nil {
			return err
		}
		if n := itemCount(list); n > 0 {
			return fmt.Errorf("%d items in %T", n, list)
		}
	}
	return nil
}

// TestCase22Workspace: the workspace belongs to the session: it lasts over runs, goes with the
// session, and is never handed to another of the same name.
func TestCase22Workspace(t *testing.T) {
	t.Parallel()
	t.Run("recreated", func(t *testing.T) {
		p := share(t)
		first := p.session("again", "hang")
		first.reaches(running)
		claim := &corev1.PersistentVolumeClaim{}
		p.get("ambient-workspace-again", claim)
		first.remove()
		second := p.session("again", "hang")
		// The garbage collector learns of a new kind of owner only every 30 s.
		p.within(2*patience, "the second session runs", func() error { return second.phaseIs(running) })
		fresh := &corev1.PersistentVolumeClaim{}
		p.get("ambient-workspace-again", fresh)
		if fresh.UID == claim.UID {
			t.Error("the new session has the workspace of the old one")
		}
		second.never(failure)
		if most := mostAtOnce(second.pods()); most > 1 {
			t.Errorf("%d pods of that name were alive at once", most)
		}
		object := second.latest()
		for _, child := range p.objectsOf(second) {
			checkOwner(t, child, object)
		}
	})
	t.Run("being-deleted", func(t *testing.T) {
		p := share(t)
		s := p.session("losing", "hang")
		s.reaches(running)
		claim := &corev1.PersistentVolumeClaim{}
		p.get("ambient-workspace-losing", claim)
		p.delete(claim)
		s.until("tells that its workspace is going", func(object *v1alpha1.AgenticSession) error {
			if c := condition(object, v1alpha1.ConditionPVCReady); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonBeingDeleted {
				return fmt.Errorf("PVCReady is %s for %s", c.Status, c.Reason)
			}
			return nil
		})
		if err := is(running)(s.latest()); err != nil {
			t.Errorf("the run did not go on: %v", err)
		}
		s.stop()
		s.reaches(stopped)
		s.start()
		s.reachesInRun(2, running)
		fresh := &corev1.PersistentVolumeClaim{}
		p.get("ambient-workspace-losing", fresh)
		if fresh.UID == claim.UID {
			t.Error("the run began with a workspace that is being deleted")
		}
	})
	t.Run("held", func(t *testing.T) {
		p := share(t)
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "ambient-workspace-held", Finalizers: []string{holdFinalizer},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AgenticSession", Name: "held", UID: "0b0b0b0b-0000-4000-8000-000000000000", Controller: ptr(true)}}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: oneGi}},
			},
		}
		p.create(claim)
		p.delete(claim)
		s := p.session("held", "hang")
		s.until("waits for the old workspace to be gone", func(object *v1alpha1.AgenticSession) error {
			if c := condition(object, v1alpha1.ConditionPVCReady); c.Reason != v1alpha1.ReasonBeingDeleted {
				return fmt.Errorf("PVCReady is %s for %s: %s", c.Status, c.Reason, c.Message)
			}
			return nil
		})
		if pods := s.pods(); len(pods) > 0 {
			t.Error("a pod was made with the workspace of another session")
		}
		p.patch(claim, `{"metadata":{"finalizers":null}}`)
		s.reaches(running)
		s.never(failure)
	})
}

// TestCase27SpecEditedWhileRunning: an edit touches neither the Job nor the run; it is said that it
// takes effect with the next run, and there it does.
func TestCase27SpecEditedWhileRunning(t *testing.T) {
	p := share(t)
	s := p.session("edited", "hang", timeout(900))
	job := s.reaches(running).Status.JobUID
	errorsBefore := p.errorCount()
	p.patch(s.object(), `{"spec":{"initialPrompt":"hang\nedited","timeout":800,"llmSettings":{"model":"other"}}}`)
	s.until("says that the edit takes effect with the next run", func(object *v1alpha1.AgenticSession) error {
		if object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("it has observed generation %d of %d", object.Status.ObservedGeneration, object.Generation)
		}
		for _, c := range object.Status.Conditions {
			if c.Reason == "SpecChanged" {
				return nil
			}
		}
		return errors.New("no condition says so")
	})
	p.settles(time.Second)
	object := s.latest()
	if object.Status.JobUID != job || object.Status.Phase != running {
		t.Errorf("the run changed: %s with Job %s, was %s", object.Status.Phase, object.Status.JobUID, job)
	}
	if after := p.errorCount(); after != errorsBefore {
		t.Errorf("%v errors were counted", after-errorsBefore)
	}
	s.stop()
	s.reaches(stopped)
	s.start()
	s.reachesInRun(2, running)
	for _, e := range s.pod().Spec.Containers[0].Env {
		if e.Name == "LLM_MODEL" && e.Value != "other" {
			t.Errorf("the new run has model %s", e.Value)
		}
	}
	for _, c := range s.latest().Status.Conditions {
		if c.Reason == "SpecChanged" {
			t.Errorf("condition %s still tells of the edit", c.Type)
		}
	}
}

func (p *project) errorCount() float64 {
	p.t.Helper()
	n, err := p.operator.total("ambient_session_errors_total", map[string]string{"namespace": p.name})
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// TestCase28ChildrenAreMended: whatever is done to an object of a running session is undone.
func TestCase28ChildrenAreMended(t *testing.T) {
	p := share(t)
	mutations := map[string]string{
		"serviceaccount": `{"automountServiceAccountToken":true,"metadata":{"labels":{"agentic-session":null}}}`,
		"role":           `{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["*"]}]}`,
		"rolebinding":    `{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mallory"}]}`,
		"secret":         `{"metadata":{"annotations":{"ambient-code.io/token-expires-at":"never"}}}`,
		"claim":          `{"metadata":{"labels":{"agentic-session":"somebody"}}}`,
		"service":        `{"spec":{"type":"ExternalName","externalName":"elsewhere.example.com","selector":{"app":"elsewhere","agentic-session":null}}}`,
	}
	for _, kind := range childKinds {
		t.Run(kind.kind, func(t *testing.T) {
			p := p.in(t)
			s := p.session(kind.kind, "hang")
			owner := s.reaches(running)
			object := kind.empty()
			p.get(kind.name(s.name), object)
			original, ok := object.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatal("no object")
			}
			mended := func() error {
				now := kind.empty()
				if err := suite.admin.Get(p.ctx, p.key(kind.name(s.name)), now); err != nil {
					return err
				}
				return sameChild(original, now, owner)
			}
			p.patch(object, mutations[kind.kind])
			p.within(patience/6, "a change is undone", mended)
			p.patch(object, `{"metadata":{"ownerReferences":null}}`)
			p.within(patience/6, "the owner is put back", mended)
			if kind.kind != "claim" { // the volume's protection keeps it until the run is over: case 22
				p.delete(object)
				p.within(patience/6, "it is made again", mended)
			}
			p.settles(time.Second)
			if err := is(running)(s.latest()); err != nil {
				t.Error(err)
			}
			s.ranOnce()
		})
	}
}

func sameChild(was, is client.Object, owner *v1alpha1.AgenticSession) error {
	if controller := metav1.GetControllerOf(is); controller == nil || controller.UID != owner.UID {
		return errors.New("the session does not control it")
	}
	if is.GetLabels()["agentic-session"] != owner.Name {
		return fmt.Errorf("its labels are %v", is.GetLabels())
	}
	switch is := is.(type) {
	case *corev1.Secret:
		if len(is.Data["k8s-token"]) == 0 || is.Annotations["ambient-code.io/token-expires-at"] == "never" {
			return errors.New("its token is not in order")
		}
	case *corev1.ServiceAccount:
		if is.AutomountServiceAccountToken == nil || *is.AutomountServiceAccountToken {
			return errors.New("it mounts its token")
		}
	default:
		if a, b := fmt.Sprint(contents(was)), fmt.Sprint(contents(is)); a != b {
			return fmt.Errorf("it holds %s, want %s", b, a)
		}
	}
	return nil
}

// contents is what an object holds besides its metadata.
func contents(object client.Object) any {
	switch object := object.(type) {
	case *corev1.Secret:
		return object.Data
	case *rbacv1.Role:
		return object.Rules
	case *rbacv1.RoleBinding:
		return []any{object.Subjects, object.RoleRef}
	case *corev1.Service:
		return []any{object.Spec.Selector, object.Spec.Type, object.Spec.ExternalName}
	default:
		return nil
	}
}

var oneGi = resource.MustParse("1Gi")
