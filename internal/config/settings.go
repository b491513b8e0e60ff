package config

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// Setting is one thing the operator can be told.
type Setting struct {
	// Flag is the command-line flag without dashes; empty when there is none.
	Flag string
	// Env is the environment variable; empty when there is none. It wins over the flag.
	Env     string
	Default string
	Meaning string

	define func(*Config, *flag.FlagSet)
	set    func(*Config, string) error
}

// Settings lists every flag and variable. Source of the names and defaults: the contract; the
// last four are ours.
var Settings = []Setting{
	{Flag: "max-concurrent-reconciles", Env: "MAX_CONCURRENT_RECONCILES", Default: "10",
		Meaning: "how many sessions are worked on at the same time",
		define: func(c *Config, f *flag.FlagSet) {
			f.IntVar(&c.MaxConcurrentReconciles, "max-concurrent-reconciles", 10, "how many sessions are worked on at the same time")
		},
		set: func(c *Config, v string) error { return number(v, &c.MaxConcurrentReconciles) }},
	{Flag: "metrics-bind-address", Default: ":8080", Meaning: "where metrics are served; 0 switches them off",
		define: func(c *Config, f *flag.FlagSet) {
			f.StringVar(&c.MetricsAddress, "metrics-bind-address", ":8080", "where metrics are served; 0 switches them off")
		}},
	{Flag: "metrics-secure", Default: "false", Meaning: "serve metrics over HTTPS, to callers with a token that may get /metrics",
		define: func(c *Config, f *flag.FlagSet) {
			f.BoolVar(&c.MetricsSecure, "metrics-secure", false, "serve metrics over HTTPS, to callers with a token that may get /metrics")
		}},
	{Flag: "metrics-cert-secret", Default: "agentic-operator-metrics-cert", Meaning: "Secret of the operator's namespace with the certificate for that (tls.crt, tls.key); without it the operator makes one of its own",
		define: func(c *Config, f *flag.FlagSet) {
			f.StringVar(&c.MetricsCertSecret, "metrics-cert-secret", "agentic-operator-metrics-cert", "`Secret` of the operator's namespace with the certificate for that (tls.crt, tls.key); without it the operator makes one of its own")
		}},
	{Flag: "metrics-http2", Default: "false", Meaning: "offer HTTP/2 for that, too",
		define: func(c *Config, f *flag.FlagSet) {
			f.BoolVar(&c.MetricsHTTP2, "metrics-http2", false, "offer HTTP/2 for that, too")
		}},
	{Flag: "health-probe-bind-address", Default: ":8081", Meaning: "where /healthz and /readyz are served",
		define: func(c *Config, f *flag.FlagSet) {
			f.StringVar(&c.HealthAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
		}},
	{Flag: "pprof-bind-address", Default: "0", Meaning: "where profiles of the operator are served, without authentication: an address of the loopback interface; 0 serves none",
		define: func(c *Config, f *flag.FlagSet) {
			f.StringVar(&c.PprofAddress, "pprof-bind-address", "0", "where profiles of the operator are served, without authentication: an address of the loopback interface; 0 serves none")
		}},
	{Flag: "leader-elect", Default: "false", Meaning: "let one of several replicas work at a time",
		define: func(c *Config, f *flag.FlagSet) {
			f.BoolVar(&c.LeaderElect, "leader-elect", false, "let one of several replicas work at a time")
		}},
	{Flag: "legacy-watch", Default: "false", Meaning: "plain watches instead of shared caches, for debugging",
		define: func(c *Config, f *flag.FlagSet) {
			f.BoolVar(&c.LegacyWatch, "legacy-watch", false, "plain watches instead of shared caches, for debugging")
		}},
	{Env: "DEV_MODE", Default: "false", Meaning: "logs for people instead of for programs",
		set: func(c *Config, v string) (err error) { c.DevMode, err = boolean(v); return err }},
	{Env: "NAMESPACE", Default: "default", Meaning: "the operator's own namespace",
		set: func(c *Config, v string) error { c.Namespace = v; return nil }},
	{Env: "WATCH_NAMESPACE", Meaning: "the namespaces to which the operator is limited, with commas between; empty is all. In them, as elsewhere, it serves those that are labelled as managed. Set by OLM's install modes",
		set: setTargets},
	{Env: "BACKEND_NAMESPACE", Meaning: "the namespace of the platform's backend; empty means NAMESPACE",
		set: func(c *Config, v string) error { c.BackendNamespace = v; return nil }},
	{Env: "RELATED_IMAGE_RUNNER", Default: "quay.io/ambient_code/vteam_claude_runner:latest",
		Meaning: "image of the built-in runner type as the installed version was released with; mirrors of a disconnected cluster have it",
		set:     func(c *Config, v string) error { c.RunnerImage = v; return nil }},
	{Env: "AMBIENT_CODE_RUNNER_IMAGE", Meaning: "image of the built-in runner type; empty means RELATED_IMAGE_RUNNER",
		set: func(c *Config, v string) error { return unlessEmpty(v, &c.RunnerImage) }},
	{Env: "RELATED_IMAGE_STATE_SYNC", Default: "quay.io/ambient_code/vteam_state_sync:latest",
		Meaning: "as RELATED_IMAGE_RUNNER, for STATE_SYNC_IMAGE",
		set:     func(c *Config, v string) error { c.StateSyncImage = v; return nil }},
	{Env: "STATE_SYNC_IMAGE", Meaning: "image that fills workspaces and copies them to S3, for runner types that name none; empty means RELATED_IMAGE_STATE_SYNC",
		set: func(c *Config, v string) error { return unlessEmpty(v, &c.StateSyncImage) }},
	{Env: "STATE_SYNC_USER", Meaning: "number of the user that these containers run as, for an image that would run as root, where the cluster assigns none itself (not on OpenShift)",
		set: setStateSyncUser},
	{Env: "S3_ENDPOINT", Default: "https://s3.amazonaws.com", Meaning: "S3 server of projects that have no own, for runner types that keep workspaces in S3",
		set: setEndpoint},
	{Env: "S3_BUCKET", Default: "ambient-sessions", Meaning: "bucket of projects that have no own",
		set: func(c *Config, v string) error { c.S3Bucket = v; return nil }},
	{Env: "IMAGE_PULL_POLICY", Default: string(corev1.PullIfNotPresent), Meaning: "when nodes fetch runner images: Always, IfNotPresent or Never",
		set: setPullPolicy},
	{Env: "POD_FSGROUP", Meaning: "group that owns workspaces, where the cluster assigns none itself (not on OpenShift)",
		set: setFSGroup},
	{Env: "DEFAULT_INACTIVITY_TIMEOUT", Default: "86400", Meaning: "seconds after which an idle session stops, where neither session nor project says; 0 is off",
		set: func(c *Config, v string) (err error) { c.DefaultInactivity, err = seconds(v); return err }},
	{Env: "USE_VERTEX", Default: "false", Meaning: "runners reach models on Vertex AI",
		set: func(c *Config, v string) (err error) { c.Vertex.Enabled, err = boolean(v); return err }},
	{Env: "CLOUD_ML_REGION", Meaning: "region of Vertex AI, handed to runners",
		set: func(c *Config, v string) error { c.Vertex.Region = v; return nil }},
	{Env: "ANTHROPIC_VERTEX_PROJECT_ID", Meaning: "project of Vertex AI, handed to runners",
		set: func(c *Config, v string) error { c.Vertex.ProjectID = v; return nil }},
	{Env: "GOOGLE_APPLICATION_CREDENTIALS", Meaning: "path of the Vertex AI credentials inside the runner's container",
		set: func(c *Config, v string) error { c.Vertex.Credentials = v; return nil }},
	{Env: "LANGFUSE_ENABLED", Default: "false", Meaning: "runners report to Langfuse, with Secret " + workload.LangfuseSecret + " of the operator's namespace; on unless it is empty, 0 or false",
		set: func(c *Config, v string) error { c.Tracing.Langfuse = asked(v); return nil }},
	{Env: "MLFLOW_TRACING_ENABLED", Default: "false", Meaning: "runners report to MLflow, with Secret " + workload.MLflowSecret + " of the operator's namespace; on unless it is empty, 0 or false",
		set: func(c *Config, v string) error { c.Tracing.MLflow = asked(v); return nil }},
	{Env: "HTTP_PROXY", Meaning: "handed to runners", set: proxy("HTTP_PROXY")},
	{Env: "HTTPS_PROXY", Meaning: "handed to runners", set: proxy("HTTPS_PROXY")},
	{Env: "NO_PROXY", Meaning: "handed to runners", set: proxy("NO_PROXY")},
	{Env: "SESSION_START_DEADLINE", Default: "600", Meaning: "seconds a runner may take to be ready; 0 is for ever",
		set: func(c *Config, v string) (err error) { c.StartDeadline, err = seconds(v); return err }},
	{Env: "FINISHED_JOB_TTL", Default: "86400", Meaning: "seconds the Job of an ended run is kept for its logs",
		set: func(c *Config, v string) (err error) { c.FinishedJobTTL, err = seconds(v); return err }},
	{Env: "RUNNER_TOKEN_LIFETIME", Default: "86400", Meaning: "seconds a runner's token is asked to live (600 or more); it is renewed after two thirds",
		set: setTokenLifetime},
	{Env: "POD_NAME", Meaning: "the operator's own pod, by which it finds the Deployment that is to own what monitoring needs; empty wires no monitoring",
		set: func(c *Config, v string) error { c.PodName = v; return nil }},
	{Flag: "monitoring", Env: "MONITORING", Default: "auto", Meaning: "auto wires the operator into the monitoring that the cluster has, off removes all of that",
		define: func(c *Config, f *flag.FlagSet) {
			f.Func("monitoring", "auto wires the operator into the monitoring that the cluster has, off removes all of that (default auto)",
				func(v string) error { return setMonitoring(c, v) })
		},
		set: setMonitoring},
	{Env: "MONITORING_LABELS", Meaning: "labels for ServiceMonitor and PrometheusRule, for a Prometheus that selects by labels, such as release=prometheus",
		set: setMonitoringLabels},
	{Env: "ENABLE_USER_WORKLOAD_MONITORING", Default: "false", Meaning: "lets the operator switch on OpenShift's monitoring of user-defined projects for the cluster",
		set: func(c *Config, v string) (err error) { c.EnableUserWorkload, err = boolean(v); return err }},
	{Env: "RUNNER_PLACEMENT", Default: "operator", Meaning: "operator puts runners where the node selector and tolerations of the operator's own pod (POD_NAME) say, any on any node. Keys that begin with node-role.kubernetes.io/, node.kubernetes.io/, kubernetes.io/arch and kubernetes.io/os are for the operator alone",
		set: setPlacement},
	{Env: "OPERATOR_CONDITION_NAME", Meaning: "the object in which OLM is told to hold upgrades while sessions are being started or stopped; set by OLM",
		set: func(c *Config, v string) error { c.OperatorCondition = v; return nil }},
	{Env: "UPGRADE_HOLD_LIMIT", Default: "600", Meaning: "seconds for which an upgrade is held at most, and for which none is held afterwards; 0 holds none",
		set: func(c *Config, v string) (err error) { c.UpgradeHoldLimit, err = seconds(v); return err }},
}

var (
	errNumber  = errors.New("must be a whole number, 0 or more")
	errBoolean = errors.New("must be true or false")
)

// unlessEmpty keeps what another setting has set.
func unlessEmpty(v string, into *string) error {
	if v != "" {
		*into = v
	}
	return nil
}

// number leaves the setting as it is where the value is none.
func number(v string, into *int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return errNumber
	}
	*into = n
	return nil
}

