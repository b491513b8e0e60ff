package cluster

import "github.com/ambient-code/agentic-operator/hack/devcluster/internal/build"

// kubernetesVersion is what the programs say they are. Clients parse it, so it must be a version;
// it is that of components/kubernetes/go.mod.
const kubernetesVersion = "v1.37.2"

const kubernetesLDFlags = "-X k8s.io/component-base/version.gitVersion=" + kubernetesVersion +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

// Kubernetes is a program of Kubernetes itself, such as kubelet.
func Kubernetes(name string) build.Component {
	return build.Component{Name: name, Module: "kubernetes", Package: "k8s.io/kubernetes/cmd/" + name, LDFlags: kubernetesLDFlags}
}

// ControlPlane lists the programs that every cluster needs.
func ControlPlane() []build.Component {
	return []build.Component{
		{Name: "etcd", Module: "kubernetes", Package: "go.etcd.io/etcd/server/v3", LDFlags: kubernetesLDFlags},
		Kubernetes("kube-apiserver"),
		Kubernetes("kube-controller-manager"),
		Kubernetes("kube-scheduler"),
		Kubernetes("kubectl"),
	}
}

// The versions of monitoring's programs, which they say of themselves; those of the go.mod files in
// components/prometheus-operator and components/prometheus. (Prometheus 3.16 is v0.316 as a module.)
const (
	prometheusOperatorVersion = "0.85.0"
	prometheusVersion         = "3.16.0"
	versionLDFlag             = "-X github.com/prometheus/common/version.Version="
)

// Monitoring lists the programs of a monitoring stack. No cluster needs them: they run beside one.
func Monitoring() []build.Component {
	return []build.Component{
		{
			Name: "prometheus-operator", Module: "prometheus-operator",
			Package: "github.com/prometheus-operator/prometheus-operator/cmd/operator",
			LDFlags: versionLDFlag + prometheusOperatorVersion,
		},
		{
			Name: "prometheus", Module: "prometheus",
			Package: "github.com/prometheus/prometheus/cmd/prometheus",
			LDFlags: versionLDFlag + prometheusVersion,
			// Of the many ways to find targets only that of Kubernetes, which halves the build.
			Tags: "remove_all_sd,enable_kubernetes_sd",
		},
	}
}
