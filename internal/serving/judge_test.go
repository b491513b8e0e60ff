package serving

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestCase60AuthorityIsJudged: what is given to verify a certificate does verify it, or the Secret is
// refused; the one that served before goes on, with what verifies it.
func TestCase60AuthorityIsJudged(t *testing.T) {
	c := New(Options{Namespace: "ambient", GivenSecret: "given", Clock: clocktesting.NewFakeClock(start)})
	own, good, other := signed(t, OwnSecret, start), signed(t, "given", start), signed(t, "given", start)
	c.takeOwn(own)
	if c.Problem() != "" || c.Authority() != nil {
		t.Errorf("the own certificate has a problem %q and an authority %q", c.Problem(), c.Authority())
	}
	c.takeGiven(good)
	serves := func(when string) {
		t.Helper()
		_, p := c.inUse()
		if !bytes.Equal(p.certificate.Certificate[0], pairOf(t, good).certificate.Certificate[0]) {
			t.Errorf("%s: another certificate is served", when)
		}
		authority := string(c.Authority())
		for _, part := range []*corev1.Secret{good, own} {
			if !strings.Contains(authority, strings.TrimSpace(string(part.Data[CAKey]))) {
				t.Errorf("%s: the authority lacks that of %s", when, part.Name)
			}
		}
		if err := verifies(t, good.Data, c.Authority(), c.ServerName(), start); err != nil {
			t.Errorf("%s: what is served is not verified: %v", when, err)
		}
		if err := verifies(t, own.Data, c.Authority(), c.ServerName(), start); err != nil {
			t.Errorf("%s: what another replica may serve is not verified: %v", when, err)
		}
	}
	serves("with a good one")
	for name, spoilt := range map[string]string{
		"ca.crt has no certificates that can be read": "garbage",
		"certificates that can be read":               " \n",
		"does not verify its tls.crt":                 string(other.Data[CAKey]),
		"that can be read (":                          "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		bad := signed(t, "given", start)
		bad.Data[CAKey] = []byte(spoilt)
		c.takeGiven(bad)
		serves(name)
		told := c.Problem()
		if !strings.HasPrefix(told, "Secret ambient/given cannot be used for metrics, as its ca.crt ") || !strings.Contains(told, name) ||
			!strings.HasSuffix(told, "; put the certificates of the authority that signed tls.crt there as ca.crt, or take ca.crt out of the Secret") {
			t.Errorf("%s: told is %q", name, told)
		}
	}
	several := signed(t, "given", start)
	several.Data[CAKey] = bytes.Join([][]byte{other.Data[CAKey], several.Data[CAKey]}, nil)
	c.takeGiven(several)
	if told := c.Problem(); told != "" || c.Source() != Given {
		t.Errorf("with several authorities told is %q", told)
	}
	service := signed(t, "given", start)
	service.Annotations = map[string]string{byServiceCA: ServiceName}
	service.Data[CAKey] = []byte("not looked at: scrapers have a ConfigMap for it")
	c.takeGiven(service)
	if c.Source() != ServiceCA || c.Authority() != nil {
		t.Errorf("OpenShift's certificate is %q: %s", c.Source(), c.Problem())
	}
}

func pairOf(t *testing.T, secret *corev1.Secret) *pair {
	t.Helper()
	p, wrong := judge(secret, names[0], start)
	if wrong != nil {
		t.Fatal(wrong)
	}
	return p
}