func seconds(v string) (time.Duration, error) {
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return 0, errors.New("must be a whole number of seconds, 0 or more")
	}
	return time.Duration(n) * time.Second, nil
}

func boolean(v string) (bool, error) {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, errBoolean
	}
	return b, nil
}

// asked reads a switch as the platform reads it: on unless it says no. Its value comes out of a
// Secret, so nothing that is wrong with it may be told with the value.
func asked(v string) bool {
	word := strings.TrimSpace(v)
	on, err := strconv.ParseBool(word)
	return on || err != nil && word != ""
}

func setPullPolicy(c *Config, v string) error {
	switch policy := corev1.PullPolicy(v); policy {
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
		c.ImagePullPolicy = policy
		return nil
	default:
		return errors.New("must be Always, IfNotPresent or Never")
	}
}

// setStateSyncUser refuses root, which no namespace with restricted Pod Security lets in.
func setTargets(c *Config, v string) error {
	for name := range strings.SplitSeq(v, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("must be names of namespaces with commas between; %q is none", name)
		}
		c.TargetNamespaces = append(c.TargetNamespaces, name)
	}
	slices.Sort(c.TargetNamespaces)
	c.TargetNamespaces = slices.Compact(c.TargetNamespaces)
	return nil
}

func setStateSyncUser(c *Config, v string) error {
	if v == "" {
		return nil
	}
	user, err := strconv.ParseUint(v, 10, 31)
	if err != nil || user == 0 {
		return errors.New("must be the number of a user other than root, or empty")
	}
	number := int64(user)
	c.StateSyncUser = &number
	return nil
}

