package metrics

import "github.com/prometheus/client_golang/prometheus"

// Reader is what is read at each scrape alone.
func (s *Set) Reader() prometheus.Collector { return reader{s} }
