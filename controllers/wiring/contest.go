package wiring

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

const (
	// patienceWithOthers is how often an object is put back at once. Who changes it more often is a
	// program that would go on for ever.
	patienceWithOthers = 6
	// contestOver is how long an object has to stay as it is until that is forgotten.
	contestOver = 10 * time.Minute
	// slowestPutBack is how long a contested object is left as others have it, at most.
	slowestPutBack = 5 * time.Minute
)

// contest is about an object that others change each time that it was put back. Without a limit both
// sides would write as fast as they can.
type contest struct {
	times int
	last  time.Time
	by    string
}

// wait is how long after the last time an object is put back again.
func (c *contest) wait() time.Duration {
	if c.times < patienceWithOthers {
		return 0
	}
	return min(time.Second<<min(c.times-patienceWithOthers+1, 10), slowestPutBack)
}

// putBack notes that an object was not as it was written, by whomever.
func (r *Reconciler) putBack(place monitoring.Place, was *metav1.PartialObjectMetadata) {
	c := r.contests[place]
	if c == nil {
		c = &contest{}
		r.contests[place] = c
	}
	c.times++
	c.last = r.Clock.Now()
	c.by = lastWriter(was)
}

// mayPutBack says whether an object has to wait until it is put back again.
func (r *Reconciler) mayPutBack(place monitoring.Place, have *metav1.PartialObjectMetadata, wake *earliest) (*monitoring.Condition, bool) {
	c := r.contests[place]
	if c == nil {
		return nil, false
	}
	at := c.last.Add(c.wait())
	if !r.Clock.Now().Before(at) {
		return nil, false
	}
	c.by = lastWriter(have)
	wake.or(at)
	return r.contested(place, wake), true
}

// contested says that an object is changed again and again, until it has stayed as it is for a while.
func (r *Reconciler) contested(place monitoring.Place, wake *earliest) *monitoring.Condition {
	c := r.contests[place]
	if c == nil {
		return nil
	}
	over := c.last.Add(contestOver)
	if !r.Clock.Now().Before(over) {
		delete(r.contests, place)
		return nil
	}
	if c.times < patienceWithOthers {
		return nil
	}
	wake.or(over)
	full := strings.TrimPrefix(place.Namespace+"/"+place.Name, "/")
	return &monitoring.Condition{Part: place.Part, Reason: "Contested", Missing: true, Message: fmt.Sprintf(
		"%s %s is changed or deleted by %s each time that the operator puts it back, which it does ever more seldom now; have that end, or switch the wiring off with MONITORING=off",
		place.Kind.Kind, full, c.by)}
}

// lastWriter names who has written an object last beside the wiring.
func lastWriter(object *metav1.PartialObjectMetadata) string {
	who, when := "somebody", time.Time{}
	if object == nil {
		return who
	}
	for _, entry := range object.ManagedFields {
		if entry.Manager != monitoringField && entry.Subresource == "" && entry.Time != nil && !entry.Time.Time.Before(when) {
			who, when = entry.Manager, entry.Time.Time
		}
	}
	return who
}
