package integration

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// scenario is a part of a session's life in which the operator is struck.
type scenario struct {
	name   string
	prompt string
	edits  []edit
	// ready says that the session is where the scenario begins; nil for one that begins with the
	// session's creation. Writes count from then on.
	ready func(*v1alpha1.AgenticSession) error
	// armedIn has writes count from when this phase was stored, for a scenario that begins by itself.
	armedIn v1alpha1.Phase
	// begin is what the user, the runner or the time does.
	begin func(*session)
	// end is the phase and the run that the session comes to.
	end v1alpha1.Phase
	run int64
	// renewals are the tokens that the operator mints beside the first one of each run.
	renewals int
}

// scenarios are all parts of a session's life in which the operator writes.
func scenarios() []*scenario {
	unlimited := func(s *v1alpha1.AgenticSession) { s.Spec.InactivityTimeout = ptr(int64(0)) }
	held := func(s *v1alpha1.AgenticSession) { s.Finalizers = []string{holdFinalizer} }
	up := is(running)
	return []*scenario{
		{name: "start", prompt: "hang", end: running, run: 1},
		{name: "complete", prompt: "hang", ready: up, begin: func(s *session) { s.does("exit 0") }, end: completed, run: 1},
		{name: "fail", prompt: "hang", ready: up, begin: func(s *session) { s.does("exit 1") }, end: failure, run: 1},
		{name: "timeout", prompt: "hang", edits: []edit{timeout(4)}, armedIn: running, end: failure, run: 1},
		{name: "stop", prompt: "hang", ready: up, begin: (*session).stopsAt, end: stopped, run: 1},
		{name: "restart", prompt: "exit 0", ready: hasEnded, begin: (*session).startsAgain, end: running, run: 2},
		{name: "idle", prompt: "hang", edits: []edit{unlimited}, ready: up, begin: func(s *session) {
			s.patch(s.object(), `{"spec":{"inactivityTimeout":1}}`)
		}, end: stopped, run: 1},
		{name: "delete", prompt: "hang", edits: []edit{held}, ready: up, begin: (*session).remove, end: running, run: 1},
		{name: "renewal", prompt: "hang", ready: up, begin: (*session).agesToken, end: running, run: 1, renewals: 1},
		{name: "edit", prompt: "hang", ready: up, begin: func(s *session) {
			s.patch(s.object(), `{"spec":{"initialPrompt":"exit 3"}}`)
		}, end: running, run: 1},
	}
}

func hasEnded(s *v1alpha1.AgenticSession) error {
	if !s.Status.Phase.Terminal() {
		return fmt.Errorf("it is %s", s.Status.Phase)
	}
	return nil
}

// stopsAt asks for a stop as the platform's backend does, with the time.
func (s *session) stopsAt() {
	s.t.Helper()
	s.patch(s.object(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}}}`, v1alpha1.AnnotationDesiredPhase, v1alpha1.DesiredStopped,
		v1alpha1.AnnotationStopRequestedAt, time.Now().UTC().Format(time.RFC3339)))
}

// startsAgain asks for another run, in which the runner goes on.
func (s *session) startsAgain() {
	s.t.Helper()
	s.patch(s.object(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}},"spec":{"initialPrompt":"hang"}}`, v1alpha1.AnnotationDesiredPhase, v1alpha1.DesiredRunning,
		v1alpha1.AnnotationStartRequestedAt, time.Now().UTC().Format(time.RFC3339)))
}

// agesToken has the token seem to be about to expire.
func (s *session) agesToken() {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.project.name, Name: "ambient-runner-token-" + s.name}}
	s.patch(secret, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}}}`,
		v1alpha1.AnnotationTokenRefreshedAt, time.Now().Add(-10*time.Hour).UTC().Format(time.RFC3339),
		v1alpha1.AnnotationTokenExpiresAt, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
}

// arrived complains until the session has the phase and the run of the scenario's end, as far as its
// own versions tell.
func (v *victim) arrived() error {
	object := v.latest()
	switch {
	case object == nil:
		return errors.New("it is not there")
	case object.Status.Run != v.scenario.run:
		return fmt.Errorf("it is %s in run %d", object.Status.Phase, object.Status.Run)
	default:
		return is(v.scenario.end)(object)
	}
}
