package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

const (
	vertex   = "ambient-vertex"
	langfuse = "ambient-admin-langfuse-secret"
	mlflow   = "ambient-admin-mlflow-observability-secret"
	// confidential is in every value of a shared Secret and must be nowhere else.
	confidential = "not-for-anybodys-eyes"
)

// sharing is how an operator is told to share all that it can.
func sharing() map[string]string {
	return map[string]string{
		"USE_VERTEX": "1", "CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "example",
		"GOOGLE_APPLICATION_CREDENTIALS": "/app/vertex/ambient-code-key.json",
		"LANGFUSE_ENABLED":               "true", "MLFLOW_TRACING_ENABLED": "true",
	}
}

// shareSecret makes or changes a Secret in the operator's namespace. It is removed after the test.
func shareSecret(t *testing.T, name, value string) map[string][]byte {
	t.Helper()
	data := map[string][]byte{"ambient-code-key.json": []byte(confidential + value), "LANGFUSE_HOST": []byte(confidential)}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.access.namespace, Name: name}, Data: data}
	err := suite.admin.Create(t.Context(), secret)
	if err == nil {
		t.Cleanup(func() { unshareSecret(t, name) })
		return data
	}
	if err := suite.admin.Update(t.Context(), secret); err != nil {
		t.Fatalf("changing the shared Secret %s: %v", name, err)
	}
	return data
}

func unshareSecret(t *testing.T, name string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.access.namespace, Name: name}}
	if err := suite.admin.Delete(context.Background(), secret); client.IgnoreNotFound(err) != nil {
		t.Errorf("removing the shared Secret %s: %v", name, err)
	}
}

// copied waits until the project has a copy with this data, which belongs to the project's settings
// alone.
func (p *project) copied(name string, data map[string][]byte) *corev1.Secret {
	p.t.Helper()
	secret := &corev1.Secret{}
	p.eventually("the project has a copy of "+name, func() error {
		secret = &corev1.Secret{}
		if err := suite.admin.Get(p.ctx, p.key(name), secret); err != nil {
			return err
		}
		settings := &v1alpha1.ProjectSettings{}
		if err := suite.admin.Get(p.ctx, p.key("projectsettings"), settings); err != nil {
			return err
		}
		switch {
		case !equality.Semantic.DeepEqual(secret.Data, data):
			return errors.New("its data is another")
		case len(secret.OwnerReferences) != 1 || !metav1.IsControlledBy(secret, settings):
			return fmt.Errorf("it belongs to %+v", secret.OwnerReferences)
		case secret.Annotations["vteam.ambient-code/copied-from"] != suite.access.namespace+"/"+name:
			return fmt.Errorf("its annotations are %v", secret.Annotations)
		case secret.Labels["app.kubernetes.io/managed-by"] != "agentic-operator":
			return fmt.Errorf("its labels are %v", secret.Labels)
		}
		return nil
	})
	return secret
}

