package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestCase33WhatARunnerMayDo asks the API server what the identity of a runner is allowed.
func TestCase33WhatARunnerMayDo(t *testing.T) {
	p := share(t)
	elsewhere := newProject(t, p.operator)
	mine, neighbour, stranger := p.session("mine", "hang"), p.session("neighbour", "hang"), elsewhere.session("stranger", "hang")
	for _, s := range []*session{mine, neighbour, stranger} {
		s.reaches(running)
	}
	const group = "vteam.ambient-code"
	allowed := []authorizationv1.ResourceAttributes{
		{Group: group, Resource: "agenticsessions", Verb: "list"},
		{Group: group, Resource: "agenticsessions", Verb: "watch"},
		{Group: group, Resource: "agenticsessions", Verb: "create"},
		{Group: group, Resource: "agenticsessions", Verb: "get", Name: "neighbour"},
		{Group: group, Resource: "agenticsessions", Verb: "update", Name: "mine"},
		{Group: group, Resource: "agenticsessions", Verb: "patch", Name: "mine"},
		{Resource: "secrets", Verb: "get", Name: "ambient-runner-token-mine"},
	}
	denied := []authorizationv1.ResourceAttributes{
		{Group: group, Resource: "agenticsessions", Verb: "delete", Name: "mine"},
		{Group: group, Resource: "agenticsessions", Verb: "patch", Subresource: "status", Name: "mine"},
		{Group: group, Resource: "projectsettings", Verb: "get", Name: "projectsettings"},
		{Resource: "secrets", Verb: "list"},
		{Resource: "secrets", Verb: "watch"},
		{Resource: "secrets", Verb: "get", Name: "ambient-runner-secrets"},
		{Resource: "secrets", Verb: "get", Name: "ambient-runner-token-neighbour"},
		{Resource: "secrets", Verb: "update", Name: "ambient-runner-token-mine"},
		{Resource: "secrets", Verb: "create"},
		{Resource: "pods", Verb: "get", Name: "x"},
		{Resource: "pods", Subresource: "exec", Verb: "create", Name: "x"},
		{Resource: "serviceaccounts", Subresource: "token", Verb: "create", Name: "ambient-session-neighbour"},
		{Resource: "configmaps", Verb: "get", Name: "x"},
		{Group: "batch", Resource: "jobs", Verb: "create"},
		{Group: "rbac.authorization.k8s.io", Resource: "roles", Verb: "update", Name: "ambient-session-mine-role"},
		{Group: "rbac.authorization.k8s.io", Resource: "rolebindings", Verb: "create"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Verb: "bind", Name: "cluster-admin"},
	}
	others := []authorizationv1.ResourceAttributes{
		{Group: group, Resource: "agenticsessions", Verb: "update", Name: "neighbour"},
		{Group: group, Resource: "agenticsessions", Verb: "patch", Name: "neighbour"},
	}
	for _, a := range allowed {
		mine.mayAll(p.name, true, a)
		mine.mayAll(elsewhere.name, false, a)
	}
	for _, a := range append(denied, others...) {
		mine.mayAll(p.name, false, a)
		mine.mayAll(elsewhere.name, false, a)
	}
	p.settings("are there", exist)
	p.patch(p.settingsObject(), `{"metadata":{"annotations":{"ambient-code.io/runners-manage-sessions":"true"}}}`)
	p.eventually("runners may change other sessions when the project says so", func() error { return mine.may(p.name, true, others[0]) })
	mine.mayAll(p.name, true, others[1])
	for _, a := range denied {
		mine.mayAll(p.name, false, a)
	}
	mine.mayAll(elsewhere.name, false, others[0])
	mine.stop()
	mine.reaches(stopped)
}

// may asks whether the session's runner is allowed something in a namespace, and complains if the
// answer is not the wanted one.
func (s *session) may(namespace string, want bool, attributes authorizationv1.ResourceAttributes) error {
	attributes.Namespace = namespace
	account := "ambient-session-" + s.name
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + s.project.name + ":" + account,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + s.project.name, "system:authenticated"},
		ResourceAttributes: &attributes,
	}}
	if err := suite.admin.Create(s.ctx, review); err != nil {
		return err
	}
	if review.Status.Allowed != want {
		return fmt.Errorf("%s: allowed %t, want %t: %+v %s", account, review.Status.Allowed, want, attributes, review.Status.Reason)
	}
	return nil
}

// mayAll is may for an answer that is there already. The authorizer learns of a new Role a moment
// after it is made.
func (s *session) mayAll(namespace string, want bool, attributes authorizationv1.ResourceAttributes) {
	s.t.Helper()
	if want {
		s.eventually("the right is granted", func() error { return s.may(namespace, want, attributes) })
	} else if err := s.may(namespace, want, attributes); err != nil {
		s.t.Error(err)
	}
}

