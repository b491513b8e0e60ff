// Package config reads the operator's flags and environment once, at start, and says all that is
// wrong with them at once. Settings are values in a table (settings.go), from which the reference
// documentation is made as well.
package config

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/internal/workload"
)

// Config is everything the operator is told at start.
type Config struct {
	MaxConcurrentReconciles int
	MetricsAddress          string
	// MetricsSecure serves metrics over HTTPS, with the certificate in the Secret of this name once
	// it is there; MetricsHTTP2 offers HTTP/2 for it.
	MetricsSecure     bool
	MetricsCertSecret string
	MetricsHTTP2      bool
	HealthAddress     string
	PprofAddress      string
	LeaderElect       bool
	LegacyWatch       bool

	// DevMode makes logs readable for people instead of for programs.
	DevMode bool
	// Namespace is the operator's own.
	Namespace string
	// TargetNamespaces are those to which the operator is limited, in order; none is all.
	TargetNamespaces []string
	BackendNamespace string
	RunnerImage      string
	// StateSyncImage fills workspaces and copies them to S3, for runner types that name no image.
	StateSyncImage string
	// StateSyncUser is the user of its containers; nil leaves that to the image or the cluster.
	StateSyncUser *int64
	// S3Endpoint and S3Bucket are where workspaces are kept that a project keeps nowhere else.
	S3Endpoint      string
	S3Bucket        string
	ImagePullPolicy corev1.PullPolicy
	FSGroup         *int64
	// DefaultInactivity stops idle sessions where neither session nor project says when; 0 = off.
	DefaultInactivity time.Duration
	// StartDeadline is how long a runner may take to be ready; 0 = for ever.
	StartDeadline time.Duration
	// FinishedJobTTL is how long the Job of an ended run is kept for its logs.
	FinishedJobTTL time.Duration
	// TokenLifetime is asked for when a runner's token is minted; the server may give another.
	TokenLifetime time.Duration
	Vertex        workload.Vertex
	Tracing       workload.Tracing
	Proxy         []corev1.EnvVar

	// PodName is the operator's own pod; empty outside of a cluster.
	PodName string
	// MonitoringOff removes what was wired into the cluster's monitoring, and wires nothing.
	MonitoringOff bool
	// MonitoringLabels are put on ServiceMonitor and PrometheusRule.
	MonitoringLabels map[string]string
	// EnableUserWorkload lets the operator switch on OpenShift's monitoring of user-defined projects.
	EnableUserWorkload bool
	// RunnersAnywhere keeps runners from going only where the operator goes.
	RunnersAnywhere bool
	// Placement is where runners go; taken from the operator's own pod, not set here.
	Placement workload.Placement
	// OperatorCondition is the object in which OLM is told whether it may upgrade; empty without OLM.
	OperatorCondition string
	// UpgradeHoldLimit is how long an upgrade is held at most; 0 holds none.
	UpgradeHoldLimit time.Duration
}

// Serves says that the operator may serve a namespace, if it is managed.
func (c *Config) Serves(namespace string) bool {
	return len(c.TargetNamespaces) == 0 || slices.Contains(c.TargetNamespaces, namespace)
}

// Scope lists the namespaces to look at: those to which the operator is limited, else one empty name
// for all.
func (c *Config) Scope() []string {
	if len(c.TargetNamespaces) == 0 {
		return []string{corev1.NamespaceAll}
	}
	return c.TargetNamespaces
}

// SharedSecrets names the Secrets of the operator's namespace that every project is to have.
func (c *Config) SharedSecrets() []string {
	var names []string
	add := func(asked bool, name string) {
		if asked {
			names = append(names, name)
		}
	}
	add(c.Vertex.Enabled, workload.VertexSecret)
	add(c.Tracing.Langfuse, workload.LangfuseSecret)
	add(c.Tracing.MLflow, workload.MLflowSecret)
	return names
}

// Load reads flags from args and variables through getenv. The error names every value that
// cannot be used, and how to mend it.
func Load(args []string, getenv func(string) string) (*Config, error) {
	c := &Config{}
	flags := flag.NewFlagSet("operator", flag.ContinueOnError)
	var problems []error
	for i := range Settings {
		s := &Settings[i]
		if s.Flag != "" {
			s.define(c, flags)
		}
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		problems = append(problems, fmt.Errorf("reading the flags: %w", err))
	}
	if flags.NArg() > 0 {
		problems = append(problems, fmt.Errorf("%q is no flag: everything is set by flags and environment variables", flags.Arg(0)))
	}
	for i := range Settings {
		s := &Settings[i]
		if s.Env == "" {
			continue
		}
		value := getenv(s.Env)
		if value == "" {
			if s.Flag != "" {
				continue
			}
			value = s.Default
		}
		if err := s.set(c, value); err != nil {
			problems = append(problems, fmt.Errorf("%s=%q: %w", s.Env, value, err))
		}
	}
	if c.BackendNamespace == "" {
		c.BackendNamespace = c.Namespace
	}
	if c.MaxConcurrentReconciles < 1 {
		problems = append(problems, fmt.Errorf("the number of concurrent reconciles is %d: set --max-concurrent-reconciles or MAX_CONCURRENT_RECONCILES to 1 or more", c.MaxConcurrentReconciles))
	}
	if v := c.Vertex; v.Enabled && (v.Region == "" || v.ProjectID == "" || v.Credentials == "") {
		problems = append(problems, errors.New("USE_VERTEX is on: set CLOUD_ML_REGION, ANTHROPIC_VERTEX_PROJECT_ID and GOOGLE_APPLICATION_CREDENTIALS as well"))
	}
	return c, errors.Join(problems...)
}
