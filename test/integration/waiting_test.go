package integration

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// TestCase14WaitingForAPod: while its pod may not be made, the time of a run does not pass.
func TestCase14WaitingForAPod(t *testing.T) {
	p := share(t)
	q := quota(p, "pods")
	p.create(q)
	s := p.session("waits", "hang", timeout(4))
	s.tells(creating, v1alpha1.ReasonQuotaExceeded)
	p.always(6*time.Second, "it waits", func() error { return s.phaseIs(creating) })
	p.delete(q)
	s.reaches(running)
	object := s.tells(failure, v1alpha1.ReasonTimeout)
	// Both times have whole seconds.
	if ran := object.Status.CompletionTime.Sub(object.Status.StartTime.Time); ran < 3*time.Second {
		t.Errorf("the run was ended after %s", ran)
	}
	s.expectHistory(pending, creating, running, failure)
	s.ranOnce()
}

// TestCase17ReadingTheNamespaceFails: a namespace that could not be read is not taken for one that is
// managed no more or on its way out: the operator asks again.
func TestCase17ReadingTheNamespaceFails(t *testing.T) {
	p := share(t)
	s := p.session("unread", "hang")
	s.reaches(running)
	p.settles(0)
	var refused atomic.Int64
	p.operator.gate.hookInto(t, p.name, func(request *http.Request) *http.Response {
		if request.Method != http.MethodGet || request.URL.Path != "/api/v1/namespaces/"+p.name {
			return nil
		}
		refused.Add(1)
		return refusal(request, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	})
	// What is to be told of a run whose Job is gone depends on whether the namespace is going, too.
	p.delete(s.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))
	s.eventually("nothing of the run is left that could wake the operator", func() error { return noPods(s) })
	time.Sleep(time.Second)
	before := refused.Load()
	s.eventually("the namespace is asked for again", func() error {
		if n := refused.Load(); n < before+2 {
			return fmt.Errorf("%d times, was %d", n, before)
		}
		return nil
	})
	if err := s.phaseIs(running); err != nil {
		t.Errorf("it was decided without an answer: %v", err)
	}
	p.operator.gate.hookInto(t, p.name, nil)
	s.tells(failure, v1alpha1.ReasonRunnerLost)
	s.ranOnce()
}

// TestCase38LabelsOfASession: whatever labels and annotations a user gives to a session, its pod is
// reached by its own Service alone.
func TestCase38LabelsOfASession(t *testing.T) {
	p := share(t)
	victim := p.session("victim", "hang")
	thief := p.session("thief", "hang", func(s *v1alpha1.AgenticSession) {
		s.Labels = map[string]string{v1alpha1.LabelSession: "victim", v1alpha1.LabelApp: v1alpha1.AppRunner, v1alpha1.LabelRun: "1"}
		s.Annotations = map[string]string{
			v1alpha1.AnnotationRunnerServiceAccount: "ambient-session-victim", v1alpha1.AnnotationRunnerTokenSecret: "ambient-runner-token-victim",
			v1alpha1.AnnotationSessionUID: string(victim.uid),
		}
	})
	for _, s := range []*session{victim, thief} {
		s.reaches(running)
	}
	if object := thief.latest(); object.Annotations[v1alpha1.AnnotationRunnerServiceAccount] != "ambient-session-thief" || object.Annotations[v1alpha1.AnnotationRunnerTokenSecret] != "ambient-runner-token-thief" {
		t.Errorf("the session names the identity of another: %v", object.Annotations)
	}
	if account := thief.pod().Spec.ServiceAccountName; account != "ambient-session-thief" {
		t.Errorf("its pod acts as %s", account)
	}
	for _, s := range []*session{victim, thief} {
		service := &corev1.Service{}
		p.get(workload.ServiceName(s.name), service)
		pods := &corev1.PodList{}
		if err := suite.admin.List(p.ctx, pods, client.InNamespace(p.name), client.MatchingLabels(service.Spec.Selector)); err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) != 1 || pods.Items[0].UID != s.pod().UID {
			t.Errorf("the Service of session %s selects %d pods", s.name, len(pods.Items))
		}
		s.eventually("its pod alone is behind its Service", func() error { return s.reachedBy(service) })
	}
}

// reachedBy complains unless the pod of the session is all that is behind a Service.
func (s *session) reachedBy(service *corev1.Service) error {
	slices := &discoveryv1.EndpointSliceList{}
	if err := suite.admin.List(s.ctx, slices, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
		return err
	}
	found := false
	for i := range slices.Items {
		for _, endpoint := range slices.Items[i].Endpoints {
			if endpoint.TargetRef == nil || endpoint.TargetRef.UID != s.pod().UID {
				return fmt.Errorf("%+v is behind it", endpoint.TargetRef)
			}
			found = true
		}
	}
	if !found {
		return errors.New("nothing is behind it")
	}
	return nil
}

// TestCase38IntegrationsAreNotOverridden: what a project's Secret of integrations sets reaches the runner as
// it is there, whatever variables the session has, and the session is told so.
func TestCase38IntegrationsAreNotOverridden(t *testing.T) {
	p := share(t)
	p.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: workload.IntegrationsSecret},
		StringData: map[string]string{"GITHUB_TOKEN": "the project's", "JIRA_URL": "https://jira.example.com"},
	})
	s := p.session("overriding", "hang", func(s *v1alpha1.AgenticSession) {
		s.Spec.EnvironmentVariables = map[string]v1alpha1.EnvironmentValue{"GITHUB_TOKEN": "mine", "GREETING": "hello"}
	})
	s.reaches(running)
	runner := s.pod().Spec.Containers[0]
	set := map[string]string{}
	for _, v := range runner.Env {
		set[v.Name] = v.Value // before those of envFrom
	}
	if value, there := set["GITHUB_TOKEN"]; there || set["GREETING"] != "hello" {
		t.Errorf("the runner has GITHUB_TOKEN=%q (%t) over that of the Secret, and GREETING=%q", value, there, set["GREETING"])
	}
	from := map[string]bool{}
	for _, source := range runner.EnvFrom {
		from[source.SecretRef.Name] = true
	}
	if !from[workload.IntegrationsSecret] {
		t.Errorf("the runner does not get what is in %s: %+v", workload.IntegrationsSecret, runner.EnvFrom)
	}
	p.hasEvents(s.name, v1alpha1.ReasonVariableIgnored, 1)
	free := p.session("not-overriding", "hang", environment("GREETING", "hello"))
	free.reaches(running)
	p.hasEvents(free.name, v1alpha1.ReasonVariableIgnored, 0)
}
