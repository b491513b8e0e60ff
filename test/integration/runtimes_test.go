package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// entry is one type of the registry.
type entry = map[string]any

// plainEntry is a type that says little more than it must.
func plainEntry(id string, extra entry) entry {
	e := entry{"id": id, "container": entry{"image": "registry.example/" + id + ":1"}}
	maps.Copy(e, extra)
	return e
}

// otherEntry is a type that differs from the built-in one.
func otherEntry(port int) entry {
	return entry{"id": "other-sdk", "container": entry{
		"image": "registry.example/other:2", "port": port, "env": entry{"GREETING": "hello", "SESSION_ID": "stolen"},
		"resources": entry{"requests": entry{"cpu": "10m", "memory": "16Mi"}, "limits": entry{"cpu": "20m", "memory": "32Mi"}},
	}, "sandbox": entry{"stateDir": ".other", "persistence": "pvc", "workspaceSize": "1Gi", "terminationGracePeriod": 7}}
}

// register makes these the types of the cluster. Only tests with an operator of their own may do
// so: the registry is there for all sessions of an operator.
func register(t *testing.T, entries ...entry) {
	t.Helper()
	text, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	registerText(t, string(text))
}

func registerText(t *testing.T, text string) {
	t.Helper()
	registry := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: suite.access.namespace, Name: runtimes.RegistryConfigMap}}
	t.Cleanup(func() { unregister(t) })
	exists := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(registry), registry)
	if client.IgnoreNotFound(exists) != nil {
		t.Fatal(exists)
	}
	registry.Data = map[string]string{runtimes.RegistryKey: text}
	write := func() error { return suite.admin.Update(t.Context(), registry) }
	if exists != nil {
		write = func() error { return suite.admin.Create(t.Context(), registry) }
	}
	if err := write(); err != nil {
		t.Fatalf("writing the registry: %v", err)
	}
}

func unregister(t *testing.T) {
	t.Helper()
	registry := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: suite.access.namespace, Name: runtimes.RegistryConfigMap}}
	if err := suite.admin.Delete(context.Background(), registry); client.IgnoreNotFound(err) != nil {
		t.Errorf("removing the registry: %v", err)
	}
}

func ofType(id string) edit { return environment(runtimes.TypeVariable, id) }

func (s *session) servicePort() int32 {
	s.t.Helper()
	service := &corev1.Service{}
	s.get(workload.ServiceName(s.name), service)
	return service.Spec.Ports[0].Port
}

// says fails unless the message of condition Ready has these words.
func says(t *testing.T, object *v1alpha1.AgenticSession, words ...string) {
	t.Helper()
	message := condition(object, v1alpha1.ConditionReady).Message
	for _, word := range words {
		if !strings.Contains(message, word) {
			t.Errorf("the message of session %s does not say %q: %s", object.Name, word, message)
		}
	}
}

