package integration

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// leader is who holds the lock of leader election.
func leader(p *project) string {
	leases := &coordinationv1.LeaseList{}
	if err := suite.admin.List(p.ctx, leases, client.InNamespace(suite.access.namespace)); err != nil {
		return ""
	}
	for i := range leases.Items {
		if holder := leases.Items[i].Spec.HolderIdentity; holder != nil && *holder != "" {
			return *holder
		}
	}
	return ""
}

// TestCase47PausedLeader: the leader stands still in the middle of its work for longer than its lock
// lasts, as on a machine that is suspended, and then goes on with what it believed. Meanwhile another
// has taken over. Nothing is done twice, and the old one ends.
func TestCase47PausedLeader(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("takes minutes; SOAK=1 runs it")
	}
	trouble(t)
	p := newProject(t, nil)
	first := runProcess(t, "first", "--leader-elect")
	p.eventually("the first leads", func() error {
		if leader(p) == "" {
			return errors.New("nobody does")
		}
		return nil
	})
	second := runProcess(t, "second", "--leader-elect")
	var sessions []*session
	begin := func(n int) {
		for range n {
			sessions = append(sessions, p.session(fmt.Sprintf("s-%d", len(sessions)), "hang"))
		}
	}
	begin(10)
	for _, s := range sessions[:5] {
		s.reaches(running)
	}
	begin(20)
	sessions[12].until("is on its way", func(s *v1alpha1.AgenticSession) error {
		if s.Status.Phase == "" {
			return errors.New("nobody has looked at it")
		}
		return nil
	})
	was := leader(p)
	for n := 0; first.Pause() != nil; n++ {
		// On a very busy machine it may have lost its lock by itself.
		if n == 3 {
			t.Skip("each leader had ended before it could be paused: this machine is too busy")
		}
		first, second = second, runProcess(t, fmt.Sprintf("another-%d", n), "--leader-elect")
		begin(5)
		was = leader(p)
	}
	resumed := false
	t.Cleanup(func() {
		if !resumed {
			if err := first.Resume(); err != nil {
				t.Error(err)
			}
		}
	})
	sessions[0].stop() // the old leader sees that when it goes on, as much as the new one does now
	sessions[1].does("exit 0")
	p.eventually("the second leads", func() error {
		if now := leader(p); now == was || now == "" {
			return fmt.Errorf("%q does", now)
		}
		return nil
	})
	for _, s := range sessions[2:] {
		s.reaches(running)
	}
	sessions[0].reaches(stopped)
	sessions[0].start()
	sessions[0].reachesInRun(2, running)
	sessions[2].stop()
	begin(5)

	if err := first.Resume(); err != nil {
		t.Fatal(err)
	}
	resumed = true
	p.eventually("the old leader ends", func() error {
		select {
		case <-first.Ended():
			return nil
		default:
			return errors.New("it goes on")
		}
	})
	for _, s := range sessions[3:] {
		s.reaches(running)
		s.expectHistory(pending, creating, running)
		s.ranOnce()
		if jobs := uids(s.jobs()); len(jobs) != 1 {
			t.Errorf("session %s had %d Jobs", s.name, len(jobs))
		}
	}
	sessions[1].reaches(completed)
	sessions[1].ranOnce()
	sessions[2].reaches(stopped)
	sessions[0].requestsConsumed()
	sessions[0].expectHistory(pending, creating, running, stopping, stopped, pending, creating, running)
	differentRuns(t, sessions[0])
	time.Sleep(2 * time.Second) // whatever the old leader may have sent last
	for _, s := range sessions {
		checkEdges(t, s)
		if most := mostAtOnce(s.pods()); most > 1 {
			t.Errorf("session %s had %d pods alive at once", s.name, most)
		}
	}
}
