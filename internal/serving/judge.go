package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// byServiceCA is the annotation with which OpenShift's service CA marks the Secrets it makes.
const byServiceCA = "service.beta.openshift.io/originating-service-name"

// pair is a certificate with its key, found good.
type pair struct {
	certificate tls.Certificate
	leaf        *x509.Certificate
	// byServiceCA says that OpenShift made it.
	byServiceCA bool
	// hasCA says that the Secret holds what verifies it, too.
	hasCA bool
}

// problem is what is wrong with a Secret. It has a reason, because Events that share theirs are told
// as one.
type problem struct {
	reason, says string
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
	return &pair{
		certificate: certificate,
		leaf:        leaf,
		byServiceCA: secret.Annotations[byServiceCA] != "",
		hasCA:       len(secret.Data[CAKey]) > 0,
	}, nil
}
