package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/controllers"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/metrics"
)

// aheadClock goes as fast as any clock, but a test sets it forward.
type aheadClock struct{ ahead atomic.Int64 }

func (c *aheadClock) Now() time.Time                  { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *aheadClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c *aheadClock) step(d time.Duration)            { c.ahead.Add(int64(d)) }

// withClock runs the controller of sessions, and none beside, by a clock of the test's.
func withClock(t *testing.T, clock *aheadClock, flags ...string) (*operatorRun, *controllers.AgenticSessionReconciler) {
	t.Helper()
	if shared.run != nil {
		t.Fatal("the shared operator runs already: a test with a clock of its own is not parallel")
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	settings, err := config.Load(append(flags, everyFlag()...), func(name string) string {
		return map[string]string{"NAMESPACE": suite.access.namespace}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := suite.access.config(ctx)
	if err != nil {
		t.Fatal(err)
	}
	run := &operatorRun{gate: &gate{}, registry: prometheus.NewRegistry(), ended: make(chan error, 1), cancel: cancel}
	cluster.Wrap(func(next http.RoundTripper) http.RoundTripper { return run.gate.before(next) })
	cluster.QPS = -1
	readYourWrites := true
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme: suite.scheme, Cache: controllers.CacheOptions(&config.Config{}), Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &readYourWrites}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &controllers.AgenticSessionReconciler{Config: settings, Metrics: metrics.New(run.registry), Events: mgr.GetEventRecorder("agentic-operator"), Clock: clock}
	if err := r.SetupWithManager(ctx, mgr); err != nil {
		t.Fatal(err)
	}
	go func() { run.ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		if err := run.stop(); err != nil {
			t.Error(err)
		}
	})
	return run, r
}

// runnerSecret reads the session's token Secret.
func (s *session) runnerSecret() *corev1.Secret {
	s.t.Helper()
	secret := &corev1.Secret{}
	s.get("ambient-runner-token-"+s.name, secret)
	return secret
}

func momentOf(t *testing.T, secret *corev1.Secret, key string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, secret.Annotations[key])
	if err != nil {
		t.Fatalf("annotation %s of Secret %s: %v", key, secret.Name, err)
	}
	return at
}

// TestCase34TokenOfALongRun: a runner that works for days always has a token with at least a third
// of its life ahead; each pass says when the next renewal is due, and at that moment it is made. The
// secret of the runner's Service stays. After the stop no token of the run is accepted.
func TestCase34TokenOfALongRun(t *testing.T) {
	clock := &aheadClock{}
	run, r := withClock(t, clock)
	p := newProject(t, run)
	s := p.session("long", "hang", timeout(0), func(s *v1alpha1.AgenticSession) { s.Spec.InactivityTimeout = ptr(int64(0)) })
	s.reaches(running)
	began := clock.Now()
	first := s.runnerSecret()
	tokens := []string{string(first.Data["k8s-token"])}
	renewals := 0
	for clock.Since(began) < 4*24*time.Hour {
		// The controller's own passes, which a renewal causes, must not meet those of the test: of two over
		// one session, as never happens otherwise, both may renew what is due.
		p.stopsLooking(time.Second)
		secret := s.runnerSecret()
		refreshed, expires := momentOf(t, secret, v1alpha1.AnnotationTokenRefreshedAt), momentOf(t, secret, v1alpha1.AnnotationTokenExpiresAt)
		life := expires.Sub(refreshed)
		result, err := r.Reconcile(p.ctx, ctrl.Request{NamespacedName: p.key(s.name)})
		if err != nil {
			t.Fatal(err)
		}
		if due := clock.Now().Add(result.RequeueAfter); result.RequeueAfter <= 0 || due.Sub(refreshed) < life/2 || expires.Sub(due) < life/3-time.Minute {
			t.Fatalf("a token from %s to %s is renewed in %s, at %s", refreshed, expires, result.RequeueAfter, due)
		}
		clock.step(result.RequeueAfter - time.Minute)
		if _, err := r.Reconcile(p.ctx, ctrl.Request{NamespacedName: p.key(s.name)}); err != nil {
			t.Fatal(err)
		}
		if now := s.runnerSecret(); now.ResourceVersion != secret.ResourceVersion {
			t.Fatal("the token was renewed before it was due")
		}
		clock.step(time.Minute)
		if _, err := r.Reconcile(p.ctx, ctrl.Request{NamespacedName: p.key(s.name)}); err != nil {
			t.Fatal(err)
		}
		now := s.runnerSecret()
		if string(now.Data["k8s-token"]) == string(secret.Data["k8s-token"]) || string(now.Data["agui-token"]) != string(first.Data["agui-token"]) {
			t.Fatal("the token must change and the secret of the runner's Service must not")
		}
		if at := momentOf(t, now, v1alpha1.AnnotationTokenRefreshedAt); clock.Since(at) > time.Minute {
			t.Errorf("a token that was renewed just now says it was at %s", at)
		}
		s.authenticates(string(now.Data["k8s-token"]))
		tokens = append(tokens, string(now.Data["k8s-token"]))
		renewals++
	}
	if renewals < 5 || renewals > 8 {
		t.Errorf("the token was renewed %d times in four days, want one in 16 hours", renewals)
	}
	s.ranOnce()
	p.quiet()
	s.stop()
	s.reaches(stopped)
	for i, token := range tokens {
		s.eventually(fmt.Sprintf("token %d is no longer accepted", i), func() error { return s.accepted(token, false) })
	}
}

