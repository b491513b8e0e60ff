package serving

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	names = New(Options{Namespace: "ambient"}).names
)

func issued(t *testing.T, have map[string][]byte, now time.Time) (map[string][]byte, time.Time) {
	t.Helper()
	want, next, err := issue(have, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return want, next
}

// verifies complains unless a certificate is good for a name with a CA bundle.
func verifies(t *testing.T, data map[string][]byte, bundle []byte, name string, at time.Time) error {
	t.Helper()
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: at})
	return err
}

func same(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

func TestIssueMakesWhatVerifies(t *testing.T) {
	data, next := issued(t, nil, start)
	for _, name := range []string{"agentic-operator-metrics.ambient.svc", "agentic-operator-metrics.ambient.svc.cluster.local"} {
		if err := verifies(t, data, data[CAKey], name, start); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := verifies(t, data, data[CAKey], "kubernetes.default.svc", start); err == nil {
		t.Error("it is good for another name")
	}
	if err := verifies(t, data, data[CAKey], names[0], next.Add(renewal-time.Second)); err != nil {
		t.Errorf("it does not last until %s after its renewal is due: %v", renewal, err)
	}
	if again, when := issued(t, data, next.Add(-time.Second)); !same(again, data) || !when.Equal(next) {
		t.Errorf("it is made anew before it is due, or looked at at %s instead of %s", when, next)
	}
}

func TestIssueRenews(t *testing.T) {
	data, next := issued(t, nil, start)
	renewed, _ := issued(t, data, next)
	if same(renewed, data) || !bytes.Equal(renewed[CAKey], data[CAKey]) {
		t.Error("when due, the certificate must be new and its CA the same")
	}
	if err := verifies(t, renewed, data[CAKey], names[0], next.Add(leafLife-time.Minute)); err != nil {
		t.Error(err)
	}
	for what, spoilt := range map[string]map[string][]byte{
		"no certificate": {CAKey: data[CAKey], caPrivateKey: data[caPrivateKey]},
		"another key":    {CAKey: data[CAKey], caPrivateKey: data[caPrivateKey], corev1.TLSCertKey: data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: data[caPrivateKey]},
	} {
		mended, _ := issued(t, spoilt, start)
		if err := verifies(t, mended, data[CAKey], names[0], start); err != nil {
			t.Errorf("%s: %v; want one of the same CA", what, err)
		}
	}
	other, _ := issued(t, nil, start)
	for what, spoilt := range map[string]map[string][]byte{
		"nothing usable":       {CAKey: []byte("junk"), caPrivateKey: []byte("junk")},
		"the key of other CA":  {CAKey: data[CAKey], caPrivateKey: other[caPrivateKey], corev1.TLSCertKey: data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: data[corev1.TLSPrivateKeyKey]},
		"a leaf in a CA's way": {CAKey: data[corev1.TLSCertKey], caPrivateKey: data[corev1.TLSPrivateKeyKey]},
	} {
		mended, _ := issued(t, spoilt, start)
		if err := verifies(t, mended, mended[CAKey], names[0], start); err != nil || bytes.Equal(mended[CAKey], data[CAKey]) {
			t.Errorf("%s: %v; want a new CA", what, err)
		}
	}
}

func TestIssueFollowsTheNames(t *testing.T) {
	data, _ := issued(t, nil, start)
	elsewhere := New(Options{Namespace: "elsewhere"}).names
	moved, _, err := issue(data, elsewhere, start)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifies(t, moved, moved[CAKey], elsewhere[0], start); err != nil {
		t.Error(err)
	}
}

// TestIssueReplacesTheCA: the next CA stands beside the old one, with which those verify who have
// not yet got the next certificate.
func TestIssueReplacesTheCA(t *testing.T) {
	data := map[string][]byte{}
	var next time.Time
	for now := start; now.Before(start.Add(caLife + leafLife)); now = next {
		before := data
		data, next = issued(t, data, now)
		if err := verifies(t, data, data[CAKey], names[0], next); err != nil {
			t.Fatalf("made %s, does not last until %s: %v", now, next, err)
		}
		if len(before) > 0 {
			if err := verifies(t, before, data[CAKey], names[0], now); err != nil {
				t.Fatalf("at %s what was served before cannot be verified any more: %v", now, err)
			}
		}
		if next.Before(now.Add(leafLife / 2)) {
			t.Fatalf("made %s, has to be renewed at %s already", now, next)
		}
	}
	if trusted, err := cert.ParseCertsPEM(data[CAKey]); err != nil || len(trusted) != 1 {
		t.Errorf("after all that %d CAs are trusted, %v; want 1", len(trusted), err)
	}
}
