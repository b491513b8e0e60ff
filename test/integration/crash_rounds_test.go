package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// long is how long the sessions may take together: many times what they take.
const long = 10 * time.Minute

// strikes are the victims of one pair of operators.
type strikes struct {
	c        *crashes
	deaths   *deaths
	projects map[blow]*project
	victims  map[blow][]*victim
	operator *operatorRun
}

// round tries some writes of each scenario with one pair of operators.
func (c *crashes) round() {
	s := &strikes{c: c, deaths: &deaths{victims: map[string]*victim{}}, projects: map[blow]*project{}, victims: map[blow][]*victim{}}
	for _, b := range append([]blow{unharmed, killedBefore, killedAfter}, survived...) {
		s.projects[b] = newProject(c.T, nil)
	}
	first := s.begin()
	if len(c.ends) == 0 {
		c.timed("undisturbed", s.undisturbed)
	}
	c.timed("struck", s.strike)
	if err := first.stop(); err != nil {
		c.Error(err)
	}
	before := s.writes()
	second := s.begin()
	c.timed("after", func() {
		s.rest(s.all())
		s.quiet(2*time.Second, s.all())
	})
	for v, now := range s.writes() {
		if !v.blow.kills() && len(now) > len(before[v]) {
			c.Errorf("%s: the next operator wrote %v although nothing was left to do", v, now[len(before[v]):])
		}
	}
	s.judge(first, second)
	if err := second.stop(); err != nil {
		c.Error(err)
	}
}

func (c *crashes) timed(what string, do func()) {
	began := time.Now()
	do()
	c.took[what] += time.Since(began).Round(100 * time.Millisecond)
}

// begin starts an operator. It has as many workers as there are sessions, since one that is dead for a
// session does not come back from its pass.
func (s *strikes) begin() *operatorRun {
	for _, v := range s.all() {
		v.spare()
	}
	o, err := startOperatorThrough(s.deaths.around, map[string]string{"MAX_CONCURRENT_RECONCILES": "1000"})
	if err != nil {
		s.c.Fatal(err)
	}
	s.c.Cleanup(func() {
		if err := o.stop(); err != nil {
			s.c.Errorf("the operator ended with an error: %v", err)
		}
	})
	s.operator = o
	for _, p := range s.projects {
		p.operator = o
		p.eventually("the project has its objects", p.provided)
		p.begun(o)
	}
	return o
}

func (s *strikes) all() []*victim {
	return slices.Concat(slices.Collect(maps.Values(s.victims))...)
}

func (s *strikes) writes() map[*victim][]string {
	all := map[*victim][]string{}
	for _, v := range s.all() {
		all[v], _, _, _ = v.at()
	}
	return all
}

// choose makes a session at whose n-th write the operator is struck.
func (s *strikes) choose(of *scenario, b blow, n int) *victim {
	p := s.projects[b]
	v := &victim{scenario: of, blow: b, n: n, armed: of.ready == nil && of.armedIn == ""}
	v.session = &session{project: p, name: fmt.Sprintf("dies-%s-%03d", of.name, n)}
	s.deaths.add(v)
	s.victims[b] = append(s.victims[b], v)
	s.c.Cleanup(func() { s.c.letGo(v) })
	return v
}

// create makes the session.
func (v *victim) create() {
	v.session = v.project.session(v.name, v.scenario.prompt, append([]edit{timeout(0)}, v.scenario.edits...)...)
}

// letGo takes the finalizer off that kept a deleted session.
func (c *crashes) letGo(v *victim) {
	if v.latest() == nil || len(v.latest().Finalizers) == 0 {
		return
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := suite.admin.Patch(context.Background(), v.object(), patch); client.IgnoreNotFound(err) != nil {
		c.Errorf("letting session %s go: %v", v.name, err)
	}
}

// undisturbed has a session go through each scenario with nobody disturbing it.
func (s *strikes) undisturbed() {
	for of := range s.c.next {
		s.c.undisturbed[of] = s.choose(of, unharmed, 0)
	}
	all := s.all()
	s.each(all, (*victim).create)
	s.play(all)
	s.wait(all, (*victim).arrived)
	s.quiet(3*time.Second, all)
	looks, err := s.projects[unharmed].looks()
	if err != nil {
		s.c.Fatal(err)
	}
	for of, v := range s.c.undisturbed {
		s.c.ends[of] = looks[v.name]
		writes, _, _, _ := v.at()
		s.c.Logf("%s: %d writes: %s", of.name, len(writes), strings.Join(writes, ", "))
		for n := range len(writes) + 1 {
			s.c.next[of] = append(s.c.next[of], n+1)
		}
	}
}

// strike has sessions go through the scenarios with an operator that is struck at one of its writes.
func (s *strikes) strike() {
	var all []*victim
	for of, writes := range s.c.next {
		for _, n := range writes {
			for _, b := range s.c.blows(n) {
				all = append(all, s.choose(of, b, n))
			}
		}
	}
	s.each(all, (*victim).create)
	s.play(all)
	s.rest(all)
}

// play brings sessions to where their scenarios begin, arms them and has the scenarios begin.
func (s *strikes) play(victims []*victim) {
	var later []*victim
	for _, v := range victims {
		if v.scenario.ready != nil {
			later = append(later, v)
		}
	}
	s.wait(later, func(v *victim) error {
		if v.latest() == nil {
			return errors.New("it is not there")
		}
		return v.scenario.ready(v.latest())
	})
	s.quiet(1500*time.Millisecond, later)
	s.each(later, func(v *victim) {
		v.arm()
		v.scenario.begin(v.session)
	})
}

// each does something about all sessions, some at the same time.
func (s *strikes) each(victims []*victim, do func(*victim)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, v := range victims {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			do(v)
		})
	}
	wait.Wait()
}

// wait waits until there is no complaint about any of the sessions for which the operator lives.
func (s *strikes) wait(victims []*victim, complaint func(*victim) error) {
	s.c.Helper()
	s.projects[unharmed].within(long, "the sessions get on", func() error {
		for _, v := range victims {
			if _, _, dead, _ := v.at(); dead {
				continue
			}
			if err := complaint(v); err != nil {
				return fmt.Errorf("%s: %w", v, err)
			}
		}
		return nil
	})
}

// rest waits until there is of each session what there is of the undisturbed one, or the operator is
// dead for it.
func (s *strikes) rest(victims []*victim) {
	s.c.Helper()
	s.wait(victims, (*victim).arrived)
	s.projects[unharmed].within(long, "all is as without a crash", func() error {
		time.Sleep(time.Second)
		looks := map[blow]ends{}
		for b, p := range s.projects {
			var err error
			if looks[b], err = p.looks(); err != nil {
				return err
			}
		}
		for _, v := range victims {
			if _, _, dead, _ := v.at(); dead || v.blow == unharmed {
				continue
			}
			if err := v.restsAs(looks[v.blow], s.c.ends[v.scenario]); err != nil {
				return err
			}
		}
		return nil
	})
}

// quiet waits until the operator has not written about these sessions for a while.
func (s *strikes) quiet(still time.Duration, victims []*victim) {
	s.c.Helper()
	began := time.Now()
	s.projects[unharmed].within(long, "the operator stops writing", func() error {
		for _, v := range victims {
			_, _, dead, last := v.at()
			if last.Before(began) {
				last = began
			}
			if !dead && time.Since(last) < still {
				return fmt.Errorf("it wrote about %s %s ago", v, time.Since(last))
			}
		}
		return nil
	})
}
