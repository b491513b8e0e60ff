package serving

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// caPrivateKey is the key of the own Secret with the CA's private key.
	caPrivateKey = "ca.key"

	day = 24 * time.Hour
	// A CA lives long, so that those who verify with it need not read it again each time that a
	// certificate is renewed.
	caLife   = 10 * 365 * day
	leafLife = 365 * day
	// renewal is what is left of a certificate's life when the next one is made.
	renewal = leafLife / 3
	// skew is how far clocks of others may be behind.
	skew = time.Hour
)

// authority is the operator's own CA.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// issue makes of the own Secret's contents what they are to be for the given names: the same where
// nothing is to be done. It tells when the contents have to be looked at again.
func issue(have map[string][]byte, names []string, now time.Time) (want map[string][]byte, next time.Time, err error) {
	ca, older := readAuthority(have, names, now)
	if ca != nil && readLeaf(have, ca, names, now) {
		leaf, err := tls.X509KeyPair(have[corev1.TLSCertKey], have[corev1.TLSPrivateKeyKey])
		if err != nil {
			return nil, now, fmt.Errorf("reading the operator's own certificate: %w", err)
		}
		return have, leaf.Leaf.NotAfter.Add(-renewal), nil
	}
	if ca == nil {
		if ca, err = newAuthority(names, now); err != nil {
			return nil, now, err
		}
	} else {
		older = nil
	}
	want, err = newLeaf(ca, older, names, now)
	return want, now.Add(leafLife - renewal), err
}

// readAuthority reads the CA. One that cannot sign for a whole life or for the names comes back as older:
// what it signed is verified with it until all use the next.
func readAuthority(have map[string][]byte, names []string, now time.Time) (ca *authority, older *x509.Certificate) {
	certificates, err := cert.ParseCertsPEM(have[CAKey])
	if err != nil {
		return nil, nil
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(have[caPrivateKey])
	key, signs := parsed.(crypto.Signer)
	if err != nil || !signs {
		return nil, nil
	}
	public, elliptical := key.Public().(*ecdsa.PublicKey)
	newest := certificates[0]
	if !elliptical || !public.Equal(newest.PublicKey) || !newest.IsCA || !now.Before(newest.NotAfter) {
		return nil, nil
	}
	if newest.NotAfter.Before(now.Add(leafLife)) || !slices.Equal(newest.PermittedDNSDomains, names) {
		return nil, newest
	}
	return &authority{newest, key}, nil
}

// readLeaf says whether the certificate is for all names, signed by the CA and not soon to expire.
func readLeaf(have map[string][]byte, ca *authority, names []string, now time.Time) bool {
	certificate, err := tls.X509KeyPair(have[corev1.TLSCertKey], have[corev1.TLSPrivateKeyKey])
	if err != nil || !now.Before(certificate.Leaf.NotAfter.Add(-renewal)) {
		return false
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	for _, name := range names {
		if _, err := certificate.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			return false
		}
	}
	return true
}

// newAuthority makes a CA that can sign for these names and no others, so that its key is worth no
// more than the key of the certificate beside it.
func newAuthority(names []string, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of the operator's own CA: %w", err)
	}
	template := &x509.Certificate{
		Subject:                     pkix.Name{CommonName: ServiceName + " CA of " + now.UTC().Format(time.DateOnly)},
		NotBefore:                   now.Add(-skew),
		NotAfter:                    now.Add(caLife),
		KeyUsage:                    x509.KeyUsageCertSign,
		BasicConstraintsValid:       true,
		IsCA:                        true,
		MaxPathLenZero:              true,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         names,
	}
	certificate, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the operator's own CA: %w", err)
	}
	return &authority{certificate, key}, nil
}

// newLeaf makes a certificate for the names, and the contents of the Secret that keeps it.
func newLeaf(ca *authority, older *x509.Certificate, names []string, now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of the operator's own certificate: %w", err)
	}
	leaf, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: ServiceName},
		DNSNames:    names,
		NotBefore:   now.Add(-skew),
		NotAfter:    now.Add(leafLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca.certificate, key.Public(), ca.key)
	if err != nil {
		return nil, fmt.Errorf("making the operator's own certificate: %w", err)
	}
	trusted := []*x509.Certificate{ca.certificate}
	if older != nil {
		trusted = append(trusted, older)
	}
	contents := map[string][]byte{}
	for name, encode := range map[string]func() ([]byte, error){
		corev1.TLSCertKey:       func() ([]byte, error) { return cert.EncodeCertificates(leaf) },
		corev1.TLSPrivateKeyKey: func() ([]byte, error) { return keyutil.MarshalPrivateKeyToPEM(key) },
		CAKey:                   func() ([]byte, error) { return cert.EncodeCertificates(trusted...) },
		caPrivateKey:            func() ([]byte, error) { return keyutil.MarshalPrivateKeyToPEM(ca.key) },
	} {
		encoded, err := encode()
		if err != nil {
			return nil, fmt.Errorf("writing %s of the operator's own certificate: %w", name, err)
		}
		contents[name] = encoded
	}
	return contents, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return x509.ParseCertificate(der)
}