// TestCase34Token: a token speaks for the session's identity while a run goes on, is replaced when
// it no longer does, and is refused once the run is over.
func TestCase34Token(t *testing.T) {
	p := share(t)
	s := p.session("speaking", "hang")
	s.reaches(running)
	first := s.token()
	s.authenticates(first)

	account := &corev1.ServiceAccount{}
	p.get("ambient-session-speaking", account)
	p.delete(account)
	var second string
	p.eventually("a new token is minted for the new identity", func() error {
		if second = s.token(); second == first {
			return errors.New("it is the old one")
		}
		return s.accepted(second, true)
	})
	p.eventually("the token of the old identity is refused", func() error { return s.accepted(first, false) })

	secret := &corev1.Secret{}
	p.get("ambient-runner-token-speaking", secret)
	agui := string(secret.Data["agui-token"])
	p.patch(secret, `{"stringData":{"k8s-token":"junk"}}`)
	p.eventually("a token that was overwritten is replaced", func() error { return s.accepted(s.token(), true) })
	p.get("ambient-runner-token-speaking", secret)
	if string(secret.Data["agui-token"]) != agui {
		t.Error("the secret of the runner's Service changed while the runner goes on with the old one")
	}

	before := s.token()
	s.stop()
	s.reaches(stopped)
	p.eventually("the token of a stopped session is refused", func() error { return s.accepted(before, false) })
	s.start()
	s.reachesInRun(2, running)
	after := s.token()
	if after == before {
		t.Error("the new run has the old token")
	}
	s.authenticates(after)
	s.remove()
	p.within(2*patience, "the token of a deleted session is refused", func() error { return s.accepted(after, false) })
}

// TestCase34TokenSecretOverwritten: of a token Secret that somebody overwrote the token is minted anew. The
// secret of the runner's Service cannot be: it is told what to do, without errors over and over, until
// the old one is back.
func TestCase34TokenSecretOverwritten(t *testing.T) {
	p := share(t)
	s := p.session("overwritten", "hang")
	s.reaches(running)
	p.settles(0)
	secret := s.runnerSecret()
	agui := string(secret.Data["agui-token"])
	p.patch(secret, `{"stringData":{"k8s-token":"junk","agui-token":"theirs"}}`)
	p.eventually("the token is replaced", func() error { return s.accepted(s.token(), true) })
	object := s.tells(running, v1alpha1.ReasonTokenNotRenewed)
	if message := condition(object, v1alpha1.ConditionSecretsReady).Message; !strings.Contains(message, "agui-token") || !strings.Contains(message, "start it again") {
		t.Errorf("the message does not say what is wrong or what to do: %s", message)
	}
	token := s.token()
	p.stopsWriting(5 * time.Second)
	if now := s.runnerSecret(); string(now.Data["k8s-token"]) != token || string(now.Data["agui-token"]) != "theirs" {
		t.Error("the Secret is written over and over")
	}
	if lines := suite.logs.about(p.name, "Reconciler error"); lines > 0 {
		t.Errorf("%d errors are logged", lines)
	}
	p.hasEvents(s.name, v1alpha1.ReasonTokenNotRenewed, 1)
	p.patch(s.runnerSecret(), fmt.Sprintf(`{"stringData":{"agui-token":%q}}`, agui))
	s.tells(running, v1alpha1.ReasonRunnerStarted)
	s.authenticates(s.token())
	s.ranOnce()
}

// TestCase34ImmutableTokenSecret: somebody made the token Secret immutable. It is made anew when the token
// has to be, and keeps what the runner has read of it.
func TestCase34ImmutableTokenSecret(t *testing.T) {
	p := share(t)
	s := p.session("immutable", "hang")
	s.reaches(running)
	first := s.runnerSecret()
	p.patch(first, `{"immutable":true}`)
	account := &corev1.ServiceAccount{}
	p.get("ambient-session-immutable", account)
	p.delete(account)
	p.eventually("a token is minted for the new identity", func() error {
		if s.token() == string(first.Data["k8s-token"]) {
			return errors.New("it is the old one")
		}
		return s.accepted(s.token(), true)
	})
	s.tells(running, v1alpha1.ReasonRunnerStarted)
	if now := s.runnerSecret(); string(now.Data["agui-token"]) != string(first.Data["agui-token"]) {
		t.Error("the secret of the runner's Service is lost")
	}
	s.ranOnce()
}

// token reads the session's token; empty when there is none.
func (s *session) token() string {
	secret := &corev1.Secret{}
	if suite.admin.Get(s.ctx, s.key("ambient-runner-token-"+s.name), secret) != nil {
		return ""
	}
	return string(secret.Data["k8s-token"])
}

func (s *session) authenticates(token string) {
	s.t.Helper()
	if err := s.accepted(token, true); err != nil {
		s.t.Error(err)
	}
}

// accepted asks the API server whom a token speaks for, and complains if the answer is not the
// wanted one.
func (s *session) accepted(token string, want bool) error {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := suite.admin.Create(s.ctx, review); err != nil {
		return err
	}
	user := "system:serviceaccount:" + s.project.name + ":ambient-session-" + s.name
	if got := review.Status.Authenticated && review.Status.User.Username == user; got != want {
		return fmt.Errorf("accepted %t, want %t: %q %s", got, want, review.Status.User.Username, review.Status.Error)
	}
	return nil
}
