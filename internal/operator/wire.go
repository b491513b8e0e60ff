package operator

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ambient-code/agentic-operator/controllers/wiring"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/monitoring"
	"github.com/ambient-code/agentic-operator/internal/observability"
	"github.com/ambient-code/agentic-operator/internal/serving"
)

// wire adds the controller that wires the operator into the monitoring of its cluster.
func wire(mgr ctrl.Manager, settings *config.Config, set *metrics.Set, endpoint *Endpoint) error {
	content, err := content(settings.Namespace)
	if err != nil {
		return err
	}
	wired := &wiring.Reconciler{
		Config:  settings,
		Clock:   clock.RealClock{},
		Events:  mgr.GetEventRecorder("agentic-operator"),
		Content: content,
		Serving: func() monitoring.Serving { return served(settings, endpoint.Certificates) },
		Scrapes: func() monitoring.Scrapes { return scrapes(endpoint.Scrapes) },
		Changed: []<-chan event.GenericEvent{endpoint.Scrapes.Changed()},
		Wired:   func(part string, wired bool) { set.Wired(metrics.Part(part), wired) },
	}
	if endpoint.Certificates != nil {
		wired.Changed = append(wired.Changed, endpoint.Certificates.Changed())
	}
	return wired.SetupWithManager(mgr)
}

// served is how metrics and health are served now. The certificates are nil without HTTPS.
func served(settings *config.Config, certificates *serving.Certificates) monitoring.Serving {
	now := monitoring.Serving{Port: portOf(settings.MetricsAddress), HealthPort: portOf(settings.HealthAddress)}
	if certificates != nil {
		trust := certificates.Trust()
		now.Secure = true
		now.Source = string(certificates.Source())
		now.Problem = certificates.Problem()
		now.Trust = monitoring.Trust{ConfigMap: trust.ConfigMap, Secret: trust.Secret, Key: trust.Key}
		if now.Authority = string(certificates.Authority()); now.Authority != "" {
			now.Trust = monitoring.Trust{}
		}
	}
	return now
}

func scrapes(seen *serving.Scrapes) monitoring.Scrapes {
	switch read, known := seen.State(); {
	case read:
		return monitoring.ScrapesSeen
	case known:
		return monitoring.ScrapesMissing
	default:
		return monitoring.ScrapesAwaited
	}
}

// portOf is the port of an address; 0 where none is served.
func portOf(address string) int32 {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0
	}
	return int32(number)
}

// content is what monitoring shows and watches for.
func content(namespace string) (monitoring.Content, error) {
	c := monitoring.Content{QuickStart: observability.QuickStart(), YAMLSample: observability.YAMLSample()}
	rules, err := json.Marshal(observability.Rules(namespace))
	if err != nil {
		return c, fmt.Errorf("encoding the rules: %w", err)
	}
	if err := json.Unmarshal(rules, &c.Rules); err != nil {
		return c, fmt.Errorf("decoding the rules: %w", err)
	}
	console, err := observability.ConsoleDashboard()
	if err != nil {
		return c, fmt.Errorf("making the dashboard of the Console: %w", err)
	}
	grafana, err := observability.GrafanaDashboard()
	if err != nil {
		return c, fmt.Errorf("making the dashboard of Grafana: %w", err)
	}
	c.ConsoleDashboard, c.GrafanaDashboard = string(console), string(grafana)
	return c, nil
}
