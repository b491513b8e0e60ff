package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// byServiceCA is the annotation with which OpenShift's service CA marks the Secrets it makes.
const byServiceCA = "service.beta.openshift.io/originating-service-name"

// pair is a certificate with its key, found good.
type pair struct {
	certificate tls.Certificate
	leaf        *x509.Certificate
	// byServiceCA says that OpenShift made it.
	byServiceCA bool
	// ca is what verifies it, where the Secret holds that, too.
	ca []byte
}

// problem is what is wrong with a Secret. It has a reason, because Events that share theirs are told
// as one.
type problem struct {
	reason, says string
	// remedy is what to do; empty for the usual.
	remedy string
	// until is when the clock mends it; zero for never.
	until time.Time
}

func (p *problem) Error() string { return p.says }

// judge reads a pair from a Secret. The problem says what is wrong with its contents, without them.
func judge(secret *corev1.Secret, serverName string, now time.Time) (*pair, *problem) {
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[key]) == 0 {
			return nil, &problem{reason: "CertificateMissing", says: "it has no " + key}
		}
	}
	certificate, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, &problem{reason: "CertificateUnreadable", says: fmt.Sprintf("its %s and %s are no pair of certificate and key (%v)", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)}
	}
	leaf := certificate.Leaf
	switch {
	case leaf.VerifyHostname(serverName) != nil:
		return nil, &problem{reason: "CertificateForOtherName", says: "its certificate is not for " + serverName}
	case !now.Before(leaf.NotAfter):
		return nil, &problem{reason: "CertificateExpired", says: "its certificate expired at " + leaf.NotAfter.UTC().Format(time.RFC3339)}
	case now.Before(leaf.NotBefore):
		return nil, &problem{reason: "CertificateNotYetValid", says: "its certificate is valid only from " + leaf.NotBefore.UTC().Format(time.RFC3339), until: leaf.NotBefore}
	}
	found := &pair{certificate: certificate, leaf: leaf, byServiceCA: secret.Annotations[byServiceCA] != ""}
	if ca := secret.Data[CAKey]; len(ca) > 0 && !found.byServiceCA {
		if wrong := judgeCA(ca, &certificate, now); wrong != nil {
			return nil, wrong
		}
		found.ca = ca
	}
	return found, nil
}

// judgeCA says what is wrong with the certificates that are to verify a pair: scrapers verify with
// them, and would get no metrics.
func judgeCA(ca []byte, pair *tls.Certificate, now time.Time) *problem {
	wrong := &problem{
		reason: "CertificateAuthorityUnreadable",
		remedy: fmt.Sprintf("put the certificates of the authority that signed %s there as %s, or take %s out of the Secret", corev1.TLSCertKey, CAKey, CAKey),
	}
	certificates, err := cert.ParseCertsPEM(ca)
	if err != nil {
		wrong.says = fmt.Sprintf("its %s has no certificates that can be read (%v)", CAKey, err)
		return wrong
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, certificate := range certificates {
		roots.AddCert(certificate)
	}
	for _, der := range pair.Certificate[1:] {
		intermediate, err := x509.ParseCertificate(der)
		if err != nil {
			continue // whether it is needed shows
		}
		intermediates.AddCert(intermediate)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: now}); err != nil {
		wrong.reason, wrong.says = "CertificateNotByAuthority", fmt.Sprintf("its %s does not verify its %s (%v)", CAKey, corev1.TLSCertKey, err)
		return wrong
	}
	return nil
}
