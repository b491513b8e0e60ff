package serving

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

var log = ctrl.Log.WithName("serving")

// takeGiven notes what there is of the given Secret, nil for nothing. One with bad contents leaves
// the last good one in use.
func (c *Certificates) takeGiven(secret *corev1.Secret) {
	now := c.options.Clock.Now()
	c.mu.Lock()
	before, _ := c.choose(now)
	c.seen = secret
	var wrong *problem
	if secret == nil {
		c.given = nil
	} else {
		var p *pair
		if p, wrong = judge(secret, c.ServerName(), now); wrong == nil {
			c.given = p
		}
	}
	c.lookAgain(now, wrong)
	after, _ := c.choose(now)
	c.mu.Unlock()
	c.tell(c.options.GivenSecret, secret, wrong)
	c.changes(before, after, c.options.GivenSecret)
}

// takeOwn notes what there is of the operator's own Secret. While it is missing or bad, the leader
// is about to make it anew, and the last one remains in use.
func (c *Certificates) takeOwn(secret *corev1.Secret) {
	if secret == nil {
		return
	}
	now := c.options.Clock.Now()
	p, wrong := judge(secret, c.ServerName(), now)
	c.mu.Lock()
	before, _ := c.choose(now)
	if wrong == nil {
		c.own = p
	}
	after, _ := c.choose(now)
	c.mu.Unlock()
	c.tell(OwnSecret, secret, wrong)
	c.changes(before, after, OwnSecret)
}

// lookAgain judges the given Secret anew at the moment when the clock changes the answer. The
// caller holds the lock.
func (c *Certificates) lookAgain(now time.Time, wrong *problem) {
	if c.again != nil {
		c.again.Stop()
		c.again = nil
	}
	var at time.Time
	switch {
	case wrong != nil && !wrong.until.IsZero():
		at = wrong.until
	case c.given != nil && now.Before(c.given.leaf.NotAfter):
		at = c.given.leaf.NotAfter
	default:
		return
	}
	secret := c.seen
	// On its own, whatever the clock holds while it calls.
	c.again = c.options.Clock.AfterFunc(at.Sub(now), func() { go c.reconsider(secret) })
}

// reconsider judges the given Secret again, unless it has changed meanwhile.
func (c *Certificates) reconsider(secret *corev1.Secret) {
	c.mu.RLock()
	newest := c.seen == secret
	c.mu.RUnlock()
	if newest {
		c.takeGiven(secret)
	}
}

// complaint is what was told of a Secret; empty for nothing.
type complaint struct{ says, remedy string }

// Problem says which Secret cannot be used, why and what to do; empty where nothing is wrong.
func (c *Certificates) Problem() string {
	if c == nil {
		return ""
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, name := range []string{c.options.GivenSecret, OwnSecret} {
		if told := c.told[name]; told.says != "" {
			return fmt.Sprintf("Secret %s/%s cannot be used for metrics, as %s; %s", c.options.Namespace, name, told.says, told.remedy)
		}
	}
	return ""
}

// tell logs what is wrong with a Secret, and puts an Event on it: once, until something else is.
func (c *Certificates) tell(name string, secret *corev1.Secret, wrong *problem) {
	says, remedy := "", "put a certificate for "+c.ServerName()+" and its key there as tls.crt and tls.key, or delete the Secret"
	if wrong != nil {
		says = wrong.says
		if wrong.remedy != "" {
			remedy = wrong.remedy
		}
	}
	c.mu.Lock()
	told := c.told[name].says
	c.told[name] = complaint{says, remedy}
	recorder := c.events
	c.mu.Unlock()
	if says == "" || says == told {
		return
	}
	log.Info("The metrics endpoint cannot use a Secret and goes on with the certificate it has", "secret", name, "problem", says, "remedy", remedy)
	if recorder != nil {
		recorder.Eventf(secret, nil, corev1.EventTypeWarning, wrong.reason, "Serve",
			"The operator's metrics endpoint cannot use this Secret: %s; %s.", says, remedy)
	}
}

func (c *Certificates) changes(before, after Source, name string) {
	if before != after {
		log.Info("The metrics endpoint serves with another certificate", "source", after, "before", before)
	}
	c.notify(name)
}
