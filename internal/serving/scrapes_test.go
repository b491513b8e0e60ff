package serving

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// refusing lets nobody in.
func refusing(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(logr.Logger, http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }), nil
	}, nil
}

// behind is a metrics endpoint behind the filter.
func behind(t *testing.T, options metricsserver.Options) http.Handler {
	t.Helper()
	filter, err := options.FilterProvider(&rest.Config{}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func TestScrapes(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	s := NewScrapes(clock)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	eventually(t, "it listens", clock.HasWaiters)

	open, closed := behind(t, s.Noted(metricsserver.Options{})), behind(t, s.Noted(metricsserver.Options{FilterProvider: refusing}))
	get := func(from http.Handler, header ...string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		for _, h := range header {
			request.Header.Set(h, "10")
		}
		from.ServeHTTP(httptest.NewRecorder(), request)
	}
	is := func(when string, read, known, told bool) {
		t.Helper()
		eventually(t, when+", the state", func() bool { r, k := s.State(); return r == read && k == known })
		if got := len(s.changed) > 0; got != told {
			t.Errorf("%s: a change told %v, want %v", when, got, told)
		}
		if told {
			<-s.changed
		}
	}
	is("at first", false, false, false)
	get(open)
	is("after a person's look", false, false, false)
	get(closed, scrapeHeader)
	is("after a Prometheus that was not let in", false, false, false)
	get(open, scrapeHeader)
	is("after a scrape", true, true, true)
	for range 5 {
		clock.Step(Silence - time.Second)
		get(open, scrapeHeader)
		eventually(t, "it listens on", clock.HasWaiters)
	}
	is("with one scrape after another", true, true, false)
	clock.Step(Silence - time.Second)
	eventually(t, "it listens on", clock.HasWaiters)
	clock.Step(time.Second)
	is("after a silence", false, true, true)
	eventually(t, "it listens on", clock.HasWaiters)
	clock.Step(3 * Silence)
	is("after more of it", false, true, false)
	get(open, scrapeHeader)
	is("when it is read again", true, true, true)

	cancel()
	if err := <-ended; err != nil || clock.HasWaiters() {
		t.Errorf("it ended with %v and goes on to listen: %v", err, clock.HasWaiters())
	}
}

func TestNobodyScrapes(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	s := NewScrapes(clock)
	go func() {
		if err := s.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "it listens", clock.HasWaiters)
	clock.Step(Silence - time.Second)
	if _, known := s.State(); known {
		t.Error("it is told too early")
	}
	clock.Step(time.Second)
	eventually(t, "the silence is told", func() bool { read, known := s.State(); return known && !read })
}