// discreet fails if the content of a shared Secret got into what people read.
func (p *project) discreet() {
	p.t.Helper()
	if lines := suite.logs.containing(confidential); len(lines) > 0 {
		p.t.Errorf("the log has the content of a Secret: %q", lines)
	}
	events, sessions, settings := &corev1.EventList{}, sessionList(), projectSettingsList()
	for _, list := range []client.ObjectList{events, sessions, settings} {
		if err := suite.admin.List(p.ctx, list, client.InNamespace(p.name)); err != nil {
			p.t.Error(err)
		}
	}
	if strings.Contains(fmt.Sprintf("%+v %+v %+v", events.Items, sessions.Items, settings.Items), confidential) {
		p.t.Error("an Event or a status has the content of a Secret")
	}
	for i := range events.Items {
		if e := &events.Items[i]; strings.Contains(e.Message, vertex) && strings.Contains(e.Message, "not found") {
			p.t.Errorf("a pod waited for a Secret: %s %s: %s", e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}

// deletedCopies counts the operator's removals of copies in the project.
func (p *project) deletedCopies() int {
	n := 0
	for _, c := range p.operator.gate.written(p.name) {
		if c.method == http.MethodDelete && (strings.HasSuffix(c.path, "/secrets/"+vertex) || strings.HasSuffix(c.path, "/secrets/"+langfuse)) {
			n++
		}
	}
	return n
}

// TestCase26SharedSecrets: twenty sessions start and stop at random while the shared Secrets are
// rotated and their copies are deleted by hand. No pod ever waits for one.
func TestCase26SharedSecrets(t *testing.T) {
	p := emptyProject(t, alone(t, sharing()), map[string]string{v1alpha1.LabelManaged: "true"})
	first := p.session("session-0", "hang")
	object := first.tells(pending, v1alpha1.ReasonPrerequisiteMissing)
	if message := condition(object, v1alpha1.ConditionReady).Message; !strings.Contains(message, "kubectl -n "+suite.access.namespace+" create secret generic "+vertex+" --from-file=ambient-code-key.json") {
		t.Errorf("the message does not say where the credentials are copied from: %s", message)
	}
	data := shareSecret(t, vertex, "-0")
	p.copied(vertex, data)
	first.reaches(running)
	p.copied(langfuse, shareSecret(t, langfuse, "-0"))

	sessions := []*session{first}
	for i := range 19 {
		sessions = append(sessions, p.session(fmt.Sprintf("session-%d", i+1), "hang"))
	}
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 26))
	for round := range 6 {
		for range 5 {
			s := sessions[random.IntN(len(sessions))]
			if random.IntN(2) == 0 {
				s.stop()
			} else {
				s.start()
			}
		}
		data = shareSecret(t, vertex, fmt.Sprintf("-%d", round+1))
		began := time.Now()
		p.copied(vertex, data)
		t.Logf("round %d: the copy followed after %s", round, time.Since(began).Round(time.Millisecond))
		if round%3 != 2 {
			continue
		}
		// A copy that is deleted just when a pod starts would be missed by it for a moment.
		p.eventually("no session is starting", func() error { return atRest(sessions) })
		was := p.copied(vertex, data)
		p.delete(was)
		if is := p.copied(vertex, data); is.UID == was.UID {
			t.Error("the copy was not deleted")
		}
	}
	for _, s := range sessions {
		s.start()
	}
	p.eventually("all sessions run", func() error {
		for _, s := range sessions {
			if err := s.phaseIs(running); err != nil {
				return fmt.Errorf("session %s: %w", s.name, err)
			}
		}
		return nil
	})
	for _, s := range sessions {
		s.never(failure)
	}
	if n := p.deletedCopies(); n > 0 {
		t.Errorf("the operator removed copies %d times while sessions used them", n)
	}
	p.settles(5 * time.Second)
	p.discreet()
}

// atRest says that no session is on its way.
func atRest(sessions []*session) error {
	for _, s := range sessions {
		if s.phaseIs(running) != nil && s.phaseIs(stopped) != nil {
			return fmt.Errorf("session %s is %v", s.name, s.latest().Status.Phase)
		}
		if latest := s.latest(); latest.Annotations[v1alpha1.AnnotationDesiredPhase] != "" {
			return fmt.Errorf("session %s has a request", s.name)
		}
	}
	return nil
}

// TestCase28CopiesAreHealed: whatever is changed on a copy is put back; at rest nothing is written.
func TestCase28CopiesAreHealed(t *testing.T) {
	p := emptyProject(t, alone(t, sharing()), map[string]string{v1alpha1.LabelManaged: "true"})
	data := shareSecret(t, mlflow, "")
	for what, patch := range map[string]string{
		"other data":     `{"data":{"ambient-code-key.json":"Zm9vCg==","more":"Zm9vCg=="}}`,
		"less data":      `{"data":{"LANGFUSE_HOST":null}}`,
		"labels off":     `{"metadata":{"labels":null}}`,
		"annotation off": `{"metadata":{"annotations":null}}`,
		"owner off":      `{"metadata":{"ownerReferences":null}}`,
	} {
		p.patch(p.copied(mlflow, data), patch)
		began := time.Now()
		p.copied(mlflow, data)
		t.Logf("%s: healed after %s", what, time.Since(began).Round(time.Millisecond))
	}
	p.patch(p.copied(mlflow, data), `{"immutable":true}`)
	data = shareSecret(t, mlflow, "-rotated")
	was := p.copied(mlflow, data)
	p.delete(was)
	p.copied(mlflow, data)
	settings := &v1alpha1.ProjectSettings{}
	p.get("projectsettings", settings)
	p.delete(settings)
	p.eventually("the settings are made again", func() error {
		now := &v1alpha1.ProjectSettings{}
		if err := suite.admin.Get(p.ctx, p.key("projectsettings"), now); err != nil {
			return err
		}
		if now.UID == settings.UID {
			return errors.New("they are the old ones")
		}
		return nil
	})
	p.copied(mlflow, data)
	p.settles(2 * time.Second)
	p.copied(mlflow, data)
	p.discreet()
}

// TestCase24SharedSecretsOfAUser: a user's own Secret with the name of a shared one is used as it is.
// Nothing ever writes to it or reads its content.
func TestCase24SharedSecretsOfAUser(t *testing.T) {
	operator := alone(t, sharing())
	data := shareSecret(t, vertex, "")
	var projects []*project
	var theirs []*corev1.Secret
	var sessions []*session
	for _, owned := range []string{"by nobody", "by a ConfigMap", "by a session", "as a label says"} {
		p := emptyProject(t, operator, nil)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: vertex}, Data: map[string][]byte{"ambient-code-key.json": []byte("mine")}}
		switch owned {
		case "by a ConfigMap":
			owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "owner"}}
			p.create(owner)
			secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr(true)}}
		case "by a session":
			owner := p.session("owner", "hang")
			secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AgenticSession", Name: owner.name, UID: owner.uid, Controller: ptr(true)}}
		case "as a label says":
			secret.Labels = map[string]string{"app.kubernetes.io/managed-by": "agentic-operator"}
			secret.Annotations = map[string]string{"vteam.ambient-code/copied-from": "elsewhere/" + vertex}
		}
		p.create(secret)
		p.label(v1alpha1.LabelManaged, "true")
		projects, theirs, sessions = append(projects, p), append(theirs, secret), append(sessions, p.session("uses-it", "hang"))
	}
	beside := emptyProject(t, operator, map[string]string{v1alpha1.LabelManaged: "true"})
	beside.copied(vertex, data)
	beside.copied(vertex, shareSecret(t, vertex, "-rotated"))
	for i, p := range projects {
		sessions[i].reaches(running)
		p.settles(0)
		if i == 0 {
			p.told("A Secret of the project's own is used")
			p.hasEvents("projectsettings", v1alpha1.ReasonOwnSecretUsed, 1)
		}
		p.label(v1alpha1.LabelManaged, "")
	}
	unshareSecret(t, vertex)
	if err := operator.stop(); err != nil {
		t.Fatal(err)
	}
	untold := alone(t, nil)
	beside.operator = untold
	beside.eventually("the copy is removed when it is no longer asked for", func() error { return beside.absent(vertex, &corev1.Secret{}) })
	for i, p := range projects {
		now := &corev1.Secret{}
		p.get(vertex, now)
		if now.UID != theirs[i].UID || now.ResourceVersion != theirs[i].ResourceVersion || !equality.Semantic.DeepEqual(now.Data, theirs[i].Data) || !equality.Semantic.DeepEqual(now.OwnerReferences, theirs[i].OwnerReferences) {
			t.Errorf("the Secret that is owned otherwise was changed from %+v to %+v", theirs[i].ObjectMeta, now.ObjectMeta)
		}
		for _, gate := range []*gate{operator.gate, untold.gate} {
			if calls := gate.to("/api/v1/namespaces/" + p.name + "/secrets/" + vertex); len(calls) > 0 {
				t.Errorf("the operator asked for somebody's Secret, or wrote to it: %v", calls)
			}
		}
	}
}

