package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/policy"
)

// projectObjects are the objects that every project has, by kind and name.
func projectObjects() map[string]client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	return map[string]client.Object{
		"ServiceAccount": &corev1.ServiceAccount{ObjectMeta: named("ambient-session-trigger")},
		"Role":           &rbacv1.Role{ObjectMeta: named("ambient-session-trigger")},
		"RoleBinding":    &rbacv1.RoleBinding{ObjectMeta: named("ambient-session-trigger")},
		"LimitRange":     &corev1.LimitRange{ObjectMeta: named("ambient-default-limits")},
		"NetworkPolicy":  &networkingv1.NetworkPolicy{ObjectMeta: named("runner-allow-backend-only")},
	}
}

// TestCase17TheLabelComesAndGoes: a namespace is served from the moment that it has the label to
// the moment that it has no more. What was made stays then, and the settings say so.
func TestCase17TheLabelComesAndGoes(t *testing.T) {
	t.Parallel()
	p := emptyProject(t, sharedOperator(t), nil)
	p.createRunnerSecret()
	s := p.session("early", "hang")
	mine := p.settingsObject()
	mine.Spec.GroupAccess = []v1alpha1.GroupAccess{{GroupName: "first", Role: "edit"}}
	p.create(mine)
	p.settings("are not served", readyFor(metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotManaged))
	p.has("first", "")
	for kind, object := range projectObjects() {
		if err := p.absent(object.GetName(), object); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}

	p.label(v1alpha1.LabelManaged, "true")
	if got := p.settings("are served", ready); got.UID != mine.UID {
		t.Error("the settings that were there are gone")
	}
	p.has("first", "edit")
	s.reaches(running)

	p.label(v1alpha1.LabelManaged, "")
	told := p.settings("are no longer served", readyFor(metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotManaged))
	if told.Status.GroupBindingsCreated != 1 {
		t.Errorf("the status tells of %d groups, one has access", told.Status.GroupBindingsCreated)
	}
	p.giveAccess("second", "view")
	p.settings("are looked at", readyFor(metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotManaged))
	p.has("first", "edit")
	p.has("second", "")
	s.expectHistory(pending, creating, running)
	p.settles(time.Second)

	p.label(v1alpha1.LabelManaged, "true")
	p.settings("are served again", ready)
	p.has("first", "")
	p.has("second", "view")

	p.label(v1alpha1.LabelManaged, "false")
	p.settings("are not served with another value", readyFor(metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotManaged))
	p.delete(p.settingsObject())
	p.has("second", "")
	p.always(2*time.Second, "no settings are made in a namespace that is not managed", func() error {
		return p.absent("projectsettings", &v1alpha1.ProjectSettings{})
	})
	p.eventually("what the project had is gone with its settings", func() error {
		var errs []error
		for _, object := range projectObjects() {
			errs = append(errs, p.absent(object.GetName(), object))
		}
		return errors.Join(errs...)
	})
}

// TestCase17DefaultSettings: a managed namespace has settings, made again when they are deleted,
// and all that follows from them.
func TestCase17DefaultSettings(t *testing.T) {
	p := share(t)
	first := p.settings("are made and in effect", ready)
	if len(first.Spec.GroupAccess) > 0 || first.Status.GroupBindingsCreated != 0 || !first.Status.LimitRangeReady || !first.Status.ScheduledSessionRBACReady {
		t.Errorf("they are %+v", first)
	}
	if lines := suite.logs.about(p.name, "not this operator's"); lines > 0 {
		t.Errorf("a definition that is the operator's own is told %d times to be another's", lines)
	}
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		old := p.settings("are there", exist)
		p.delete(p.settingsObject(), client.PropagationPolicy(how))
		again := p.settings("are made again and in effect", func(s *v1alpha1.ProjectSettings) error {
			if s.UID == old.UID {
				return errors.New("they are the old ones")
			}
			return ready(s)
		})
		for kind, object := range projectObjects() {
			// The garbage collector may have been quicker.
			p.eventually(fmt.Sprintf("%s: the %s belongs to the new settings", how, kind), func() error {
				if err := suite.admin.Get(p.ctx, p.key(object.GetName()), object); err != nil {
					return err
				}
				if controller := metav1.GetControllerOf(object); controller == nil || controller.UID != again.UID {
					return fmt.Errorf("it belongs to %v", object.GetOwnerReferences())
				}
				return nil
			})
		}
	}
	p.settles(time.Second)
}

