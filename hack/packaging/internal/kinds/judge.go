package kinds

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	limits "k8s.io/apiserver/pkg/apis/cel"
)

// Judge is what the API server would make of objects of one version of a kind.
type Judge struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

// JudgeOf finds the definition of an object's kind and version; none is nil.
func JudgeOf(crds []*apiextensionsv1.CustomResourceDefinition, o *unstructured.Unstructured) (*Judge, error) {
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if crd.Spec.Names.Kind == o.GetKind() && crd.Spec.Group+"/"+v.Name == o.GetAPIVersion() && v.Schema != nil {
				return judge(v.Schema.OpenAPIV3Schema)
			}
		}
	}
	return nil, nil
}

func judge(props *apiextensionsv1.JSONSchemaProps) (*Judge, error) {
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil)
	if err != nil {
		return nil, fmt.Errorf("reading a schema: %w", err)
	}
	j := &Judge{}
	if j.values, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, fmt.Errorf("reading the values of a schema: %w", err)
	}
	if j.structural, err = schema.NewStructural(internal); err != nil {
		return nil, fmt.Errorf("reading the structure of a schema: %w", err)
	}
	j.rules = cel.NewValidator(j.structural, true, limits.PerCallLimit)
	return j, nil
}

// Stored is what OLM asks of each stored object before it lets an upgrade go on: that it is valid by the
// values of the new schema. It knows nothing of rules.
func (j *Judge) Stored(o *unstructured.Unstructured) (refusals []string) {
	for _, wrong := range validation.ValidateCustomResource(nil, o.Object, j.values) {
		refusals = append(refusals, wrong.Error())
	}
	return refusals
}

// Created is why the API server would refuse the object as a new one, rules and unknown fields included.
func (j *Judge) Created(ctx context.Context, o *unstructured.Unstructured) (refusals []string) {
	o = o.DeepCopy()
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, unknown := range pruning.PruneWithOptions(o.Object, j.structural, true, options) {
		refusals = append(refusals, unknown+": there is no such field")
	}
	defaulting.Default(o.Object, j.structural)
	refusals = append(refusals, j.Stored(o)...)
	for _, wrong := range listtype.ValidateListSetsAndMaps(nil, j.structural, o.Object) {
		refusals = append(refusals, wrong.Error())
	}
	if len(refusals) > 0 || j.rules == nil {
		return refusals // rules are asked only of objects whose values are right
	}
	wrong, _ := j.rules.Validate(ctx, nil, j.structural, o.Object, nil, limits.RuntimeCELCostBudget)
	for _, w := range wrong {
		refusals = append(refusals, w.Error())
	}
	return refusals
}
