package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// patience is how long a test waits for what must happen. It is much longer than it takes, for
// machines that are busy with other things as well. With plain watches every pass reads all from the API
// server, and tests that run beside each other keep it busy.
var patience = map[bool]time.Duration{false: 2 * time.Minute, true: 4 * time.Minute}[legacyWatch()]

// project is a namespace with what a project must hold.
type project struct {
	t    *testing.T
	ctx  context.Context
	name string
	// operator is the one that is expected to work here; nil where none is.
	operator *operatorRun
}

// share makes a project for a test that runs beside others with the shared operator.
func share(t *testing.T) *project {
	t.Helper()
	t.Parallel()
	return newProject(t, sharedOperator(t))
}

// newProject makes a managed namespace with a runner Secret. It is removed after the test.
func newProject(t *testing.T, operator *operatorRun) *project {
	t.Helper()
	p := emptyProject(t, operator, map[string]string{v1alpha1.LabelManaged: "true"})
	p.createRunnerSecret()
	return p
}

// emptyProject makes a namespace with these labels and nothing in it.
func emptyProject(t *testing.T, operator *operatorRun, labels map[string]string) *project {
	t.Helper()
	p := &project{t: t, ctx: t.Context(), operator: operator}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels}}
	p.create(namespace)
	p.name = namespace.Name
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.evidence())
		}
		if err := suite.admin.Delete(context.Background(), namespace); client.IgnoreNotFound(err) != nil {
			t.Errorf("removing namespace %s: %v", p.name, err)
		}
	})
	return p
}

func (p *project) createRunnerSecret() {
	p.t.Helper()
	p.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: workload.DefaultRunnerSecret},
		StringData: map[string]string{"ANTHROPIC_API_KEY": "not-a-key"},
	})
}

func (p *project) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: p.name, Name: name}
}

func (p *project) create(object client.Object) {
	p.t.Helper()
	if err := suite.admin.Create(p.ctx, object); err != nil {
		p.t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

// get reads an object, which must be there.
func (p *project) get(name string, object client.Object) {
	p.t.Helper()
	if err := suite.admin.Get(p.ctx, p.key(name), object); err != nil {
		p.t.Fatalf("reading %T %s: %v", object, name, err)
	}
}

// absent says that there is no such object.
func (p *project) absent(name string, object client.Object) error {
	err := suite.admin.Get(p.ctx, p.key(name), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%T %s is there", object, name)
}

func (p *project) delete(object client.Object, options ...client.DeleteOption) {
	p.t.Helper()
	if err := suite.admin.Delete(p.ctx, object, options...); client.IgnoreNotFound(err) != nil {
		p.t.Fatalf("deleting %T %s: %v", object, object.GetName(), err)
	}
}

// patch changes an object with a merge patch.
func (p *project) patch(object client.Object, patch string) {
	p.t.Helper()
	if err := suite.admin.Patch(p.ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		p.t.Fatalf("patching %T %s with %s: %v", object, object.GetName(), patch, err)
	}
}

// label sets a label of the namespace, or takes it away when the value is empty.
func (p *project) label(key, value string) {
	p.t.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	p.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}}, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, text))
}

// eventually waits until check has no complaint, and fails the test with the last one when that
// takes too long.
func (p *project) eventually(what string, check func() error) {
	p.t.Helper()
	p.within(patience, what, check)
}

func (p *project) within(limit time.Duration, what string, check func() error) {
	p.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// always checks for a while that something stays as it is.
func (p *project) always(duration time.Duration, what string, check func() error) {
	p.t.Helper()
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := check(); err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
	}
}

// evidence is what is known of the project, for the message of a failed test.
func (p *project) evidence() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var text strings.Builder
	fmt.Fprintf(&text, "What is known of namespace %s:\n", p.name)
	sessions := sessionList()
	if err := suite.admin.List(ctx, sessions, client.InNamespace(p.name)); err != nil {
		fmt.Fprintf(&text, "  listing its sessions: %v\n", err)
	}
	for i := range sessions.Items {
		if i == 10 {
			fmt.Fprintf(&text, "  ... and %d sessions more\n", len(sessions.Items)-i)
			break
		}
		text.WriteString(describe(&sessions.Items[i]))
	}
	events := &corev1.EventList{}
	if err := suite.admin.List(ctx, events, client.InNamespace(p.name)); err != nil {
		fmt.Fprintf(&text, "  listing its events: %v\n", err)
	}
	for i := range events.Items[max(0, len(events.Items)-15):] {
		e := &events.Items[max(0, len(events.Items)-15)+i]
		fmt.Fprintf(&text, "  event %s %s %s %s: %s\n", e.Type, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, shorten(e.Message))
	}
	lines := suite.logs.containing(p.name)
	for _, line := range lines[max(0, len(lines)-25):] {
		fmt.Fprintf(&text, "  log %s\n", shorten(line))
	}
	return text.String()
}

func describe(s *v1alpha1.AgenticSession) string {
	var text strings.Builder
	versions := suite.recorder.Versions(s.UID)
	key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	fmt.Fprintf(&text, "  session %s: %s, run %d, Job %s, pod %s; was %v\n    annotations %v\n", s.Name, s.Status.Phase, s.Status.Run, s.Status.JobName, s.Status.PodName, phases(versions), s.Annotations)
	for _, c := range s.Status.Conditions {
		fmt.Fprintf(&text, "    %s=%s %s: %s\n", c.Type, c.Status, c.Reason, shorten(c.Message))
	}
	for _, job := range remaining(suite.recorder.JobsOf(key)) {
		fmt.Fprintf(&text, "    Job %s %s deletion %v conditions %v\n", job.Name, job.UID, job.DeletionTimestamp, job.Status.Conditions)
	}
	for _, pod := range remaining(suite.recorder.PodsOf(key)) {
		fmt.Fprintf(&text, "    pod %s %s deletion %v reason %q containers %v\n", pod.Name, pod.Status.Phase, pod.DeletionTimestamp, pod.Status.Reason, pod.Status.ContainerStatuses)
	}
	return text.String()
}

func shorten(text string) string {
	if len(text) > 500 {
		return text[:500] + "..."
	}
	return text
}
