// Package monitoring says how an operator is wired into the monitoring of its cluster: which of the
// stacks there is to scrape it (Mode), what objects that needs (Objects), whether somebody reads
// them, and what is missing and how to mend it (Report). It decides by a World that was observed
// and has no client and no clock; controllers/wiring observes, writes and tells.
//
// Nothing here is needed for sessions to run. A cluster without any monitoring is a good cluster:
// then there is little to make and nothing to complain about.
package monitoring

import "k8s.io/apimachinery/pkg/labels"

// Mode is the stack that scrapes the operator.
type Mode string

// The modes.
const (
	// ModeUserWorkload is OpenShift's monitoring of user-defined projects.
	ModeUserWorkload Mode = "UserWorkload"
	// ModePlatform is OpenShift's own Prometheus, for namespaces with a label that says so.
	ModePlatform Mode = "Platform"
	// ModeKubernetes is any other cluster, with or without a prometheus-operator.
	ModeKubernetes Mode = "Kubernetes"
)

const (
	labelClusterMonitoring = "openshift.io/cluster-monitoring"
	labelUserMonitoring    = "openshift.io/user-monitoring"
)

// World is all that the wiring depends on.
type World struct {
	// Installation is this operator.
	Installation Installation
	// Off takes everything away that was made.
	Off bool
	// EnableUserWorkload is the administrator's wish that the operator switches on OpenShift's
	// monitoring of user-defined projects.
	EnableUserWorkload bool
	// UserWorkload is what is known of that monitoring.
	UserWorkload UserWorkload
	// Labels are put on ServiceMonitor and PrometheusRule, for stacks that select by labels.
	Labels map[string]string
	// NamespaceLabels are those of the operator's namespace.
	NamespaceLabels labels.Set
	// OpenShift says that the cluster has OpenShift's monitoring, Console that it has a place for
	// dashboards of the Console.
	OpenShift, Console bool
	// Served are the optional kinds that the API server has now.
	Served map[Kind]bool
	// Serving is how metrics are served.
	Serving Serving
	// TokenRefreshedAt is when the scrape token that lies ready was made; empty when there is none.
	TokenRefreshedAt string
	// TrustVersion is the version of the object that Serving.Trust names; empty when it is not there.
	TrustVersion string
	// Scrapes says whether the metrics of this replica are read.
	Scrapes Scrapes
	// MonitorLabels are those that the ServiceMonitor has now, whoever put them there.
	MonitorLabels labels.Set
	// Prometheuses are the Prometheus objects of the cluster.
	Prometheuses []Prometheus
	Content      Content
}

// Installation is an operator in a cluster.
type Installation struct {
	Namespace  string
	Deployment string
	UID        string
	// PodLabels select the operator's pods.
	PodLabels map[string]string
	// OLM says that the Operator Lifecycle Manager installed it.
	OLM bool
}

// Name tells installations apart.
func (i Installation) Name() string { return i.Namespace + "/" + i.Deployment }

// Trust is the object of the operator's namespace that holds the authority of the certificate which
// metrics are served with. With neither name scrapers are expected to know the authority.
type Trust struct {
	ConfigMap, Secret, Key string
}

// Serving is how metrics are served.
type Serving struct {
	// Secure is HTTPS for callers that may read metrics; otherwise it is HTTP for all.
	Secure bool
	// Port and HealthPort are the ports of the pod; 0 serves none.
	Port, HealthPort int32
	// Source is where the certificate comes from; empty while there is none.
	Source string
	// Problem says which Secret with a certificate cannot be used, why and what to do; empty for none.
	Problem string
	// Trust verifies the certificate, unless Authority does: certificates that the operator hands to
	// scrapers itself, next to their token.
	Trust     Trust
	Authority string
}

// trust is where scrapers find what verifies the certificate.
func (s Serving) trust() Trust {
	if s.Authority != "" {
		return Trust{Secret: TokenSecret, Key: AuthorityKey}
	}
	return s.Trust
}

// Scrapes says whether anything reads metrics.
type Scrapes string

// What is known of scrapes.
const (
	// ScrapesAwaited is too early to tell.
	ScrapesAwaited Scrapes = ""
	ScrapesSeen    Scrapes = "Seen"
	// ScrapesMissing says that nothing has read metrics for a while.
	ScrapesMissing Scrapes = "Missing"
)

// Content is what is shown and watched for, made elsewhere.
type Content struct {
	// Rules, QuickStart and YAMLSample are specs of their kinds; nil for none.
	Rules, QuickStart, YAMLSample map[string]any
	// ConsoleDashboard and GrafanaDashboard are JSON; empty for none.
	ConsoleDashboard, GrafanaDashboard string
}

// Mode is the stack that is to scrape, by the label that the operator's namespace has now: with it
// OpenShift's own Prometheus looks at the namespace and the other does not, without it the reverse.
func (w *World) Mode() Mode {
	switch {
	case !w.OpenShift:
		return ModeKubernetes
	case w.NamespaceLabels[labelClusterMonitoring] == "true":
		return ModePlatform
	default:
		return ModeUserWorkload
	}
}

// WantsToken says that scrapers need a token.
func (w *World) WantsToken() bool {
	return !w.Off && w.Served[ServiceMonitors] && w.Serving.Secure && w.Serving.Port != 0
}

// WantsUserWorkload says that the monitoring of user-defined projects is to be switched on.
func (w *World) WantsUserWorkload() bool {
	return !w.Off && w.EnableUserWorkload && w.OpenShift
}

// waits says what the ServiceMonitor waits for; empty for nothing. With a Secret or ConfigMap that
// is missing, scrapers would refuse all of it.
func (w *World) waits() string {
	trust := w.Serving.trust()
	switch {
	case !w.Serving.Secure:
		return ""
	case w.TokenRefreshedAt == "":
		return "a token for scrapers"
	case w.Serving.Source == "":
		return "a certificate for metrics"
	case trust != Trust{} && w.TrustVersion == "":
		return "the authority of the certificate, " + trust.ConfigMap + trust.Secret
	default:
		return ""
	}
}
