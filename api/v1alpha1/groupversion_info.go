// Package v1alpha1 is the API of the Agentic Operator: what a user may ask for (AgenticSession,
// ProjectSettings), the words the operator answers with (vocabulary.go) and the annotations and
// labels both sides agree on (annotations.go). Defaults and validation are markers on the types;
// the CustomResourceDefinitions in config/crd/bases are generated from them.
//
// +kubebuilder:object:generate=true
// +groupName=vteam.ambient-code
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the API group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "vteam.ambient-code", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the kinds of this package with a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&AgenticSession{}, &AgenticSessionList{},
		&ProjectSettings{}, &ProjectSettingsList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