// to lists the calls to a path, but not reads of mere metadata.
func (g *gate) to(path string) []call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(g.calls), func(c call) bool { return c.path != path || c.metadata && !c.write() })
}

// told waits for a line of the log about the project.
func (p *project) told(text string) {
	p.t.Helper()
	p.eventually("the log says: "+text, func() error {
		for _, line := range suite.logs.containing(p.name) {
			if strings.Contains(line, text) {
				return nil
			}
		}
		return errors.New("it does not")
	})
}

// TestCase26CopiesGoWhenNobodyUsesThem: a copy that is no longer wanted stays as long as a run uses
// it; one that the platform's operator has left behind is taken over, whomever it belongs to.
func TestCase26CopiesGoWhenNobodyUsesThem(t *testing.T) {
	operator := alone(t, sharing())
	p := emptyProject(t, operator, map[string]string{v1alpha1.LabelManaged: "true"})
	former := p.session("former", "hang")
	old := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: vertex,
			Annotations:     map[string]string{"vteam.ambient-code/copied-from": suite.access.namespace + "/" + vertex},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AgenticSession", Name: former.name, UID: former.uid, Controller: ptr(true)}}},
		Type: "example.com/key", Data: map[string][]byte{"ambient-code-key.json": []byte("old")},
	}
	p.create(old)
	former.reaches(running)
	data := shareSecret(t, vertex, "")
	if got := p.copied(vertex, data); got.UID != old.UID {
		t.Error("the copy of the platform's operator was not taken over but made anew")
	}
	p.remove(former)
	kept := p.session("kept", "hang")
	kept.reaches(running)

	p.label(v1alpha1.LabelManaged, "")
	unshareSecret(t, vertex)
	stays := func() error { return suite.admin.Get(p.ctx, p.key(vertex), &corev1.Secret{}) }
	p.always(3*time.Second, "a copy stays under a run", stays)
	p.told("Copy of a shared Secret brought up to date")
	kept.stop()
	kept.reaches(stopped)
	p.eventually("the copy goes with the last run", func() error { return p.absent(vertex, &corev1.Secret{}) })

	p.label(v1alpha1.LabelManaged, "true")
	data = shareSecret(t, vertex, "-again")
	was := p.copied(vertex, data)
	unshareSecret(t, vertex)
	p.always(2*time.Second, "a copy stays without its source", stays)
	data = shareSecret(t, vertex, "-replaced")
	if p.copied(vertex, data).UID != was.UID {
		t.Error("the copy was made anew when its source was replaced")
	}
	kept.start()
	kept.reachesInRun(2, running)
	if err := operator.stop(); err != nil {
		t.Fatal(err)
	}
	p.createRunnerSecret()
	p.operator = alone(t, nil)
	later := p.session("later", "hang")
	later.reaches(running)
	p.always(2*time.Second, "a copy stays under a run that began before", stays)
	kept.stop()
	p.eventually("the copy goes although other runs go on", func() error { return p.absent(vertex, &corev1.Secret{}) })
	if err := later.phaseIs(running); err != nil {
		t.Error(err)
	}
	p.settles(time.Second)
	p.discreet()
}

