package integration

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/serving"
)

// TestCase60WhoMayReadMetrics: over TLS that is verified, with a token, and with the right.
func TestCase60WhoMayReadMetrics(t *testing.T) {
	s := scraping(t)
	s.trustsOwn()
	if _, body, served, err := s.scrape(); err != nil || !strings.Contains(body, "certwatcher_read_certificate_total") || served.NegotiatedProtocol == "h2" {
		t.Errorf("the reader gets %.100q over %q, %v; want metrics over HTTP/1.1", body, served.NegotiatedProtocol, err)
	}
	stranger, err := tokenOf(s.ctx, s.name, suite.access.account)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.reads(); err != nil { // the second time from memory
			t.Error(err)
		}
	}
	for _, who := range []struct {
		name, token string
		status      int
	}{
		{"nobody", "", http.StatusUnauthorized},
		{"a ServiceAccount without the right", stranger, http.StatusForbidden},
		{"somebody with a token that is none", "none", http.StatusUnauthorized},
	} {
		asks := *s
		asks.token = who.token
		if status, body, _, err := asks.scrape(); err != nil || status != who.status {
			t.Errorf("%s gets %d %q, %v; want %d", who.name, status, body, err, who.status)
		}
	}
	answer, err := http.Get("http://" + s.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS the answer is %s, %v", answer.Status, err)
	}
	unknowing := *s
	unknowing.trusted = makeCertificate(t, "elsewhere", time.Hour).data[serving.CAKey]
	if err := unknowing.reads(); err == nil {
		t.Error("a scraper that trusts another CA reads metrics")
	}
}

// TestCase60Certificate: a Secret that others make is used as soon as it is there and each time
// that it changes, while it is of use; the operator's own certificate serves otherwise.
func TestCase60Certificate(t *testing.T) {
	s := scraping(t)
	s.trustsOwn()
	own := s.trusted
	name := "agentic-operator-metrics." + s.name + ".svc"
	first, second := makeCertificate(t, name, 24*time.Hour), makeCertificate(t, name, 24*time.Hour)
	trusted := bytes.Join([][]byte{own, first.data[serving.CAKey], second.data[serving.CAKey]}, nil)
	s.trusted = trusted
	given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: givenSecret}, Type: corev1.SecretTypeTLS, Data: first.data}
	s.create(given)
	s.eventually("a Secret that appears is used", func() error { return s.serves(first.certificate) })
	s.put(given, second.data)
	s.eventually("a Secret that is renewed is used", func() error { return s.serves(second.certificate) })

	noCA, otherCA := maps.Clone(second.data), maps.Clone(second.data)
	noCA[serving.CAKey] = []byte("none")
	otherCA[serving.CAKey] = first.data[serving.CAKey]
	noPair := maps.Clone(second.data)
	noPair[corev1.TLSPrivateKeyKey] = first.data[corev1.TLSPrivateKeyKey]
	for _, bad := range []struct {
		words string
		data  map[string][]byte
	}{
		{"ca.crt has no certificates that can be read", noCA},
		{"ca.crt does not verify its tls.crt", otherCA},
		{"no pair of certificate and key", noPair},
		{"is not for " + name, makeCertificate(t, "elsewhere.svc", time.Hour).data},
		{"expired at", makeCertificate(t, name, -time.Minute).data},
		{"has no tls.key", map[string][]byte{corev1.TLSCertKey: first.data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: nil}},
	} {
		s.put(given, bad.data)
		s.eventually("the Secret's Event says that it "+bad.words, func() error { return s.warned(given, bad.words) })
		if err := s.serves(second.certificate); err != nil {
			t.Errorf("with a Secret that %s: %v; want the last good one to be served", bad.words, err)
		}
	}
	s.put(given, first.data)
	s.eventually("the mended Secret is used", func() error { return s.serves(first.certificate) })
	s.delete(given)
	s.trusted = own
	s.eventually("the operator's own certificate serves again", s.reads)

	soon := makeCertificate(t, name, 10*time.Second)
	s.trusted = slices.Concat(trusted, soon.data[serving.CAKey])
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: givenSecret}, Data: soon.data})
	s.eventually("a certificate that is soon to expire is used", func() error { return s.serves(soon.certificate) })
	s.trusted = own
	s.eventually("the operator's own certificate serves when the given one has expired", s.reads)
	if lines := suite.logs.containing(string(first.data[corev1.TLSPrivateKeyKey][:40])); len(lines) > 0 {
		t.Errorf("a key is in the log: %s", lines[0])
	}
}

// put replaces the contents of a Secret.
func (s *scraper) put(secret *corev1.Secret, data map[string][]byte) {
	s.t.Helper()
	s.get(secret.Name, secret)
	secret.Data = data
	if err := suite.admin.Update(s.ctx, secret); err != nil {
		s.t.Fatal(err)
	}
}

// warned complains unless exactly one Event on an object has these words.
func (s *scraper) warned(object client.Object, words string) error {
	list := &eventsv1.EventList{}
	if err := suite.admin.List(s.ctx, list, client.InNamespace(s.name)); err != nil {
		return err
	}
	var found []eventsv1.Event
	for _, e := range list.Items {
		if e.Regarding.UID == object.GetUID() && strings.Contains(e.Note, words) {
			found = append(found, e)
		}
	}
	if len(found) != 1 || found[0].Series != nil {
		return fmt.Errorf("%d Events say so: %v", len(found), found)
	}
	return nil
}

// TestCase60ReplicasServeTheSame: all replicas serve, with the certificate that the leader made and
// puts back; another leader keeps it.
func TestCase60ReplicasServeTheSame(t *testing.T) {
	s := scraping(t, "--leader-elect")
	s.trustsOwn()
	other := *s
	other.run, other.address = serveSecurely(t, "--leader-elect")
	other.eventually("the replica that does not lead serves with the same CA", other.reads)

	secret := &corev1.Secret{}
	s.get(serving.OwnSecret, secret)
	if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].Name != serving.ServiceName {
		t.Errorf("the owners of the operator's own Secret are %v", owners)
	}
	if writes := other.ownWrites(); len(writes) > 0 {
		t.Errorf("the replica that does not lead wrote: %v", writes)
	}
	s.delete(secret)
	s.eventually("the deleted Secret is made anew", func() error {
		if ca := s.ownCA(); ca == nil || bytes.Equal(ca, s.trusted) {
			return errors.New("there is no new CA")
		}
		return nil
	})
	s.trusted = s.ownCA()
	other.trusted = s.trusted
	s.eventually("the leader serves with the new CA", s.reads)
	other.eventually("the other replica serves with the new CA", other.reads)

	if err := s.run.stop(); err != nil {
		t.Fatal(err)
	}
	s.get(serving.OwnSecret, secret)
	s.put(secret, map[string][]byte{corev1.TLSCertKey: nil, corev1.TLSPrivateKeyKey: nil})
	other.eventually("the next leader mends the Secret", func() error {
		if s.ownCA() == nil {
			return errors.New("there is no CA")
		}
		return nil
	})
	other.trusted = s.ownCA()
	other.eventually("the next leader serves with it", other.reads)
	s.get(serving.OwnSecret, secret)
}

// ownWrites lists what an operator wrote to its own Secret.
func (s *scraper) ownWrites() []call {
	var writes []call
	for _, c := range s.run.gate.written(s.name) {
		if strings.Contains(c.path, "/secrets") {
			writes = append(writes, c)
		}
	}
	return writes
}
