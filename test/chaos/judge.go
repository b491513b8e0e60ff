package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/record"
)

type history = []record.Moment[*v1alpha1.AgenticSession]

// fulfilled complains while a session is not where its user wants it.
func (r *round) fulfilled(w *wish) error {
	versions := r.recorder.Versions(w.uid)
	if len(versions) == 0 {
		return errors.New("nothing is known of it")
	}
	latest := versions[len(versions)-1]
	live := alive(r.recorder.PodsOf(w.key))
	switch {
	case w.gone && !latest.Gone:
		return errors.New("it was deleted and is there")
	case w.gone && live > 0:
		return fmt.Errorf("it was deleted and %d pods live", live)
	case w.gone || latest.Gone:
		return nil // one that is lost is another matter
	}
	s := latest.Object
	if asked := s.Annotations[v1alpha1.AnnotationDesiredPhase]; asked != "" {
		return fmt.Errorf("request %s was not carried out; it is %s", asked, s.Status.Phase)
	}
	if allowed := r.allowed(w); !slices.Contains(allowed, s.Status.Phase) {
		return fmt.Errorf("it is %s, and should be in %v", s.Status.Phase, allowed)
	}
	if want := map[v1alpha1.Phase]int{v1alpha1.PhaseRunning: 1}[s.Status.Phase]; live != want {
		return fmt.Errorf("it is %s with %d live pods", s.Status.Phase, live)
	}
	return nil
}

// allowed lists where a session may rest: a request finds a runner at work, or ended already. One that
// is started again gets no prompt and so runs on.
func (r *round) allowed(w *wish) []v1alpha1.Phase {
	switch {
	case w.last == "" || w.ends == v1alpha1.PhaseRunning && w.last == v1alpha1.DesiredRunning:
		return []v1alpha1.Phase{w.ends}
	case w.last == v1alpha1.DesiredRunning:
		return []v1alpha1.Phase{v1alpha1.PhaseRunning, w.ends}
	case w.ends == v1alpha1.PhaseRunning:
		return []v1alpha1.Phase{v1alpha1.PhaseStopped}
	default:
		return []v1alpha1.Phase{v1alpha1.PhaseStopped, w.ends}
	}
}

// alive counts the pods that neither ended nor are gone.
func alive(pods []record.Moment[*corev1.Pod]) int {
	n := 0
	for _, pod := range record.Remaining(pods) {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			n++
		}
	}
	return n
}

// judge looks at the whole history of all sessions of the round.
func (r *round) judge() {
	r.judgeSteps()
	for key, pods := range r.recorder.Pods() {
		if !strings.HasPrefix(key.Namespace, r.prefix) {
			continue
		}
		if most := record.MostAtOnce(pods); most > 1 {
			r.violation("seed %d: session %s had %d live pods at once\n%s", r.seed, key, most, r.evidence(&wish{key: key}))
			continue
		}
		r.holds("at most one live pod", 1)
		r.judgeRemovals(key, pods)
	}
	for _, w := range r.wishes {
		r.judgeRuns(w)
		r.judgeStart(w)
	}
}

// judgeRemovals checks that no runner was forgotten by the API that may still have been at work, beside
// which another could begin: a pod goes when its node says so, or long after its grace period.
func (r *round) judgeRemovals(key types.NamespacedName, pods []record.Moment[*corev1.Pod]) {
	for _, pod := range pods {
		ends := pod.Object.DeletionTimestamp
		if pod.Gone && ends != nil && pod.Object.Status.Phase == corev1.PodRunning && pod.At.Before(ends.Time) {
			r.violation("seed %d: pod %s of session %s was removed by force %s before its grace period ended\n%s",
				r.seed, pod.Object.Name, key, ends.Sub(pod.At), r.evidence(&wish{key: key}))
			return
		}
	}
	r.holds("no runner removed by force within its grace period", 1)
}

