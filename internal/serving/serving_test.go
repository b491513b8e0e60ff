package serving

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// signed is a Secret with a certificate of a CA, made at a time.
func signed(t *testing.T, name string, at time.Time, without ...string) *corev1.Secret {
	t.Helper()
	data, _ := issued(t, nil, at)
	for _, key := range without {
		delete(data, key)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ambient", Name: name}, Data: data}
}

func TestSourceAndTrust(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	c := New(Options{Namespace: "ambient", GivenSecret: "given", Clock: clock})
	expect := func(when string, source Source, trust Trust) {
		t.Helper()
		if c.Source() != source || c.Trust() != trust {
			t.Errorf("%s: %q, %+v; want %q, %+v", when, c.Source(), c.Trust(), source, trust)
		}
	}
	changed := func(when, by string) {
		t.Helper()
		select {
		case e := <-c.Changed():
			if e.Object.GetName() != by {
				t.Errorf("%s: told is a change of %s, want %s", when, e.Object.GetName(), by)
			}
		default:
			t.Errorf("%s: no change is told", when)
		}
	}
	expect("at first", "", Trust{})
	c.takeOwn(signed(t, OwnSecret, start))
	expect("with an own one", Own, Trust{Secret: OwnSecret, Key: CAKey})
	changed("with an own one", OwnSecret)

	c.takeGiven(signed(t, "given", start))
	expect("with a given one", Given, Trust{Secret: "given", Key: CAKey})
	changed("with a given one", "given")
	c.takeGiven(signed(t, "given", start, CAKey))
	expect("with a given one without its CA", Given, Trust{})
	service := signed(t, "given", start)
	service.Annotations = map[string]string{byServiceCA: ServiceName}
	c.takeGiven(service)
	expect("with OpenShift's", ServiceCA, Trust{ConfigMap: "openshift-service-ca.crt", Key: "service-ca.crt"})
	changed("changes that were not received", "given")

	c.takeGiven(signed(t, "given", start, corev1.TLSPrivateKeyKey))
	expect("with a bad one", ServiceCA, Trust{ConfigMap: "openshift-service-ca.crt", Key: "service-ca.crt"})
	c.takeGiven(nil)
	expect("without one", Own, Trust{Secret: OwnSecret, Key: CAKey})
	c.takeOwn(nil)
	expect("while the own one is made anew", Own, Trust{Secret: OwnSecret, Key: CAKey})
}

func TestTheClockChangesTheChoice(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	c := New(Options{Namespace: "ambient", GivenSecret: "given", Clock: clock})
	c.takeOwn(signed(t, OwnSecret, start.Add(leafLife)))
	if c.Source() != "" {
		t.Errorf("the source is %q before the certificate is valid", c.Source())
	}
	c.takeOwn(signed(t, OwnSecret, start.Add(leafLife/2-day)))
	c.takeGiven(signed(t, "given", start.Add(time.Hour+skew)))
	clock.SetTime(start.Add(time.Hour))
	eventually(t, "a certificate that was not yet valid is used when it is", func() bool { return c.Source() == Given })
	clock.SetTime(start.Add(time.Hour + skew + leafLife))
	if c.Source() == Given {
		t.Error("a certificate is used after it has expired")
	}
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !check(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what + ": not within a minute")
		}
	}
}

func TestWithoutTLSThereIsNoSource(t *testing.T) {
	var c *Certificates
	if c.Source() != "" || c.Trust() != (Trust{}) || c.Changed() != nil {
		t.Error("nil certificates have a source")
	}
}
