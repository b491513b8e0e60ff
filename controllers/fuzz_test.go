package controllers

import (
	"testing"
	"time"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// FuzzTokenAnnotations reads what a token Secret says about its token. Times that make no sense make
// the token due, at once or later, and never a moment that no clock reaches.
func FuzzTokenAnnotations(f *testing.F) {
	f.Add("2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z", "1", "a.b")
	f.Add("", "", "", "")
	f.Add("2026-03-01T13:00:00Z", "2026-03-01T12:00:00Z", "-1", ".")
	f.Add("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9223372036854775808", "....")
	f.Fuzz(func(t *testing.T, refreshed, expires, run, digest string) {
		secret := partial("v1", "Secret")
		secret.Labels = map[string]string{v1alpha1.LabelRun: run}
		secret.Annotations = map[string]string{v1alpha1.AnnotationTokenRefreshedAt: refreshed, v1alpha1.AnnotationTokenExpiresAt: expires, v1alpha1.AnnotationTokenDigest: digest}
		serviceDigest(secret.Annotations)
		w := &session.World{Now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC), Session: &v1alpha1.AgenticSession{}, Token: tokenView(secret)}
		w.Session.Status.Phase = v1alpha1.PhaseRunning
		if at := w.RenewToken(); !at.IsZero() && at.After(w.Token.Expires) && !w.Token.Refreshed.After(w.Token.Expires) {
			t.Errorf("a token of %s that expires at %s is renewed at %s", refreshed, expires, at)
		}
		if w.Wake() < 0 {
			t.Errorf("the pass was due %s ago", -w.Wake())
		}
	})
}

// FuzzRequests reads requests as anybody may write them: only the two words are any, and one that was
// carried out is none any more.
func FuzzRequests(f *testing.F) {
	f.Add("Running", "2026-03-01T12:00:00Z", "Running@2026-03-01T12:00:00Z", "Running")
	f.Add("Stopped", "", "Stopped@", "Creating")
	f.Add("stopped", "@", "@", "")
	f.Fuzz(func(t *testing.T, desired, at, handled, phase string) {
		s := &v1alpha1.AgenticSession{}
		s.Annotations = map[string]string{v1alpha1.AnnotationDesiredPhase: desired, v1alpha1.AnnotationStartRequestedAt: at, v1alpha1.AnnotationStopRequestedAt: at}
		s.Status.HandledRequest, s.Status.Phase = handled, v1alpha1.Phase(phase)
		w := &session.World{Session: s}
		known := desired == v1alpha1.DesiredRunning || desired == v1alpha1.DesiredStopped
		if request := session.Request(s); (request != "") != known {
			t.Errorf("%q is the request %q", desired, request)
		} else if request == handled && (w.Holds(session.StopRequested) || w.Holds(session.StartRequested)) {
			t.Errorf("%q was carried out and is asked for again", request)
		}
		if w.Honoured() && !known {
			t.Errorf("%q is honoured", desired)
		}
	})
}

// FuzzInactivity: whatever the session and the project say, a limit is a time that fits.
func FuzzInactivity(f *testing.F) {
	f.Add(int64(0), int64(0), true, true)
	f.Add(int64(1<<62), int64(-1), false, true)
	f.Fuzz(func(t *testing.T, own, project int64, hasOwn, hasProject bool) {
		r := &AgenticSessionReconciler{Config: &config.Config{DefaultInactivity: time.Hour}}
		s, settings := &v1alpha1.AgenticSession{}, &v1alpha1.ProjectSettings{}
		if hasOwn {
			s.Spec.InactivityTimeout = &own
		}
		if hasProject {
			settings.Spec.InactivityTimeoutSeconds = &project
		}
		limit := r.inactivity(s, settings)
		switch {
		case hasOwn && (limit > 0) != (own > 0), !hasOwn && hasProject && (limit > 0) != (project > 0), !hasOwn && !hasProject && limit != time.Hour:
			t.Errorf("session %t %d, project %t %d: %s", hasOwn, own, hasProject, project, limit)
		}
	})
}
