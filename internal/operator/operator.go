// Package operator assembles the manager: clients, caches, metrics, health, leader election and
// the controllers. It is what main runs, and what the integration tests run in their own process.
package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/controllers"
	"github.com/ambient-code/agentic-operator/internal/buildinfo"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/internal/serving"
)

const (
	// leaseName is the lock of leader election; it stays the same over versions, so that an old
	// and a new operator never work at the same time.
	leaseName = "agentic-operator.ambient-code.io"
	// A burst of sessions makes about fifteen requests for each; the API server's own fairness is
	// the limit, not ours.
	requestsPerSecond = 1000
	requestBurst      = 2000
)

// Run works until the context ends.
func Run(ctx context.Context, settings *config.Config, cluster *rest.Config) error {
	ctrl.SetLogger(logger(settings, os.Stderr))
	mgr, endpoint, err := NewManager(settings, cluster)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the cluster does not know the operator's kinds; install the CRDs with: make install (%w)", err)
	}
	if err != nil {
		return err
	}
	if err := Add(ctx, mgr, settings, metrics.New(crmetrics.Registry), endpoint); err != nil {
		return err
	}
	ctrl.Log.WithName("setup").Info("Starting", "version", buildinfo.Version, "revision", buildinfo.Revision(),
		"namespace", settings.Namespace, "legacyWatch", settings.LegacyWatch)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// logger writes one line for each entry: JSON for programs, or in dev mode columns for people, with
// what is else left out.
func logger(settings *config.Config, out io.Writer) logr.Logger {
	return zap.New(zap.UseDevMode(settings.DevMode), zap.StacktraceLevel(zapcore.DPanicLevel), zap.WriteTo(out))
}

// Endpoint is what is known where metrics are served.
type Endpoint struct {
	// Certificates are nil where metrics are not served over HTTPS.
	Certificates *serving.Certificates
	Scrapes      *serving.Scrapes
}

// NewManager makes the manager: what is cached, how it is elected, where it serves.
func NewManager(settings *config.Config, cluster *rest.Config) (ctrl.Manager, *Endpoint, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	cluster = rest.CopyConfig(cluster)
	cluster.QPS, cluster.Burst = requestsPerSecond, requestBurst
	cluster.UserAgent = "agentic-operator/" + buildinfo.Version
	endpoint := &Endpoint{Scrapes: serving.NewScrapes(nil)}
	grace, readYourWrites := 20*time.Second, true
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controllers.CacheOptions(settings),
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &readYourWrites}},
		Metrics:                       endpoint.Scrapes.Noted(endpoint.options(settings)),
		HealthProbeBindAddress:        settings.HealthAddress,
		PprofBindAddress:              settings.PprofAddress,
		LeaderElection:                settings.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       settings.Namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &grace,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, endpoint, nil
}

// options says how metrics are served.
func (e *Endpoint) options(settings *config.Config) metricsserver.Options {
	if !settings.MetricsSecure || settings.MetricsAddress == "0" {
		return metricsserver.Options{BindAddress: settings.MetricsAddress}
	}
	e.Certificates = serving.New(serving.Options{
		Namespace:   settings.Namespace,
		GivenSecret: settings.MetricsCertSecret,
		HTTP2:       settings.MetricsHTTP2,
	})
	return e.Certificates.ServerOptions(settings.MetricsAddress)
}

// Add gives the manager its controllers, its certificates if it has any, and its health checks.
func Add(ctx context.Context, mgr ctrl.Manager, settings *config.Config, set *metrics.Set, endpoint *Endpoint) error {
	if endpoint.Certificates != nil {
		if err := endpoint.Certificates.AddTo(ctx, mgr); err != nil {
			return err
		}
	}
	if err := mgr.Add(endpoint.Scrapes); err != nil {
		return fmt.Errorf("adding what notes scrapes: %w", err)
	}
	if err := placeRunners(ctx, mgr, settings); err != nil {
		return err
	}
	sessions := &controllers.AgenticSessionReconciler{
		Config:  settings,
		Metrics: set,
		Events:  mgr.GetEventRecorder("agentic-operator"),
		Clock:   clock.RealClock{},
	}
	if err := sessions.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	projects := &controllers.ProjectSettingsReconciler{Config: settings, Clock: clock.RealClock{}}
	if err := projects.SetupWithManager(mgr); err != nil {
		return err
	}
	namespaces := &controllers.NamespaceReconciler{Config: settings, Metrics: set}
	if err := namespaces.SetupWithManager(mgr); err != nil {
		return err
	}
	shared := &controllers.SharedSecretReconciler{Config: settings, Events: mgr.GetEventRecorder("agentic-operator")}
	if err := shared.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := wire(mgr, settings, set, endpoint); err != nil {
		return err
	}
	upgrades := &controllers.UpgradeReconciler{Config: settings, Clock: clock.RealClock{}}
	if err := upgrades.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := mgr.Add(leading(set)); err != nil {
		return fmt.Errorf("adding what tells who leads: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", cachesSynced(mgr)); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}

// leading tells the metrics when this replica works: from its election, or its start without one,
// until it is to end. Another may work before this one is gone.
func leading(set *metrics.Set) manager.RunnableFunc {
	return func(ctx context.Context) error {
		set.Leads(true)
		<-ctx.Done()
		set.Leads(false)
		return nil
	}
}

// cachesSynced is ready once the caches are filled, on every replica: an upgrade would wait for
// ever for a replica that is ready only as the leader.
func cachesSynced(mgr ctrl.Manager) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}