// TestCase17ATerminatingNamespaceGetsNothing: nothing is made in a namespace that is being deleted.
func TestCase17ATerminatingNamespaceGetsNothing(t *testing.T) {
	p := share(t)
	s := p.session("running", "hang")
	s.reaches(running)
	p.giveAccess("team", "view")
	p.settings("are in effect", ready)
	holder := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "holder", Finalizers: []string{"example.com/hold"}}}
	p.create(holder)
	release := func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := suite.admin.Patch(context.Background(), holder, patch); client.IgnoreNotFound(err) != nil {
			t.Errorf("letting the namespace go: %v", err)
		}
	}
	t.Cleanup(release)
	p.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}})
	p.eventually("the namespace is emptied", func() error {
		return errors.Join(p.absent("projectsettings", &v1alpha1.ProjectSettings{}), p.absent("runner-allow-backend-only", &networkingv1.NetworkPolicy{}),
			p.absent("ambient-default-limits", &corev1.LimitRange{}), p.absent("running", &v1alpha1.AgenticSession{}))
	})
	before := len(p.operator.gate.written(p.name))
	p.always(3*time.Second, "nothing is made", func() error {
		return errors.Join(p.absent("projectsettings", &v1alpha1.ProjectSettings{}), p.absent("runner-allow-backend-only", &networkingv1.NetworkPolicy{}))
	})
	if writes := p.operator.gate.written(p.name)[before:]; len(writes) > 0 {
		t.Errorf("the operator wrote to a namespace that is being deleted: %v", writes)
	}
	for _, line := range suite.logs.containing(p.name) {
		if strings.Contains(line, "error") && strings.Contains(line, "projectsettings") {
			t.Errorf("the operator complains about a namespace that is being deleted: %s", line)
		}
	}
}

// TestCase24ProjectObjectsOfOthers: objects that merely have the names of a project's are left as
// they are and told; once they are gone, ours are made.
func TestCase24ProjectObjectsOfOthers(t *testing.T) {
	t.Parallel()
	p := emptyProject(t, sharedOperator(t), nil)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "theirs"}}
	p.create(owner)
	yes := true
	theirs := projectObjects()
	for kind, object := range theirs {
		object.SetNamespace(p.name)
		if kind == "LimitRange" {
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &yes}})
		}
		if binding, ok := object.(*rbacv1.RoleBinding); ok {
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
		}
		p.create(object)
	}
	p.label(v1alpha1.LabelManaged, "true")
	p.giveAccess("team", "view")
	s := p.settings("tell of the objects", readyFor(metav1.ConditionFalse, v1alpha1.ReasonNameCollision))
	if s.Status.LimitRangeReady || s.Status.ScheduledSessionRBACReady || s.Status.GroupBindingsCreated != 1 {
		t.Errorf("the status is %+v", s.Status)
	}
	p.has("team", "view")
	p.settles(2 * time.Second)
	unchanged := func() {
		t.Helper()
		for kind, object := range theirs {
			now := projectObjects()[kind]
			p.get(object.GetName(), now)
			if now.GetResourceVersion() != object.GetResourceVersion() || now.GetUID() != object.GetUID() {
				t.Errorf("the %s of somebody else was changed", kind)
			}
		}
	}
	unchanged()
	p.patch(p.settingsObject(), `{"metadata":{"annotations":{"example.com/touched":"true"}}}`)
	p.settles(time.Second)
	unchanged()
	for _, object := range theirs {
		p.delete(object)
	}
	p.within(100*time.Second, "ours are made when theirs are gone", func() error {
		latest := p.settingsObject()
		p.get(latest.Name, latest)
		return ready(latest)
	})
	p.settles(time.Second)
}

// TestCase28ProjectObjectsAreHealed: what somebody deletes or changes of a project's objects is put
// back.
func TestCase28ProjectObjectsAreHealed(t *testing.T) {
	p := share(t)
	p.giveAccess("team", "edit")
	settings := p.settings("are in effect", ready)
	objects := projectObjects()
	objects["group's RoleBinding"] = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: p.bindings()[0].Name}}
	mutations := map[string]string{
		"ServiceAccount":      `{"automountServiceAccountToken":false}`,
		"Role":                `{"rules":[]}`,
		"RoleBinding":         `{"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"intruders"}]}`,
		"group's RoleBinding": `{"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"intruders"}]}`,
		"LimitRange":          `{"spec":{"limits":[]}}`,
		"NetworkPolicy":       `{"spec":{"ingress":[{}],"podSelector":{"matchLabels":{"app":"other"}}}}`,
	}
	for kind, object := range objects {
		p.get(object.GetName(), object)
		want, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%T has no metadata", object)
		}
		same := func() error {
			if err := suite.admin.Get(p.ctx, p.key(want.GetName()), object); err != nil {
				return err
			}
			return sameObject(object, want)
		}
		for what, patch := range map[string]string{
			"content": mutations[kind],
			"owner":   `{"metadata":{"ownerReferences":null}}`,
			"labels":  `{"metadata":{"labels":null}}`,
			"label":   `{"metadata":{"labels":{"ambient-code.io/project-settings":"other"}}}`,
		} {
			p.patch(object, patch)
			p.eventually("the "+what+" of the "+kind+" is put back", same)
			if object.GetUID() != want.GetUID() {
				t.Errorf("the %s was made anew for its %s", kind, what)
			}
		}
		p.delete(object)
		p.eventually("the "+kind+" is made again", same)
	}
	p.has("team", "edit")
	p.has("intruders", "")
	if got := p.settings("are in effect", ready); got.UID != settings.UID {
		t.Error("the settings were made anew")
	}
	p.settles(time.Second)
}

