package serving

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// Silence is how long nobody reads metrics until that is told. Scrapers that read more seldom than
	// every minute or two make poor graphs anyway.
	Silence = 5 * time.Minute
	// scrapeHeader comes with every request of a Prometheus, and of agents that are built of its parts;
	// a person with curl does not send it.
	scrapeHeader = "X-Prometheus-Scrape-Timeout-Seconds"
)

// Scrapes knows whether a Prometheus reads the metrics of this replica. It is safe for concurrent
// use, and one of the manager's runnables, on every replica.
type Scrapes struct {
	clock   clock.Clock
	changed chan event.GenericEvent

	mu    sync.Mutex
	last  time.Time // the last scrape, or the start
	known bool
	read  bool
}

// NewScrapes knows of none yet; a nil clock is the real one.
func NewScrapes(by clock.Clock) *Scrapes {
	if by == nil {
		by = clock.RealClock{}
	}
	return &Scrapes{clock: by, changed: make(chan event.GenericEvent, 1), last: by.Now()}
}

// State says whether metrics are read. That is not known until the first scrape, or until enough
// time without one.
func (s *Scrapes) State() (read, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read, s.known
}

// Changed tells that State is another. It is for one receiver.
func (s *Scrapes) Changed() <-chan event.GenericEvent { return s.changed }

// NeedLeaderElection is for the manager: the others serve metrics as well.
func (s *Scrapes) NeedLeaderElection() bool { return false }

// Start notices silence until the context ends.
func (s *Scrapes) Start(ctx context.Context) error {
	s.mu.Lock()
	s.last = s.clock.Now()
	s.mu.Unlock()
	timer := s.clock.NewTimer(Silence)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
			timer.Reset(s.listen())
		}
	}
}

// listen asks whether nothing was heard for a while, and says when to ask again.
func (s *Scrapes) listen() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.last.Add(Silence).Sub(s.clock.Now())
	if rest <= 0 {
		s.tell(false)
		rest = Silence
	}
	return rest
}

// tell sets the state. The caller holds the lock.
func (s *Scrapes) tell(read bool) {
	if s.known && s.read == read {
		return
	}
	s.read, s.known = read, true
	select {
	case s.changed <- event.GenericEvent{Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: ServiceName}}}:
	default:
	}
}

func (s *Scrapes) scraped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.clock.Now()
	s.tell(true)
}

// Noted has a metrics server note who reads, behind what filter it has already.
func (s *Scrapes) Noted(options metricsserver.Options) metricsserver.Options {
	inner := options.FilterProvider
	options.FilterProvider = func(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
		outer := func(_ logr.Logger, next http.Handler) (http.Handler, error) { return next, nil }
		if inner != nil {
			var err error
			if outer, err = inner(config, client); err != nil {
				return nil, err
			}
		}
		return func(log logr.Logger, next http.Handler) (http.Handler, error) {
			return outer(log, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				if r.Header.Get(scrapeHeader) != "" {
					s.scraped()
				}
			}))
		}, nil
	}
	return options
}