// setEndpoint refuses what is no address of a server.
func setEndpoint(c *Config, v string) error {
	at, err := url.Parse(v)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return errors.New("must be the URL of an S3 server, such as http://minio.example.svc:9000")
	}
	c.S3Endpoint = v
	return nil
}

func setPlacement(c *Config, v string) error {
	if v != "operator" && v != "any" {
		return errors.New("must be operator or any")
	}
	c.RunnersAnywhere = v == "any"
	return nil
}

func setFSGroup(c *Config, v string) error {
	if v == "" {
		return nil
	}
	group, err := strconv.ParseInt(v, 10, 64)
	if err != nil || group < 0 {
		return errors.New("must be the number of a group, or empty")
	}
	c.FSGroup = &group
	return nil
}

func setMonitoring(c *Config, v string) error {
	if v != "auto" && v != "off" {
		return errors.New("must be auto or off")
	}
	c.MonitoringOff = v == "off"
	return nil
}

// setMonitoringLabels refuses what the API server would refuse as labels, and what would be without
// effect.
func setMonitoringLabels(c *Config, v string) error {
	set, err := labels.ConvertSelectorToLabelsMap(v)
	if err != nil {
		return errors.New("must be labels with commas between them, such as release=prometheus,team=sre")
	}
	if len(set) > 0 {
		c.MonitoringLabels = set
	}
	return monitoring.CheckLabels(set)
}

// setTokenLifetime refuses what the TokenRequest API would refuse.
func setTokenLifetime(c *Config, v string) (err error) {
	c.TokenLifetime, err = seconds(v)
	if err == nil && c.TokenLifetime < 10*time.Minute {
		return errors.New("must be 600 seconds or more")
	}
	return err
}

func proxy(name string) func(*Config, string) error {
	return func(c *Config, v string) error {
		if v != "" {
			c.Proxy = append(c.Proxy, corev1.EnvVar{Name: name, Value: v})
		}
		return nil
	}
}