// TestRunnerTypes: a session runs as its type says; edits of the registry reach sessions that wait
// at once and never those that run.
func TestRunnerTypes(t *testing.T) {
	p := newProject(t, alone(t, nil))
	register(t, plainEntry(runtimes.DefaultID, nil), otherEntry(9000))
	other := p.session("other", "hang", ofType("other-sdk"))
	ordinary := p.session("ordinary", "hang")
	other.reaches(running)
	ordinary.reaches(running)
	asTheTypeSays(t, other)
	if image := ordinary.pod().Spec.Containers[0].Image; image != "registry.example/"+runtimes.DefaultID+":1" {
		t.Errorf("a session that picks no type runs %s", image)
	}

	// Case 27: what runs is left as it is, and healed as it was.
	registerText(t, `[{"id": "other-sdk", "container": {`)
	waits := p.session("waits", "hang", ofType("other-sdk"))
	waitsToo := p.session("waits-too", "hang")
	for _, s := range []*session{waits, waitsToo} {
		says(t, s.tells(pending, v1alpha1.ReasonRegistryInvalid), "not a list in JSON", "line 1", runtimes.RegistryConfigMap, suite.access.namespace)
	}
	p.delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: workload.ServiceName("other")}})
	p.eventually("the Service is made again", func() error {
		return suite.admin.Get(p.ctx, p.key(workload.ServiceName("other")), &corev1.Service{})
	})
	register(t, plainEntry(runtimes.DefaultID, nil), otherEntry(9100))
	waits.reaches(running)
	waitsToo.reaches(running)
	if got := waits.servicePort(); got != 9100 {
		t.Errorf("a session that began after the edit serves at %d", got)
	}
	p.always(time.Second, "the run that began before the edit stays", func() error {
		if port := other.servicePort(); port != 9000 {
			return fmt.Errorf("its Service is at port %d", port)
		}
		return is(running)(other.latest())
	})
	for _, s := range []*session{other, waits, waitsToo} {
		s.ranOnce()
		s.expectHistory(pending, creating, running)
		if jobs := uids(s.jobs()); len(jobs) != 1 {
			t.Errorf("session %s had %d Jobs", s.name, len(jobs))
		}
	}

	// Callers reach the runners of all of them.
	p.eventually("the network policy lets callers to every port", func() error {
		policy := &networkingv1.NetworkPolicy{}
		if err := suite.admin.Get(p.ctx, p.key("runner-allow-backend-only"), policy); err != nil {
			return err
		}
		var ports []int32
		for _, port := range policy.Spec.Ingress[0].Ports {
			ports = append(ports, port.Port.IntVal)
		}
		if !slices.Equal(ports, []int32{8001, 9000, 9100}) {
			return fmt.Errorf("it lets them to %v", ports)
		}
		return nil
	})

	// The next run is of the type as it is then.
	other.stop()
	other.reaches(stopped)
	other.start()
	other.reachesInRun(2, running)
	if got := other.servicePort(); got != 9100 {
		t.Errorf("the run after the edit serves at %d", got)
	}
}

func asTheTypeSays(t *testing.T, s *session) {
	t.Helper()
	pod := s.pod()
	runner := pod.Spec.Containers[0]
	told := map[string]string{}
	for _, v := range runner.Env {
		told[v.Name] = v.Value
	}
	mounts := map[string]string{}
	for _, m := range runner.VolumeMounts {
		mounts[m.MountPath] = m.SubPath
	}
	claim := &corev1.PersistentVolumeClaim{}
	s.get(workload.WorkspaceName(s.name), claim)
	for what, is := range map[string]bool{
		"image":     runner.Image == "registry.example/other:2",
		"port":      runner.Ports[0].ContainerPort == 9000 && runner.Ports[0].Name == "agui" && s.servicePort() == 9000,
		"AGUI_PORT": told["AGUI_PORT"] == "9000",
		"GREETING":  told["GREETING"] == "hello", "SESSION_ID": told["SESSION_ID"] == s.name,
		"resources": runner.Resources.Requests.Cpu().String() == "10m" && runner.Resources.Limits.Memory().String() == "32Mi",
		"stateDir":  mounts["/app/.other"] == ".other",
		"grace":     *pod.Spec.TerminationGracePeriodSeconds == 7,
		"size":      claim.Spec.Resources.Requests.Storage().String() == "1Gi",
	} {
		if !is {
			t.Errorf("the %s is not as the type says: %+v, Service at %d, mounts %v, claim %v", what, runner, s.servicePort(), mounts, claim.Spec.Resources)
		}
	}
}

