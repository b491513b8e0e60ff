package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// proxy lies between one replica of the operator and the API server. It is a server of its own, with
// TLS, so the operator is the program that is shipped and knows nothing of it.
type proxy struct {
	address   string
	authority []byte
	server    *http.Server
	forward   *httputil.ReverseProxy

	mu   sync.Mutex
	dice *rand.Rand
	// failing is the share of calls that fail, delay how long each piece of a watch is held back.
	failing float64
	delay   time.Duration
	// cut has no watch come through.
	cut     bool
	watches map[*watchBody]bool
	failed  map[string]int
}

// startProxy starts a proxy to the cluster of the given access.
func startProxy(config *rest.Config, seed uint64) (*proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	// Without the administrator's certificate: callers are who their tokens say.
	settings, err := rest.TLSConfigFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("making the proxy's client: %w", err)
	}
	authority, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making the proxy's certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(authority, key)
	if err != nil {
		return nil, fmt.Errorf("reading the proxy's certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	p := &proxy{
		address: "https://" + listener.Addr().String(), authority: authority,
		dice: rand.New(rand.NewPCG(seed, 1)), watches: map[*watchBody]bool{}, failed: map[string]int{},
	}
	quiet := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true},
		FlushInterval:  -1,
		ErrorLog:       quiet,
		ModifyResponse: p.holdWatch,
		// The operator finds the connection lost, as without a proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { lose() },
	}
	p.server = &http.Server{
		Handler: p, ErrorLog: quiet, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	go func() {
		if err := p.server.ServeTLS(listener, "", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
			fmt.Println("the proxy ended:", err)
		}
	}()
	return p, nil
}

// kubeconfig writes one that leads through the proxy.
func (p *proxy) kubeconfig(direct, path string) error {
	config, err := clientcmd.LoadFromFile(direct)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return fmt.Errorf("reading the kubeconfig's certificates: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = p.address, p.authority
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig that leads through the proxy: %w", err)
	}
	return nil
}

func isWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// ServeHTTP hands a call on, or has it fail.
func (p *proxy) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if isWatch(request) {
		p.mu.Lock()
		cut := p.cut
		p.mu.Unlock()
		if cut {
			lose()
		}
		p.forward.ServeHTTP(w, request)
		return
	}
	if fail := p.choose(); fail != nil {
		fail(p, w, request)
		return
	}
	p.forward.ServeHTTP(w, request)
}

// choose decides whether the next call fails, and how.
func (p *proxy) choose() failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dice.Float64() >= p.failing {
		return nil
	}
	chosen := failures[p.dice.IntN(len(failures))]
	p.failed[chosen.name]++
	return chosen.fail
}

// lose has the operator find the connection lost: it is how a handler tells its server so.
func lose() {
	panic(http.ErrAbortHandler) //nolint:forbidigo // net/http has no other way
}

// failure answers a call in the API server's place, or not at all.
type failure func(*proxy, http.ResponseWriter, *http.Request)

// hangs is how long a call hangs that is never answered.
const hangs = 5 * time.Second

var failures = []struct {
	name string
	fail failure
}{
	{"call answered with 409", refuse(http.StatusConflict, "Conflict")},
	{"call answered with 429", refuse(http.StatusTooManyRequests, "TooManyRequests")},
	{"call answered with 500", refuse(http.StatusInternalServerError, "InternalError")},
	{"call hung and was lost", func(_ *proxy, _ http.ResponseWriter, request *http.Request) {
		select {
		case <-request.Context().Done():
		case <-time.After(hangs):
		}
		lose()
	}},
	{"call whose answer was lost", func(p *proxy, _ http.ResponseWriter, request *http.Request) {
		p.forward.ServeHTTP(&nowhere{http.Header{}}, request)
		lose()
	}},
}

func refuse(code int, reason string) failure {
	return func(_ *proxy, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(code)
		const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused on purpose","reason":%q,"code":%d}`
		if _, err := fmt.Fprintf(w, status, reason, code); err != nil && !strings.Contains(err.Error(), "closed") {
			lose()
		}
	}
}

// nowhere takes an answer that nobody gets.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header            { return n.header }
func (n *nowhere) Write(data []byte) (int, error) { return len(data), nil }
func (n *nowhere) WriteHeader(int)                {}

// watchBody is the stream of a watch.
type watchBody struct {
	io.ReadCloser
	proxy *proxy
}

func (p *proxy) holdWatch(response *http.Response) error {
	if !isWatch(response.Request) {
		return nil
	}
	body := &watchBody{response.Body, p}
	response.Body = body
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[body] = true
	return nil
}

// Read hands on what the API server sent, late if that is asked for.
func (b *watchBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.proxy.mu.Lock()
	delay := b.proxy.delay
	b.proxy.mu.Unlock()
	time.Sleep(delay)
	return n, err
}

// Close ends the watch.
func (b *watchBody) Close() error {
	b.proxy.mu.Lock()
	delete(b.proxy.watches, b)
	b.proxy.mu.Unlock()
	return b.ReadCloser.Close()
}

// cutWatches ends all watches, and lets new ones through only when it is told so.
func (p *proxy) cutWatches(cut bool) {
	p.mu.Lock()
	p.cut = cut
	var open []*watchBody
	for body := range p.watches {
		open = append(open, body)
	}
	p.mu.Unlock()
	for _, body := range open {
		if err := body.Close(); err != nil {
			continue // closed already
		}
	}
}

// set changes what share of calls fails and by how much watches are late.
func (p *proxy) set(failing float64, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing, p.delay = failing, delay
}