// quiet checks that the operator rests.
func (p *project) quiet() {
	p.t.Helper()
	before := len(p.operator.gate.written(p.name))
	time.Sleep(2 * time.Second)
	if more := len(p.operator.gate.written(p.name)) - before; more > 1 {
		p.t.Errorf("the operator wrote %d times in 2 s although there was nothing to do", more)
	}
}

// TestCase34RenewalFails: while the API refuses tokens, a condition and a counter tell, the run goes
// on, and the operator asks again, more and more seldom.
func TestCase34RenewalFails(t *testing.T) {
	clock := &aheadClock{}
	run, r := withClock(t, clock)
	p := newProject(t, run)
	// The controller of namespaces, which does it otherwise, does not run.
	r.Metrics.Admit(p.name)
	s := p.session("refused", "hang", timeout(0), func(s *v1alpha1.AgenticSession) { s.Spec.InactivityTimeout = ptr(int64(0)) })
	s.reaches(running)
	old := s.runnerSecret()
	p.counts("ambient_session_errors_total", 0, map[string]string{"error_type": "token"})

	var attempts atomic.Int64
	run.gate.hookInto(t, p.name, func(request *http.Request) *http.Response {
		if !strings.HasSuffix(request.URL.Path, "/token") {
			return nil
		}
		attempts.Add(1)
		return refusal(request, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	})
	clock.step(17 * time.Hour)
	s.annotate("team/x", "wake")
	s.until("says that its token is not renewed", func(object *v1alpha1.AgenticSession) error {
		c := condition(object, v1alpha1.ConditionSecretsReady)
		if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonTokenNotRenewed || !strings.Contains(c.Message, "refused by the test") {
			return fmt.Errorf("%s is %s for %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
		return is(running)(object)
	})
	s.eventually("it was tried again", func() error {
		if n := attempts.Load(); n < 4 {
			return fmt.Errorf("%d attempts", n)
		}
		return nil
	})
	// 200 ms, then twice as long each time: the fourth retry comes after 3 s, the sixth after 12.6 s.
	before := attempts.Load()
	time.Sleep(5 * time.Second)
	if more := attempts.Load() - before; more > 4 {
		t.Errorf("the operator asked %d times in 5 s after %d attempts", more, before)
	}
	told, err := run.total("ambient_session_errors_total", map[string]string{"namespace": p.name, "error_type": "token", "phase": string(running)})
	if err != nil || told < 4 {
		t.Errorf("%v errors were counted (%v), want one for each attempt", told, err)
	}
	if now := s.runnerSecret(); string(now.Data["k8s-token"]) != string(old.Data["k8s-token"]) {
		t.Error("the Secret changed although no token was granted")
	}

	run.gate.hookInto(t, p.name, nil)
	s.eventually("the token is renewed", func() error {
		if s.runnerSecret().ResourceVersion == old.ResourceVersion {
			return errors.New("it is not")
		}
		return nil
	})
	s.until("is in order again", func(object *v1alpha1.AgenticSession) error {
		if c := condition(object, v1alpha1.ConditionSecretsReady); c.Status != metav1.ConditionTrue {
			return fmt.Errorf("%s is %s for %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
		return nil
	})
	s.authenticates(s.token())
	s.ranOnce()
}
