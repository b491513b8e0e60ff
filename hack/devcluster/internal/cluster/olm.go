package cluster

import "github.com/ambient-code/agentic-operator/hack/devcluster/internal/build"

// olmVersion is that of components/olm/go.mod.
const olmVersion = "0.46.0"

// OLM lists the programs of the Operator Lifecycle Manager, a registry for the images of bundles and
// the probe of catalogs. No cluster needs them: they run on one, in images that its tests make.
func OLM() []build.Component {
	const module = "github.com/operator-framework/operator-lifecycle-manager"
	program := func(name, pkg string) build.Component {
		return build.Component{
			Name: name, Module: "olm", Package: module + "/" + pkg,
			LDFlags: "-X " + module + "/pkg/version.OLMVersion=" + olmVersion,
		}
	}
	return []build.Component{
		program("olm", "cmd/olm"),
		program("catalog", "cmd/catalog"),
		program("copy-content", "cmd/copy-content"),
		program("cpb", "util/cpb"),
		{Name: "registry", Module: "registry", Package: "."},
		{Name: "grpc_health_probe", Module: "registry", Package: "github.com/grpc-ecosystem/grpc-health-probe"},
	}
}
