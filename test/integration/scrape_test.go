package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/serving"
)

const givenSecret = "agentic-operator-metrics-cert"

// scraper reads the metrics of an operator as a Prometheus does: over TLS that it verifies, with a
// token.
type scraper struct {
	*project
	run     *operatorRun
	address string
	token   string
	// trusted verifies the certificate; the scraper trusts nothing else.
	trusted []byte
	// newest is the newest version of TLS that it knows; 0 is that of Go.
	newest uint16
}

// scraping starts an operator that serves metrics securely, and a scraper with the identity that
// config/metrics has for it. Nothing is left of what they made when the test ends.
func scraping(t *testing.T, flags ...string) *scraper {
	t.Helper()
	p := &project{t: t, ctx: t.Context(), name: suite.access.namespace}
	objects, err := listed("metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := place(t.Context(), object, p.name); err != nil {
			t.Fatal(err)
		}
	}
	token, err := tokenOf(t.Context(), p.name, "agentic-operator-metrics-reader")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		made := make([]client.Object, 0, len(objects)+2)
		for _, object := range objects {
			made = append(made, object)
		}
		for _, name := range []string{givenSecret, serving.OwnSecret} {
			made = append(made, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: name}})
		}
		for _, object := range made {
			if err := client.IgnoreNotFound(suite.admin.Delete(context.Background(), object)); err != nil {
				t.Error(err)
			}
		}
	})
	s := &scraper{project: p, token: token}
	s.run, s.address = serveSecurely(t, flags...)
	return s
}

func serveSecurely(t *testing.T, flags ...string) (run *operatorRun, address string) {
	t.Helper()
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return alone(t, nil, append([]string{"--metrics-secure", "--metrics-bind-address=" + address}, flags...)...), address
}

// scrape makes a connection of its own and asks for the metrics.
func (s *scraper) scrape() (status int, body string, served *tls.ConnectionState, err error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.trusted)
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: pool, ServerName: "agentic-operator-metrics." + s.name + ".svc",
		MinVersion: tls.VersionTLS10, MaxVersion: s.newest,
	}}
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "https://"+s.address+"/metrics", nil)
	if err != nil {
		return 0, "", nil, err
	}
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	answer, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return 0, "", nil, err
	}
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), answer.TLS, errors.Join(err, answer.Body.Close())
}

// reads complains unless the metrics can be read.
func (s *scraper) reads() error {
	status, _, _, err := s.scrape()
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the answer is %d", status)
	}
	return err
}

// trustsOwn waits for the operator's own certificate and trusts its CA.
func (s *scraper) trustsOwn() {
	s.t.Helper()
	s.eventually("the metrics can be read with the operator's own CA", func() error {
		s.trusted = s.ownCA()
		return s.reads()
	})
}

func (s *scraper) ownCA() []byte {
	secret := &corev1.Secret{}
	if suite.admin.Get(s.ctx, s.key(serving.OwnSecret), secret) != nil {
		return nil
	}
	return secret.Data[serving.CAKey]
}

// serves complains unless this very certificate is served.
func (s *scraper) serves(want *x509.Certificate) error {
	_, _, served, err := s.scrape()
	if err == nil && !served.PeerCertificates[0].Equal(want) {
		err = fmt.Errorf("served is the certificate %s", served.PeerCertificates[0].SerialNumber)
	}
	return err
}

// made is a certificate of somebody else's that signs itself, in the form of a Secret.
type made struct {
	certificate *x509.Certificate
	data        map[string][]byte
}

// makeCertificate makes one for a name and a time from now on.
func makeCertificate(t *testing.T, name string, life time.Duration) made {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cert.EncodeCertificates(certificate)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return made{certificate, map[string][]byte{corev1.TLSCertKey: text, corev1.TLSPrivateKeyKey: private, serving.CAKey: text}}
}
