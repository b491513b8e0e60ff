//go:build e2e

package olm

import (
	"context"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseName is the lock of leader election in every version.
const leaseName = "agentic-operator.ambient-code.io"

// reign is what is known of a leader: how long it was one at least.
type reign struct {
	holder   string
	from, to time.Time
}

// succession records who led the operator, one after the other.
type succession struct {
	mutex  sync.Mutex
	reigns []reign
}

// recordLeaders follows the operator's lock until the test ends.
func recordLeaders(t *testing.T) *succession {
	t.Helper()
	s := &succession{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.follow(ctx)
		}
	}()
	return s
}

// follow watches until the API server ends the watch.
func (s *succession) follow(ctx context.Context) {
	events, err := cluster.Client.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(string(team)), client.MatchingFields{metav1.ObjectNameField: leaseName})
	if err != nil {
		time.Sleep(100 * time.Millisecond) // the API server is away
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if lease, ok := event.Object.(*coordinationv1.Lease); ok {
			s.note(lease.Spec)
		}
	}
}

// note takes in one state of the lock: held, held on, or given back, which ends a reign at once.
func (s *succession) note(lock coordinationv1.LeaseSpec) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	holder := ""
	if lock.HolderIdentity != nil {
		holder = *lock.HolderIdentity
	}
	if lock.AcquireTime == nil || lock.RenewTime == nil {
		return
	}
	last := len(s.reigns) - 1
	switch {
	case holder == "" && last >= 0:
		s.reigns[last].to = lock.RenewTime.Time
	case holder == "":
	case last >= 0 && s.reigns[last].holder == holder:
		s.reigns[last].to = lock.RenewTime.Time
	default:
		s.reigns = append(s.reigns, reign{holder: holder, from: lock.AcquireTime.Time, to: lock.RenewTime.Time})
	}
}

// longestGap is the longest time without a leader between two of them.
func (s *succession) longestGap(t *testing.T) time.Duration {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	longest := time.Duration(0)
	for i, r := range s.reigns {
		gap := time.Duration(0)
		if i > 0 {
			gap = r.from.Sub(s.reigns[i-1].to)
		}
		longest = max(longest, gap)
		t.Logf("leader %s, %s after the one before", r.holder, gap.Round(10*time.Millisecond))
	}
	return longest
}

// holder is who leads now.
func (s *succession) holder() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.reigns) == 0 {
		return ""
	}
	return s.reigns[len(s.reigns)-1].holder
}