// judgeSteps checks every change of every session, the hostile tenant's as well. Where the recorder
// had to list anew it may have missed some.
func (r *round) judgeSteps() {
	for _, versions := range r.recorder.Sessions() {
		if !strings.HasPrefix(versions[0].Object.Namespace, r.prefix) {
			continue
		}
		for i := 1; i < len(versions); i++ {
			if versions[i].Listed {
				continue
			}
			if wrong := record.Step(versions[i-1].Object, versions[i].Object); wrong != "" {
				s := versions[i].Object
				r.violation("seed %d: session %s/%s: %s\n%s", r.seed, s.Namespace, s.Name, wrong, told(versions))
			}
		}
		r.holds("no phase change outside the table", len(record.Phases(versions)))
	}
}

// judgeRuns checks that a session was not lost and that no work was done twice that nobody asked for.
func (r *round) judgeRuns(w *wish) {
	versions := r.recorder.Versions(w.uid)
	if w.gone || len(versions) == 0 {
		return
	}
	latest := versions[len(versions)-1]
	runs := max(1, latest.Object.Status.Run)
	jobs, pods := record.UIDs(r.recorder.JobsOf(w.key)), record.UIDs(r.recorder.PodsOf(w.key))
	switch {
	case latest.Gone:
		r.violation("seed %d: session %s is gone, and nobody deleted it\n%s", r.seed, w.key, r.evidence(w))
	case int(runs) > 1+w.starts:
		r.violation("seed %d: session %s had %d runs, and was asked to start %d times\n%s", r.seed, w.key, runs, w.starts, r.evidence(w))
	case len(jobs) > int(runs) || len(pods) > int(runs):
		r.violation("seed %d: session %s had %d Jobs and %d pods in %d runs\n%s", r.seed, w.key, len(jobs), len(pods), runs, r.evidence(w))
	default:
		r.holds("none is lost, no run nobody asked for", 1)
	}
}

// judgeStart checks that a session started within the bound, whatever was broken then.
func (r *round) judgeStart(w *wish) {
	for _, v := range r.recorder.Versions(w.uid) {
		switch v.Object.Status.Phase {
		case v1alpha1.PhaseRunning, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed:
			took := v.At.Sub(w.created)
			r.chaos.mu.Lock()
			r.starts = append(r.starts, took)
			r.chaos.mu.Unlock()
			if took > r.bound {
				r.violation("seed %d: session %s started after %s, and should within %s\n%s", r.seed, w.key, took, r.bound, r.evidence(w))
				return
			}
			r.holds("started within the bound", 1)
			return
		case v1alpha1.PhaseStopping, v1alpha1.PhaseStopped:
			return // its user did not want it to start
		}
	}
}

// evidence is what is known of a session.
func (r *round) evidence(w *wish) string {
	var text strings.Builder
	fmt.Fprintf(&text, "  seed %d, session %s, runner %q, starts asked for %d, last request %q at %s\n",
		r.seed, w.key, w.prompt, w.starts, w.last, w.asked.Format(time.StampMilli))
	text.WriteString(told(r.recorder.Versions(w.uid)))
	for _, job := range r.recorder.JobsOf(w.key) {
		fmt.Fprintf(&text, "    %s Job %s active %d gone %t deletion %v\n", job.At.Format(time.StampMilli), job.Object.UID, job.Object.Status.Active, job.Gone, job.Object.DeletionTimestamp)
	}
	for _, pod := range r.recorder.PodsOf(w.key) {
		fmt.Fprintf(&text, "    %s pod %s on %s %s gone %t deletion %v\n", pod.At.Format(time.StampMilli), pod.Object.Name, pod.Object.Spec.NodeName, pod.Object.Status.Phase, pod.Gone, pod.Object.DeletionTimestamp)
	}
	return text.String()
}

// told lists the versions of a session.
func told(versions history) string {
	var text strings.Builder
	for _, v := range versions {
		ready := v1alpha1.Phase("")
		for _, c := range v.Object.Status.Conditions {
			if c.Type == v1alpha1.ConditionReady {
				ready = v1alpha1.Phase(c.Reason)
			}
		}
		fmt.Fprintf(&text, "    %s %s (%s) run %d, asked %q, version %s, gone %t, listed %t\n", v.At.Format(time.StampMilli), v.Object.Status.Phase, ready,
			v.Object.Status.Run, v.Object.Annotations[v1alpha1.AnnotationDesiredPhase], v.Object.ResourceVersion, v.Gone, v.Listed)
	}
	return text.String()
}
