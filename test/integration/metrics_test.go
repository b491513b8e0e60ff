package integration

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/metrics"
)

// TestCase63NumbersOverRestartAndFailover: a known sequence of sessions, with conflicts, refused
// writes, a second replica, a failover, an end while nobody worked and a namespace that is deleted,
// gives exactly these numbers.
func TestCase63NumbersOverRestartAndFailover(t *testing.T) {
	first := alone(t, nil, "--leader-elect")
	p := newProject(t, first)
	p.begun(first)
	(&numbers{}).expect(p, first)
	disturb(p)

	done, broken := p.session("done", "exit 0"), p.session("broken", "exit 1")
	halted, going := p.session("halted", "hang"), p.session("going", "hang")
	wrong := p.session("wrong", "hang", environment("RUNNER_TYPE", "no-such-type"))
	done.reaches(completed)
	broken.reaches(failure)
	wrong.reaches(failure)
	going.reaches(running)
	halted.reaches(running)
	halted.stop()
	halted.reaches(stopped)
	second := alone(t, nil, "--leader-elect")
	done.start()
	done.reachesInRun(2, completed)
	p.settles(0)
	want := count(done, broken, halted, going, wrong)
	want.because = map[string]float64{
		v1alpha1.ReasonRunnerCompleted: 2, v1alpha1.ReasonRunnerFailed: 1, v1alpha1.ReasonStoppedByUser: 1, v1alpha1.ReasonInvalidSpec: 1,
	}
	want.tokens, want.pods = 5, 5
	want.ran = want.tokens - 1 // one goes on
	want.expect(p, first)
	if next := value(t, first, metrics.TokenNextExpiry); next < float64(time.Now().Unix()) {
		t.Errorf("the next token expires at %v", next)
	}
	present(p, first, map[v1alpha1.Phase]float64{completed: 1, failure: 2, stopped: 1, running: 1})
	if n := p.series(second, ""); n > 0 || value(t, second, metrics.Leader) != 0 {
		t.Errorf("the replica that does not lead has %d series of the project, leads: %v", n, value(t, second, metrics.Leader))
	}

	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	p.operator = second
	p.begun(second)
	p.settles(2 * time.Second)
	(&numbers{}).expect(p, second)
	present(p, second, map[v1alpha1.Phase]float64{completed: 1, failure: 2, stopped: 1, running: 1})
	if n := p.series(first, metrics.Sessions); n > 0 || value(t, first, metrics.Leader) != 0 {
		t.Errorf("the replica that has ended still tells of %d numbers of sessions, leads: %v", n, value(t, first, metrics.Leader))
	}
	late := p.session("late", "sleep 1s\nexit 0")
	late.reaches(completed)
	p.settles(0)
	want = count(late)
	want.because = map[string]float64{v1alpha1.ReasonRunnerCompleted: 1}
	want.tokens, want.pods, want.ran = 1, 1, 1
	want.expect(p, second)

	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	going.does("exit 0")
	third := afterwards(t, going)
	p.operator = third
	going.project = p
	going.reaches(completed)
	p.settles(0)
	(&numbers{
		ran: 1, ended: map[v1alpha1.Phase]float64{completed: 1}, moved: map[string]float64{"Running>Completed": 1},
		because: map[string]float64{v1alpha1.ReasonRunnerCompleted: 1},
	}).expect(p, third)
	ranUntilItsEnd(t, third, going)
	scrapesCostNoRequests(t, third)
	seriesGo(p, third)
}

// disturb has the operator meet conflicts and refusals now and then when it writes a status.
func disturb(p *project) {
	writes := 0
	touches := make(chan int, 1)
	touches <- 0
	p.operator.gate.hookInto(p.t, p.name, func(request *http.Request) *http.Response {
		name, found := strings.CutSuffix(request.URL.Path, "/status")
		if !found || request.Method != http.MethodPatch || !strings.Contains(name, "/agenticsessions/") {
			return nil
		}
		<-touches
		writes++
		n := writes
		touches <- 0
		switch n % 3 {
		case 0:
			return refusal(request, http.StatusInternalServerError, metav1.StatusReasonInternalError)
		case 1:
			object := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: name[strings.LastIndex(name, "/")+1:]}}
			patch := fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, n)
			if err := suite.admin.Patch(p.ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
				p.t.Errorf("touching session %s: %v", object.Name, err)
			}
		}
		return nil
	})
}

// afterwards starts an operator some time after the runner of a session has ended.
func afterwards(t *testing.T, s *session) *operatorRun {
	t.Helper()
	s.eventually("its runner ended", func() error { return finished(s) })
	time.Sleep(5 * time.Second)
	return alone(t, nil, "--leader-elect")
}

// ranUntilItsEnd checks that a run which ended while no operator worked lasted until its end, not until
// that was noticed.
func ranUntilItsEnd(t *testing.T, o *operatorRun, s *session) {
	t.Helper()
	status := s.latest().Status
	noticed := status.CompletionTime.Sub(status.StartTime.Time).Seconds()
	if got := s.sum(o, metrics.RunDuration); got > noticed-3 || got <= 0 {
		t.Errorf("the run is said to have taken %v s; its end was noticed after %v s", got, noticed)
	}
}

func scrapesCostNoRequests(t *testing.T, o *operatorRun) {
	t.Helper()
	lists := func() int {
		o.gate.mu.Lock()
		defer o.gate.mu.Unlock()
		return len(slices.DeleteFunc(slices.Clone(o.gate.calls), func(c call) bool { return !strings.Contains(c.path, "vteam.ambient-code") }))
	}
	before := lists()
	for range 20 {
		if _, err := o.registry.Gather(); err != nil {
			t.Fatal(err)
		}
	}
	if after := lists(); after != before {
		t.Errorf("20 scrapes made %d requests", after-before)
	}
}

// seriesGo checks that the series of a namespace go when it is no longer managed, come back at 0, and
// go with it.
func seriesGo(p *project, o *operatorRun) {
	p.t.Helper()
	gone := func() error {
		if n := p.series(o, ""); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	}
	p.label(v1alpha1.LabelManaged, "")
	p.eventually("the series go with the label", gone)
	p.label(v1alpha1.LabelManaged, "true")
	p.begun(o)
	(&numbers{}).expect(p, o)
	p.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}})
	p.eventually("the series go with the namespace", gone)
	p.always(2*time.Second, "they stay away", gone)
}

// TestTheMetricsOfTheLibrariesAreServed: what the documentation says of them is so.
func TestTheMetricsOfTheLibrariesAreServed(t *testing.T) {
	operator := alone(t, nil, "--leader-elect")
	p := newProject(t, operator)
	p.session("any", "exit 0").reaches(completed)
	p.eventually("they are served", func() error {
		families, err := crmetrics.Registry.Gather()
		if err != nil {
			return err
		}
		served := map[string]string{}
		for _, family := range families {
			var labels []string
			for _, label := range family.GetMetric()[0].GetLabel() {
				labels = append(labels, label.GetName())
			}
			served[family.GetName()] = strings.ToLower(family.GetType().String()) + strings.Join(labels, ",")
		}
		var wrong []error
		for _, m := range metrics.Libraries {
			if want := m.Type + strings.Join(m.Labels, ","); served[m.Name] != want {
				wrong = append(wrong, fmt.Errorf("%s is served as %q, described as %q", m.Name, served[m.Name], want))
			}
		}
		return errors.Join(wrong...)
	})
}
