package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// call is one request of the operator.
type call struct {
	at     time.Time
	method string
	path   string
	// metadata says that nothing but the metadata was asked for.
	metadata bool
	// watch says that it begins a watch.
	watch bool
	query url.Values
}

func (c call) write() bool { return c.method != http.MethodGet }

// about says that the call concerns a namespace.
func (c call) about(namespace string) bool {
	return strings.Contains(c.path+"/", "/namespaces/"+namespace+"/")
}

// hook sees each request of the operator to a namespace before it is sent. It may wait, and it may
// answer in the server's place.
type hook func(*http.Request) *http.Response

// gate lies between the operator and the API server: it notes every call and lets tests step in.
type gate struct {
	mu    sync.Mutex
	calls []call
	hooks map[string]hook
	lines watchLines
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

func (g *gate) before(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		c := call{time.Now(), request.Method, request.URL.Path, strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata"), request.URL.Query().Get("watch") != "", request.URL.Query()}
		g.mu.Lock()
		g.calls = append(g.calls, c)
		var h hook
		for namespace := range g.hooks {
			if c.about(namespace) {
				h = g.hooks[namespace]
			}
		}
		g.mu.Unlock()
		if c.watch {
			return g.lines.connect(next, request)
		}
		if h != nil {
			if answer := h(request); answer != nil {
				return answer, nil
			}
		}
		return next.RoundTrip(request)
	})
}

// hookInto has a hook see all calls about a namespace until the test ends.
func (g *gate) hookInto(t *testing.T, namespace string, h hook) {
	t.Helper()
	set := func(h hook) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.hooks == nil {
			g.hooks = map[string]hook{}
		}
		g.hooks[namespace] = h
	}
	set(h)
	t.Cleanup(func() { set(nil) })
}

// written lists the writes about a namespace, Events left out.
func (g *gate) written(namespace string) []call {
	return slices.DeleteFunc(g.asked(namespace), func(c call) bool { return !c.write() })
}

// asked lists the requests about a namespace, Events left out.
func (g *gate) asked(namespace string) []call {
	g.mu.Lock()
	defer g.mu.Unlock()
	var asked []call
	for _, c := range g.calls {
		if c.about(namespace) && !c.watch && !strings.HasSuffix(c.path, "/events") {
			asked = append(asked, c)
		}
	}
	return asked
}

// refusal is an answer of an API server that refuses a request.
func refusal(request *http.Request, code int32, reason metav1.StatusReason) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: "refused by the test",
	})
	if err != nil {
		body = nil
	}
	return &http.Response{
		StatusCode: int(code), Status: http.StatusText(int(code)), Request: request,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
