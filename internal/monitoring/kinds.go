package monitoring

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kind is a kind of object that the wiring looks at or consists of.
type Kind struct {
	schema.GroupVersionResource
	Kind string
	// Optional kinds come with a CustomResourceDefinition and go with it.
	Optional bool
}

// CRD is the name of the CustomResourceDefinition that brings an optional kind.
func (k Kind) CRD() string { return k.Resource + "." + k.Group }

// APIVersion is the group and version as objects name them.
func (k Kind) APIVersion() string { return k.GroupVersion().String() }

func kind(group, version, resource, name string, optional bool) Kind {
	return Kind{schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, name, optional}
}

// The kinds of the wiring.
var (
	Services        = kind("", "v1", "services", "Service", false)
	Secrets         = kind("", "v1", "secrets", "Secret", false)
	ConfigMaps      = kind("", "v1", "configmaps", "ConfigMap", false)
	Roles           = kind("rbac.authorization.k8s.io", "v1", "roles", "Role", false)
	RoleBindings    = kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", false)
	NetworkPolicies = kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", false)
	ServiceMonitors = kind("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor", true)
	PrometheusRules = kind("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule", true)
	Prometheuses    = kind("monitoring.coreos.com", "v1", "prometheuses", "Prometheus", true)
	QuickStarts     = kind("console.openshift.io", "v1", "consolequickstarts", "ConsoleQuickStart", true)
	YAMLSamples     = kind("console.openshift.io", "v1", "consoleyamlsamples", "ConsoleYAMLSample", true)
)

// OptionalKinds are those that a cluster may lack, get later and lose again, each on its own.
var OptionalKinds = []Kind{ServiceMonitors, PrometheusRules, Prometheuses, QuickStarts, YAMLSamples}

// Names of what is looked at and of what is made.
const (
	MonitoringNamespace = "openshift-monitoring"
	ConsoleNamespace    = "openshift-config-managed"
	UserWorkloadConfig  = "cluster-monitoring-config"
	ReaderAccount       = "agentic-operator-metrics-reader"

	MetricsService  = "agentic-operator-metrics"
	TokenSecret     = "agentic-operator-metrics-token"
	TokenKey        = "token"
	AuthorityKey    = "ca.crt"
	StateConfigMap  = "agentic-operator-monitoring"
	PlatformAccess  = "prometheus-k8s"
	DashboardObject = "grafana-dashboard-agentic-operator"
	QuickStart      = "agentic-operator-first-session"
	YAMLSample      = "agentic-operator-session"
	MonitorObject   = "agentic-operator"
	metricsPolicy   = "agentic-operator-metrics"
)

// Place says where an object of the wiring is, whether it is there or not.
type Place struct {
	Kind      Kind
	Namespace string
	Name      string
	// Part is what the object is for.
	Part Part
}

// Away says that the object is not in the operator's namespace, so that nothing removes it when the
// operator's Deployment goes, except the operator.
func (p Place) Away(namespace string) bool { return p.Namespace != namespace }

// Places lists every object that the wiring may consist of, for an operator in this namespace. What
// stands here and is not wanted is removed.
func Places(namespace string) []Place {
	return []Place{
		{Services, namespace, MetricsService, PartServiceMonitor},
		{NetworkPolicies, namespace, metricsPolicy, PartNetworkPolicy},
		{Roles, namespace, PlatformAccess, PartServiceMonitor},
		{RoleBindings, namespace, PlatformAccess, PartServiceMonitor},
		{Secrets, namespace, TokenSecret, PartScrapeToken},
		{ServiceMonitors, namespace, MonitorObject, PartServiceMonitor},
		{PrometheusRules, namespace, MonitorObject, PartPrometheusRule},
		{ConfigMaps, namespace, DashboardObject, PartDashboard},
		{ConfigMaps, ConsoleNamespace, DashboardObject, PartDashboard},
		{QuickStarts, "", QuickStart, PartQuickStart},
		{YAMLSamples, "", YAMLSample, PartYAMLSample},
		{ConfigMaps, namespace, StateConfigMap, PartState},
	}
}

// Part is a part of the wiring that is there or not. It is a label of ambient_monitoring_wired,
// unless it is Told only.
type Part string

// Told says that a part is nothing that is kept in place: it tells of what others do.
func (p Part) Told() bool {
	return p == PartSelected || p == PartLoaded || p == PartScraped || p == PartCertificate
}

// The parts.
const (
	PartServiceMonitor Part = "service_monitor"
	PartPrometheusRule Part = "prometheus_rule"
	PartDashboard      Part = "dashboard"
	PartQuickStart     Part = "quick_start"
	PartYAMLSample     Part = "yaml_sample"
	PartScrapeToken    Part = "scrape_token"
	PartNetworkPolicy  Part = "network_policy"
	PartUserWorkload   Part = "user_workload_monitoring"
	// PartState is the account of all others; it has no condition of its own.
	PartState Part = "state"
	// PartCertificate says with which certificate metrics are served.
	PartCertificate Part = "certificate"
	// PartSelected says whether a Prometheus selects the ServiceMonitor.
	PartSelected Part = "selected"
	// PartLoaded says whether a Prometheus that reads the metrics loads the PrometheusRule.
	PartLoaded Part = "loaded"
	// PartScraped says whether the metrics are really read.
	PartScraped Part = "scraped"
)
