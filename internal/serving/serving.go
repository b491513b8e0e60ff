// Package serving serves the operator's metrics over HTTPS to those who may read them: callers show
// a token, which the API server reviews, and need the right to get /metrics (admit.go).
//
// Certificates is the state: which certificate is in use and how it can be verified. Nothing is
// mounted. The certificate is read from one of two Secrets of the operator's namespace, as soon as
// one is there, and every handshake uses the newest (judge.go, watch.go):
//
//   - the given one, which OpenShift's service CA, cert-manager or an administrator makes;
//   - the operator's own, which the leader makes with a CA of its own and renews (issue.go,
//     keeper.go), and which serves until there is a given one.
//
// Scrapes is the other thing that is known here: whether a Prometheus reads the metrics (scrapes.go).
//
// The versions of TLS and the ciphers are those that an OpenShift cluster asks for (profile.go,
// cluster.go), elsewhere those of the Go version.
package serving

import (
	"bytes"
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// ServiceName is the Service in front of the endpoint; certificates must be for its name.
	ServiceName = "agentic-operator-metrics"
	// OwnSecret keeps the operator's own certificate: keys tls.crt, tls.key, and ca.crt and ca.key
	// of the CA that signed it.
	OwnSecret = "agentic-operator-metrics-own-cert"
	// CAKey is the key of a Secret with the certificates that verify the one it holds.
	CAKey = "ca.crt"
)

// Source says where the certificate in use comes from.
type Source string

const (
	// ServiceCA is OpenShift's service CA, which made the given Secret.
	ServiceCA Source = "ServiceCA"
	// Given is anybody else who made the given Secret, such as cert-manager.
	Given Source = "Given"
	// Own is the operator's own CA.
	Own Source = "Own"
)

// Trust is where the certificates lie that verify the one in use, in the operator's namespace. Of
// ConfigMap and Secret at most one is set; with none of them the maker of the given Secret did not
// say, and the verifier must know.
type Trust struct {
	ConfigMap, Secret, Key string
}

// Options is what there is to choose.
type Options struct {
	// Namespace is the operator's own.
	Namespace string
	// GivenSecret is the name of the Secret that others make.
	GivenSecret string
	// HTTP2 offers HTTP/2 beside HTTP/1.1.
	HTTP2 bool
	// Clock is for tests; nil is the real one.
	Clock clock.WithDelayedExecution
}

// Certificates serves the certificate that is the right one at the moment. It is safe for
// concurrent use; a nil one has no source, for an operator that serves without TLS.
type Certificates struct {
	options Options
	names   []string
	events  events.EventRecorder
	changed chan event.GenericEvent

	mu         sync.RWMutex
	given, own *pair
	settings   tlsSettings
	told       map[string]complaint
	// seen is the given Secret as it was last, good or bad; again judges it anew when the clock makes a
	// difference.
	seen  *corev1.Secret
	again clock.Timer
}

// New makes certificates that have to be added to the manager (AddTo) and to its metrics server
// (ServerOptions).
func New(options Options) *Certificates {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	host := ServiceName + "." + options.Namespace + ".svc"
	return &Certificates{
		options: options,
		names:   []string{host, host + ".cluster.local"},
		changed: make(chan event.GenericEvent, 1),
		told:    map[string]complaint{},
	}
}

// ServerName is the name that certificates must be for and that callers verify.
func (c *Certificates) ServerName() string { return c.names[0] }

// ServerOptions has the metrics server of a manager serve securely at an address.
func (c *Certificates) ServerOptions(address string) metricsserver.Options {
	return metricsserver.Options{
		BindAddress:    address,
		SecureServing:  true,
		FilterProvider: admitting,
		TLSOpts:        []func(*tls.Config){c.configure},
	}
}

// Source says where the certificate in use comes from; empty until there is one.
func (c *Certificates) Source() Source {
	source, _ := c.inUse()
	return source
}

// Trust says what verifies the certificate in use.
func (c *Certificates) Trust() Trust {
	source, p := c.inUse()
	switch {
	case source == ServiceCA:
		// OpenShift puts its service CA into a ConfigMap of this name in every namespace.
		return Trust{ConfigMap: "openshift-service-ca.crt", Key: "service-ca.crt"}
	case source == Own:
		return Trust{Secret: OwnSecret, Key: CAKey}
	case source == Given && len(p.ca) > 0:
		return Trust{Secret: c.options.GivenSecret, Key: CAKey}
	}
	return Trust{}
}

// Authority is what verifies a given certificate, as far as the maker of its Secret said, and beside it
// what verifies the operator's own, which a replica may serve with that has not seen the other. It
// goes with the certificate in use, whatever the Secret holds by now.
func (c *Certificates) Authority() []byte {
	source, p := c.inUse()
	if source != Given || len(p.ca) == 0 {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.own == nil {
		return p.ca
	}
	return slices.Concat(bytes.TrimSpace(p.ca), []byte("\n"), c.own.ca)
}

// Changed tells that Source or Trust may have changed. It is for one receiver; changes that it has
// not yet taken note of are told as one.
func (c *Certificates) Changed() <-chan event.GenericEvent {
	if c == nil {
		return nil
	}
	return c.changed
}

func (c *Certificates) inUse() (Source, *pair) {
	if c == nil {
		return "", nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.choose(c.options.Clock.Now())
}

// choose prefers the given certificate while it is valid. The caller holds the lock.
func (c *Certificates) choose(now time.Time) (Source, *pair) {
	switch {
	case c.given != nil && now.Before(c.given.leaf.NotAfter) && c.given.byServiceCA:
		return ServiceCA, c.given
	case c.given != nil && now.Before(c.given.leaf.NotAfter):
		return Given, c.given
	case c.own != nil:
		return Own, c.own
	}
	return "", nil
}

var errNone = errors.New("there is no certificate yet: the leader of the operator's replicas makes one in Secret " + OwnSecret)

// configure is for the server's TLS: each handshake asks anew, so that what has changed is in
// effect for the next connection.
func (c *Certificates) configure(config *tls.Config) {
	config.NextProtos = []string{"http/1.1"}
	if c.options.HTTP2 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	config.MinVersion = tls.VersionTLS12
	// A resumed session would go on with an old certificate.
	config.SessionTicketsDisabled = true
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if _, p := c.inUse(); p != nil {
			return &p.certificate, nil
		}
		return nil, errNone
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c.mu.RLock()
		settings := c.settings
		c.mu.RUnlock()
		return settings.apply(config), nil
	}
}

// notify tells the receiver of Changed, unless it has not yet taken note of an earlier change.
func (c *Certificates) notify(name string) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.options.Namespace, Name: name}}
	select {
	case c.changed <- event.GenericEvent{Object: secret}:
	default:
	}
}
