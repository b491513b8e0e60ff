package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	metricsService = "agentic-operator-metrics"
	metricsPort    = "metrics"
	// ownCertificate keeps the operator's own certificate with its CA; serviceCA is OpenShift's, which
	// is in every namespace there.
	ownCertificate = "agentic-operator-metrics-own-cert"
	serviceCA      = "openshift-service-ca.crt"

	scrapePatience = 15 * time.Second
)

// ErrUnreachable is a metrics endpoint that does not answer: a policy of the cluster may forbid it.
var ErrUnreachable = errors.New("the metrics cannot be reached from here")

// Metrics are all families of one replica by name.
type Metrics map[string]*dto.MetricFamily

// Scraper reads the operator's metrics as any other holder of a token does.
type Scraper struct {
	operator *Operator
	http     *http.Client
	token    string
}

// Scraper makes one with the token of our own access and the CAs that may have signed the endpoint's
// certificate. Home is our namespace.
func (o *Operator) Scraper(ctx context.Context, config *rest.Config, home string) (*Scraper, error) {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		content, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading our token: %w", err)
		}
		token = string(content)
	}
	roots := x509.NewCertPool()
	own, service := &corev1.Secret{}, &corev1.ConfigMap{}
	if err := o.client.Get(ctx, client.ObjectKey{Namespace: o.Deployment.Namespace, Name: ownCertificate}, own); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the CA of the metrics: %w", err)
	}
	if err := o.client.Get(ctx, client.ObjectKey{Namespace: home, Name: serviceCA}, service); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the service CA: %w", err)
	}
	roots.AppendCertsFromPEM(own.Data["ca.crt"])
	roots.AppendCertsFromPEM([]byte(service.Data["service-ca.crt"]))
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: metricsService + "." + o.Deployment.Namespace + ".svc", MinVersion: tls.VersionTLS12,
	}}
	return &Scraper{operator: o, http: &http.Client{Transport: transport, Timeout: scrapePatience}, token: token}, nil
}

// Leader are the metrics of the replica that works.
func (s *Scraper) Leader(ctx context.Context) (Metrics, error) {
	pods, err := s.operator.Pods(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if pods[i].Status.PodIP == "" || pods[i].DeletionTimestamp != nil {
			continue
		}
		m, err := s.read(ctx, &pods[i])
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of pod %s: %w", pods[i].Name, err)
		}
		if m.Value("ambient_operator_leader", nil) == 1 {
			return m, nil
		}
	}
	return nil, fmt.Errorf("none of the operator's %d pods leads", len(pods))
}

func (s *Scraper) read(ctx context.Context, pod *corev1.Pod) (m Metrics, err error) {
	port := int32(0)
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == metricsPort {
				port = p.ContainerPort
			}
		}
	}
	address := "https://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))) + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", address, err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.http.Do(request)
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "dial" {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", address, err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", address, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s does not answer in Prometheus' format: %w", address, err)
	}
	return families, nil
}

// Value is the sum of the series of a family that have the given labels; of a histogram, its count.
func (m Metrics) Value(family string, labels map[string]string) float64 {
	sum := 0.0
	for _, series := range m[family].GetMetric() {
		has := maps.Collect(func(yield func(string, string) bool) {
			for _, l := range series.GetLabel() {
				if !yield(l.GetName(), l.GetValue()) {
					return
				}
			}
		})
		if slices.ContainsFunc(slices.Collect(maps.Keys(labels)), func(name string) bool { return has[name] != labels[name] }) {
			continue
		}
		sum += series.GetCounter().GetValue() + series.GetGauge().GetValue() + float64(series.GetHistogram().GetSampleCount())
	}
	return sum
}
