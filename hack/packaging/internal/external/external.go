// Package external is a validator of bundles beside those of operator-sdk, in the form in which
// operator-sdk runs the validators of others. It reads nothing but the bundle: whether the examples that
// the Console offers would be taken by the API server, whether every question of OpenShift's catalog is
// answered, and whether images can be mirrored when the bundle says that they can.
package external

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	problems "github.com/operator-framework/api/pkg/validation/errors"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/bundle"
)

const feature = "features.operators.openshift.io/"

// Features are the questions of OpenShift's catalog, each to be answered with true or false.
var Features = []string{"cnf", "cni", "csi", "disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws", "token-auth-azure", "token-auth-gcp"}

// Validate looks at the bundle in a folder.
func Validate(dir string) (problems.ManifestResult, error) {
	read, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return problems.ManifestResult{}, fmt.Errorf("reading the bundle: %w", err)
	}
	result := problems.ManifestResult{Name: read.CSV.Name}
	say := func(field, format string, args ...any) {
		result.Add(problems.ErrFailedValidation(fmt.Sprintf(format, args...), field))
	}
	answers(read.CSV, say)
	images(read.CSV, say)
	return result, examples(read, say)
}

type report func(field, format string, args ...any)

func answers(csv *operators.ClusterServiceVersion, say report) {
	for _, name := range Features {
		if v := csv.Annotations[feature+name]; v != "true" && v != "false" {
			say(feature+name, "is %q: answer true or false", v)
		}
	}
}

// images wants all that is used to be listed, and to be named by digest where mirrors are promised: a
// mirror finds nothing by a tag.
func images(csv *operators.ClusterServiceVersion, say report) {
	for _, used := range bundle.RelatedImages(csv) {
		if !slices.ContainsFunc(csv.Spec.RelatedImages, func(i operators.RelatedImage) bool { return i.Image == used.Image }) {
			say("spec.relatedImages", "%s is used and not listed", used.Image)
		}
	}
	promised := csv.Annotations[feature+"disconnected"] == "true"
	for _, listed := range csv.Spec.RelatedImages {
		if promised && !strings.Contains(listed.Image, "@sha256:") {
			say(feature+"disconnected", "is promised, but %s is not named by digest", listed.Image)
		}
	}
}

// examples wants every example to be valid by the schema of its kind and version.
func examples(b *manifests.Bundle, say report) error {
	var objects []unstructured.Unstructured
	if err := json.Unmarshal([]byte(b.CSV.Annotations["alm-examples"]), &objects); err != nil {
		return fmt.Errorf("reading the examples: %w", err)
	}
	for i := range objects {
		schema := schemaOf(b.V1CRDs, &objects[i])
		if schema == nil {
			say("alm-examples", "%s %s is of no kind of the bundle", objects[i].GetKind(), objects[i].GetName())
			continue
		}
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, internal, nil); err != nil {
			return fmt.Errorf("reading the schema of %s: %w", objects[i].GetKind(), err)
		}
		validator, _, err := validation.NewSchemaValidator(internal)
		if err != nil {
			return fmt.Errorf("reading the schema of %s: %w", objects[i].GetKind(), err)
		}
		for _, wrong := range validation.ValidateCustomResource(nil, objects[i].Object, validator) {
			say("alm-examples", "%s %s: %v", objects[i].GetKind(), objects[i].GetName(), wrong)
		}
	}
	return nil
}

func schemaOf(crds []*apiextensionsv1.CustomResourceDefinition, o *unstructured.Unstructured) *apiextensionsv1.JSONSchemaProps {
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if crd.Spec.Names.Kind == o.GetKind() && crd.Spec.Group+"/"+v.Name == o.GetAPIVersion() && v.Schema != nil {
				return v.Schema.OpenAPIV3Schema
			}
		}
	}
	return nil
}
