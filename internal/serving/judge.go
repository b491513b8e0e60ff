package serving

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
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

// early is the error of a certificate that will be good later.
type early struct{ from time.Time }

func (e *early) Error() string {
	return "its certificate is valid only from " + e.from.UTC().Format(time.RFC3339)
}

// judge reads a pair from a Secret. The error says what is wrong with its contents, without them.
func judge(secret *corev1.Secret, serverName string, now time.Time) (*pair, error) {
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[key]) == 0 {
			return nil, fmt.Errorf("it has no %s", key)
		}
	}
	certificate, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("its %s and %s are no pair of certificate and key (%w)", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	leaf := certificate.Leaf
	if leaf == nil {
		return nil, errors.New("its certificate cannot be read")
	}
	switch {
	case leaf.VerifyHostname(serverName) != nil:
		return nil, fmt.Errorf("its certificate is not for %s", serverName)
	case !now.Before(leaf.NotAfter):
		return nil, fmt.Errorf("its certificate expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return nil, &early{leaf.NotBefore}
	}
	return &pair{
		certificate: certificate,
		leaf:        leaf,
		byServiceCA: secret.Annotations[byServiceCA] != "",
		hasCA:       len(secret.Data[CAKey]) > 0,
	}, nil
}
