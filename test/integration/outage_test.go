package integration

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// outage is a set of sessions to which something happens while the operator is told nothing.
type outage struct {
	*project
	n                                            int
	lost, ends, fails, stops, kept, waits, again *session
	quota                                        *project
}

func (p *project) outage(n int) *outage {
	p.t.Helper()
	name := func(what string) string { return fmt.Sprintf("%s-%d", what, n) }
	o := &outage{project: p, n: n}
	o.lost, o.ends, o.fails = p.session(name("lost"), "hang"), p.session(name("ends"), "hang"), p.session(name("fails"), "hang")
	o.stops, o.kept = p.session(name("stops"), "hang"), p.session(name("kept"), "hang")
	o.again = p.session(name("again"), "exit 1")
	o.quota = emptyProject(p.t, p.operator, map[string]string{v1alpha1.LabelManaged: "true"})
	o.waits = o.quota.session(name("waits"), "hang")
	for _, s := range []*session{o.lost, o.ends, o.fails, o.stops, o.kept} {
		s.reaches(running)
	}
	o.again.reaches(failure)
	o.waits.tells(pending, v1alpha1.ReasonPrerequisiteMissing)
	o.settles(0)
	return o
}

// meanwhile does what the operator is to find out later: things change, come, and go. What has gone
// when everything is listed anew is told by nothing but its absence.
func (o *outage) meanwhile() {
	o.t.Helper()
	o.delete(o.lost.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))
	o.lost.eventually("the Job is gone", func() error { return noJobs(o.lost) })
	o.ends.does("exit 0")
	o.fails.does("oom")
	o.ends.eventually("the Job has ended", func() error { return finished(o.ends) })
	o.fails.eventually("the Job has ended", func() error { return finished(o.fails) })
	o.stops.stop()
	o.again.start()
	o.delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: o.name, Name: "session-" + o.kept.name}})
	o.quota.createRunnerSecret()
}

// found checks that nothing was missed.
func (o *outage) found() {
	o.t.Helper()
	fresh := o.session(fmt.Sprintf("fresh-%d", o.n), "hang")
	o.lost.tells(failure, v1alpha1.ReasonRunnerLost)
	o.ends.tells(completed, v1alpha1.ReasonRunnerCompleted)
	o.fails.tells(failure, v1alpha1.ReasonOOMKilled)
	o.stops.tells(stopped, v1alpha1.ReasonStoppedByUser)
	o.stops.never(failure)
	o.again.reachesInRun(2, failure)
	o.waits.reaches(running)
	o.eventually("the Service is made again", func() error {
		return suite.admin.Get(o.ctx, o.key("session-"+o.kept.name), &corev1.Service{})
	})
	fresh.reaches(running)
	for _, s := range []*session{o.lost, o.ends, o.fails, o.stops, o.kept, o.waits, fresh} {
		s.ranOnce()
	}
	if pods := uids(o.again.pods()); len(pods) != 2 {
		o.t.Errorf("session %s had %d pods, want 2", o.again.name, len(pods))
	}
	if err := is(running)(o.kept.latest()); err != nil {
		o.t.Error(err)
	}
	o.settles(0)
}

// TestCase45WatchesAreCut: connections end, and when they are made again the server may no longer
// know where they were. Nothing is missed, and the server is not asked without a pause.
func TestCase45WatchesAreCut(t *testing.T) {
	p := newProject(t, alone(t, nil))
	lines := &p.operator.gate.lines
	for n, row := range []struct {
		name string
		gone forgotten
	}{
		{"resumed", forgotten{}},
		{"expired by an event", forgotten{answer: goneEvent}},
		{"expired by the answer", forgotten{answer: goneAnswer}},
		// Nothing wakes a session whose objects went meanwhile, but that they are missing.
		{"expired but for sessions", forgotten{answer: goneEvent, but: "vteam.ambient-code"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := p.in(t)
			o := p.outage(n)
			if cut := lines.cut(); cut < 10 {
				t.Errorf("only %d watches were open", cut)
			}
			o.meanwhile()
			before := p.operator.gate.watches()
			time.Sleep(3 * time.Second) // the time in which a hot loop would show
			if more := p.operator.gate.watches() - before; more > 1000 {
				t.Errorf("the operator asked for %d watches in 3 s while the lines were down", more)
			}
			row.gone.until = p.now()
			lines.mend(row.gone)
			o.found()
			// Caches list anew in any case.
			if refused := lines.restore(); row.gone.answer != nil && refused < 5 && legacyWatch() {
				t.Errorf("only %d watches were told that their place is no longer known", refused)
			}
		})
	}
}

// now is the version that the API server has come to.
func (p *project) now() int64 {
	p.t.Helper()
	list := sessionList()
	if err := suite.admin.List(p.ctx, list); err != nil {
		p.t.Fatal(err)
	}
	version, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return version
}

// watches counts the attempts to watch.
func (g *gate) watches() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, c := range g.calls {
		if c.watch {
			n++
		}
	}
	return n
}

// TestCase45APIServerIsRestarted: the API server dies under the operator, and etcd has forgotten all
// versions but the latest when it is back. Nothing is lost and nothing done twice.
func TestCase45APIServerIsRestarted(t *testing.T) {
	trouble(t)
	p := newProject(t, alone(t, nil))
	o := p.outage(0)
	p.operator.gate.lines.cut()
	o.meanwhile()
	var midway []*session
	for i := range 5 {
		midway = append(midway, p.session(fmt.Sprintf("midway-%d", i), "hang"))
	}
	for range 2 {
		if err := suite.cluster.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := suite.cluster.Restart(t.Context(), "kube-apiserver"); err != nil {
			t.Fatal(err)
		}
		p.operator.gate.lines.mend(forgotten{})
	}
	p.eventually("the recorder sees again", func() error { return recorded(p.ctx, midway[0]) })
	o.found()
	for _, s := range midway {
		s.reaches(running)
		s.ranOnce()
		checkEdges(t, s)
	}
}

// recorded complains while the recorder lags behind what the API server says of a session.
func recorded(ctx context.Context, s *session) error {
	object := s.object()
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	if latest := s.latest(); latest == nil || latest.ResourceVersion != object.ResourceVersion {
		return errors.New("it does not")
	}
	return nil
}
