package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// TestCase18Idle: an idle session is stopped after the time that the session, else its project,
// else the operator says; 0 is off, and activity puts the end off.
func TestCase18Idle(t *testing.T) {
	p := share(t)
	p.settings("are there", exist)
	p.patch(p.settingsObject(), `{"spec":{"inactivityTimeoutSeconds":0}}`)
	idle := func(seconds int64) edit {
		return func(s *v1alpha1.AgenticSession) { s.Spec.InactivityTimeout = &seconds }
	}
	own := p.session("own", "hang", timeout(0), idle(3))
	off := p.session("off", "hang", timeout(0), idle(0))
	projects := p.session("projects", "hang", timeout(0))
	for _, s := range []*session{off, projects} {
		s.reaches(running)
	}
	object := own.tells(stopped, v1alpha1.ReasonInactivityTimeout)
	if object.Status.StoppedReason != v1alpha1.StoppedByInactivity {
		t.Errorf("stoppedReason is %q", object.Status.StoppedReason)
	}
	if ran := object.Status.CompletionTime.Sub(object.Status.StartTime.Time); ran < 3*time.Second {
		t.Errorf("stopped after %s", ran)
	}
	own.expectHistory(pending, creating, running, stopping, stopped)

	p.patch(p.settingsObject(), `{"spec":{"inactivityTimeoutSeconds":2}}`)
	projects.tells(stopped, v1alpha1.ReasonInactivityTimeout)

	active := p.session("active", "hang", timeout(0), idle(10))
	active.reaches(running)
	for range 6 {
		status := fmt.Sprintf(`{"status":{"lastActivityTime":%q}}`, time.Now().UTC().Format(time.RFC3339))
		if err := suite.admin.Status().Patch(p.ctx, active.object(), client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2500 * time.Millisecond)
	}
	active.tells(stopped, v1alpha1.ReasonInactivityTimeout)
	for _, v := range suite.recorder.Versions(active.uid) {
		if v.Object.Status.Phase != stopping {
			continue
		}
		// The time of the activity has whole seconds.
		if idle := v.At.Sub(v.Object.Status.LastActivityTime.Time); idle < 10*time.Second {
			t.Errorf("stopped %s after the last activity", idle)
		}
		break
	}
	if err := off.phaseIs(running); err != nil {
		t.Error(errors.Join(errors.New("a session without a limit was stopped"), err))
	}
}

// TestCase18TheOperatorsDefault: where neither the session nor its project says after how long an idle
// session stops, the operator does: in the settings that it makes for a project, and where there are none.
func TestCase18TheOperatorsDefault(t *testing.T) {
	const idle = 4 * time.Second
	p := newProject(t, alone(t, map[string]string{"DEFAULT_INACTIVITY_TIMEOUT": "4"}))
	made := p.settings("are there", exist).Spec.InactivityTimeoutSeconds
	if made == nil || *made != int64(idle/time.Second) {
		t.Errorf("the settings made for a project say %v", made)
	}
	s := p.session("idle", "hang", timeout(0))
	s.tells(stopped, v1alpha1.ReasonInactivityTimeout)
	s.stoppedAfter(idle)

	p.patch(p.settingsObject(), `{"spec":{"inactivityTimeoutSeconds":0}}`)
	busy, bare := p.session("busy", "hang", timeout(0), func(s *v1alpha1.AgenticSession) { s.Spec.InactivityTimeout = ptr(int64(0)) }), p.session("bare", "hang", timeout(0))
	for _, s := range []*session{busy, bare} {
		s.reaches(running)
	}
	p.always(idle+2*time.Second, "nothing is stopped", func() error { return errors.Join(busy.phaseIs(running), bare.phaseIs(running)) })
	p.label(v1alpha1.LabelManaged, "") // so that nobody makes them again
	p.settles(0)
	p.delete(p.settingsObject())
	object := bare.tells(stopped, v1alpha1.ReasonInactivityTimeout)
	if object.Status.StoppedReason != v1alpha1.StoppedByInactivity {
		t.Errorf("stoppedReason is %q", object.Status.StoppedReason)
	}
	if err := busy.phaseIs(running); err != nil {
		t.Error(errors.Join(errors.New("a session that has switched it off was stopped"), err))
	}
}

// stoppedAfter checks how long after its start an idle session was stopped: not before its time, and not
// much later.
func (s *session) stoppedAfter(idle time.Duration) {
	s.t.Helper()
	for _, v := range suite.recorder.Versions(s.uid) {
		if v.Object.Status.Phase != stopping {
			continue
		}
		if after := v.At.Sub(v.Object.Status.StartTime.Time); after < idle || after > idle+10*time.Second {
			s.t.Errorf("session %s was stopped %s after its start, want %s", s.name, after, idle)
		}
		return
	}
	s.t.Errorf("session %s was never seen to stop", s.name)
}
