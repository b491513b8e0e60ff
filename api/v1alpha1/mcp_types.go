package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// MCPServers configures tools that speak the Model Context Protocol.
type MCPServers struct {
	// Servers to add, by name. The settings of a server are open: the agent framework defines them.
	// +optional
	// +kubebuilder:validation:MaxProperties=200
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Custom MCP servers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Custom map[string]MCPServer `json:"custom,omitempty"`

	// Names of servers that are on by default and must not be used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Disabled MCP servers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Disabled []string `json:"disabled,omitempty"`
}

// MCPServer holds the settings of one server as a JSON object, handed to the runner as it is.
//
// +kubebuilder:pruning:PreserveUnknownFields
type MCPServer struct {
	runtime.RawExtension `json:",inline"`
}