// sameObject compares what the operator sets of an object.
func sameObject(got, want client.Object) error {
	clean := func(object client.Object) client.Object {
		copied, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return object
		}
		copied.SetUID("")
		copied.SetResourceVersion("")
		copied.SetGeneration(0)
		copied.SetCreationTimestamp(metav1.Time{})
		copied.SetManagedFields(nil)
		return copied
	}
	if got, want := clean(got), clean(want); !equality.Semantic.DeepEqual(got, want) {
		return fmt.Errorf("it is %+v, was %+v", got, want)
	}
	return nil
}

// TestCase36NetworkPolicy: the policy selects the runners of a project and nothing else, and lets
// in the backend and the operator alone, to the runner's port.
func TestCase36NetworkPolicy(t *testing.T) {
	p := share(t)
	s := p.session("runner", "hang")
	s.reaches(running)
	p.settings("are in effect", ready)
	bystander := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "bystander", Labels: map[string]string{"app": "other"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/image"}}}}
	p.create(bystander)
	made := &networkingv1.NetworkPolicy{}
	p.get("runner-allow-backend-only", made)
	runner := s.pod()
	for pod, want := range map[*corev1.Pod]bool{runner: true, bystander: false} {
		if guards, err := policy.Guards(made, pod.Labels); guards != want || err != nil {
			t.Errorf("the policy is about pod %s with %v: %t, %v", pod.Name, pod.Labels, guards, err)
		}
	}
	if types := made.Spec.PolicyTypes; !slices.Equal(types, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) || len(made.Spec.Ingress) != 1 {
		t.Fatalf("the policy is %+v", made.Spec)
	}
	container := &runner.Spec.Containers[0]
	port := container.Ports[0].ContainerPort
	for namespace, want := range map[string]bool{suite.access.namespace: true, p.name: false, "default": false} {
		object := &corev1.Namespace{}
		if err := suite.admin.Get(p.ctx, client.ObjectKey{Name: namespace}, object); err != nil {
			t.Fatal(err)
		}
		from := policy.Caller{Namespace: namespace, NamespaceLabels: object.Labels}
		if got, err := policy.Admits(made, from, container, port); got != want || err != nil {
			t.Errorf("namespace %s is let in to the port on which the runner serves: %t, want %t, %v", namespace, got, want, err)
		}
		if got, err := policy.Admits(made, from, container, port+1); got || err != nil {
			t.Errorf("namespace %s is let in to another port: %v", namespace, err)
		}
	}
	// The defaults of the LimitRange reach a container that asks for nothing.
	if request := bystander.Spec.Containers[0].Resources.Requests.Cpu().String(); request != "250m" {
		t.Errorf("a container that asks for nothing gets %s of a processor", request)
	}
}

// TestCase30FailingWrites: a write that fails is told and tried again; meanwhile the others are in
// effect, and access is taken away all the same.
func TestCase30FailingWrites(t *testing.T) {
	p := share(t)
	p.giveAccess("gone", "admin")
	p.settings("are in effect", ready)
	p.operator.gate.hookInto(t, p.name, func(request *http.Request) *http.Response {
		if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/rolebindings") {
			return refusal(request, http.StatusInternalServerError, metav1.StatusReasonInternalError)
		}
		return nil
	})
	p.giveAccess("team", "view")
	s := p.settings("tell of the failure", readyFor(metav1.ConditionFalse, v1alpha1.ReasonNotApplied))
	if len(s.Status.GroupErrors) != 1 || s.Status.GroupErrors[0].GroupName != "team" {
		t.Errorf("the errors are %+v", s.Status.GroupErrors)
	}
	p.has("gone", "")
	p.operator.gate.hookInto(t, p.name, nil)
	p.settings("are in effect", ready)
	p.has("team", "view")

	refused := make(chan struct{}, 1)
	p.operator.gate.hookInto(t, p.name, func(request *http.Request) *http.Response {
		if request.Method != http.MethodDelete {
			return nil
		}
		select {
		case refused <- struct{}{}:
			return refusal(request, http.StatusConflict, metav1.StatusReasonConflict)
		default:
			return nil
		}
	})
	p.giveAccess()
	p.has("team", "")
	p.settings("are in effect", ready)
	if len(refused) == 0 {
		t.Error("no deletion was refused")
	}
}