// TestRunnerTypesThatCannotBeHad: an unknown type fails the session with the types that there are;
// one broken entry holds up only its own sessions; without a registry there is the built-in type.
func TestRunnerTypesThatCannotBeHad(t *testing.T) {
	p := newProject(t, alone(t, nil))
	builtIn := p.session("built-in", "hang")
	builtIn.reaches(running)
	says(t, p.session("too-early", "hang", ofType("good")).tells(failure, v1alpha1.ReasonInvalidSpec), `"good" is not known`, runtimes.DefaultID)

	broken := plainEntry("broken", entry{"sandbox": entry{"workspaceSize": "big", "persistence": "disk"}})
	register(t, plainEntry("good", nil), broken)
	bad := p.session("bad", "hang", ofType("broken"))
	good := p.session("good", "hang", ofType("good"))
	good.reaches(running)
	says(t, bad.tells(pending, v1alpha1.ReasonRegistryInvalid), `entry 2 ("broken")`, "sandbox.workspaceSize", "sandbox.persistence: \"disk\"", "set it to none, pvc or s3")
	unknown := p.session("unknown", "hang", ofType("unheard-of"))
	says(t, unknown.tells(failure, v1alpha1.ReasonInvalidSpec), `"unheard-of" is not known`, "to one of good")
	// A registry that does not list the type of sessions that pick none has no silent default, and it is
	// not for the session to mend that. So it is with one that lists nothing.
	unnamed := p.session("default", "hang")
	says(t, unnamed.tells(pending, v1alpha1.ReasonRegistryInvalid), runtimes.DefaultID, "pick one of good")
	registerText(t, "[]")
	early := p.session("early", "hang", ofType("good"))
	says(t, early.tells(pending, v1alpha1.ReasonRegistryInvalid), "lists no runner type", "add one")
	unknown.expectHistory(pending, failure)
	if pods := unknown.pods(); len(pods) > 0 {
		t.Errorf("a session of an unknown type had %d pods", len(pods))
	}
	p.settles(time.Second)

	register(t, plainEntry("good", nil), plainEntry("broken", nil), plainEntry("unheard-of", nil), plainEntry(runtimes.DefaultID, nil))
	for _, s := range []*session{bad, early, unnamed} {
		s.reaches(running)
	}
	unknown.start()
	unknown.reachesInRun(1, running)

	unregister(t)
	p.session("after", "hang").reaches(running)
	for _, s := range []*session{builtIn, good, bad, unknown} {
		if err := is(running)(s.latest()); err != nil {
			t.Errorf("session %s, which ran: %v", s.name, err)
		}
		s.ranOnce()
	}
}

// TestRunnerTypesAndKeys: the keys that a type asks for must be in the project's Secret before its
// sessions begin; which are lacking is told.
func TestRunnerTypesAndKeys(t *testing.T) {
	p := newProject(t, alone(t, nil))
	keys := []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}
	register(t,
		plainEntry("either", entry{"auth": entry{"requiredSecretKeys": keys, "secretKeyLogic": "any"}}),
		plainEntry("both", entry{"auth": entry{"requiredSecretKeys": keys, "secretKeyLogic": "all"}}),
		plainEntry("had", entry{"auth": entry{"requiredSecretKeys": []string{"ANTHROPIC_API_KEY"}}}))
	either, both := p.session("either", "hang", ofType("either")), p.session("both", "hang", ofType("both"))
	p.session("had", "hang", ofType("had")).reaches(running)
	says(t, either.tells(pending, v1alpha1.ReasonPrerequisiteMissing), "one of the keys GEMINI_API_KEY, GOOGLE_API_KEY", workload.DefaultRunnerSecret, "runner type either")
	says(t, both.tells(pending, v1alpha1.ReasonPrerequisiteMissing), "the keys GEMINI_API_KEY, GOOGLE_API_KEY")

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: workload.DefaultRunnerSecret}}
	p.patch(secret, `{"stringData":{"GOOGLE_API_KEY":"not-a-key"}}`)
	either.reaches(running)
	both.until("lacks one key", func(s *v1alpha1.AgenticSession) error {
		if message := condition(s, v1alpha1.ConditionReady).Message; !strings.Contains(message, "the key GEMINI_API_KEY,") {
			return fmt.Errorf("it says %s", message)
		}
		return is(pending)(s)
	})
	// The Secret of integrations is handed to runners as well.
	p.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: workload.IntegrationsSecret}, StringData: map[string]string{"GEMINI_API_KEY": "not-a-key"}})
	both.reaches(running)
	if !slices.Equal(both.history(), []v1alpha1.Phase{pending, creating, running}) {
		t.Errorf("it went through %v", both.history())
	}
}