// TestSharedSecretsReachTheRunner: what the pod of a session refers to is what the project has.
func TestSharedSecretsReachTheRunner(t *testing.T) {
	p := emptyProject(t, alone(t, sharing()), map[string]string{v1alpha1.LabelManaged: "true"})
	p.copied(vertex, shareSecret(t, vertex, ""))
	// Neither langfuse nor mlflow is there: runs begin without traces.
	s := p.session("untraced", "hang", environment("LANGFUSE_HOST", "https://mine.example.com"))
	s.reaches(running)
	pod := &s.pod().Spec
	from := map[string]string{}
	for _, v := range pod.Containers[0].Env {
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil && v.ValueFrom.SecretKeyRef.Optional != nil {
			from[v.Name] = v.ValueFrom.SecretKeyRef.Name
		}
	}
	if from["LANGFUSE_HOST"] != langfuse || from["MLFLOW_TRACKING_URI"] != mlflow {
		t.Errorf("the variables for traces come from %v", slices.Collect(maps.Keys(from)))
	}
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == vertex }) {
		t.Error("the pod has no volume with the credentials of Vertex AI")
	}
}

// TestCase24ReplacedAtTheLastMoment: a copy that somebody replaces by their own Secret just before
// the operator changes or removes it is theirs, and left alone.
func TestCase24ReplacedAtTheLastMoment(t *testing.T) {
	operator := alone(t, sharing())
	for method, trigger := range map[string]func(*project){
		http.MethodPatch:  func(*project) { shareSecret(t, vertex, "-rotated") },
		http.MethodDelete: func(p *project) { p.label(v1alpha1.LabelManaged, "") },
	} {
		p := emptyProject(t, operator, map[string]string{v1alpha1.LabelManaged: "true"})
		old := p.copied(vertex, shareSecret(t, vertex, ""))
		p.settles(0)
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: vertex}, Data: map[string][]byte{"ambient-code-key.json": []byte("mine")}}
		replaced := make(chan error, 10)
		operator.gate.hookInto(t, p.name, func(request *http.Request) *http.Response {
			if request.Method == method && strings.HasSuffix(request.URL.Path, "/secrets/"+vertex) && theirs.UID == "" {
				replaced <- errors.Join(suite.admin.Delete(p.ctx, old.DeepCopy()), suite.admin.Create(p.ctx, theirs))
			}
			return nil
		})
		trigger(p)
		select {
		case err := <-replaced:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatalf("%s: the operator does not write", method)
		}
		p.settles(0)
		now := &corev1.Secret{}
		p.get(vertex, now)
		if now.UID != theirs.UID || now.ResourceVersion != theirs.ResourceVersion {
			t.Errorf("%s: somebody's Secret was changed from %+v to %+v", method, theirs.ObjectMeta, now.ObjectMeta)
		}
	}
}
