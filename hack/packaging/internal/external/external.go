// Package external is a validator of bundles beside those of operator-sdk, in the form in which
// operator-sdk runs the validators of others. It reads nothing but the bundle: whether the examples that
// the Console offers would be taken by the API server, whether every question of OpenShift's catalog is
// answered, and whether images can be mirrored when the bundle says that they can.
package external

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	problems "github.com/operator-framework/api/pkg/validation/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/bundle"
	"github.com/ambient-code/agentic-operator/hack/packaging/internal/kinds"
)

const feature = "features.operators.openshift.io/"

// Features are the questions of OpenShift's catalog, each to be answered with true or false.
var Features = []string{"cnf", "cni", "csi", "disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws", "token-auth-azure", "token-auth-gcp"}

// Validate looks at the bundle in a folder.
func Validate(ctx context.Context, dir string) (problems.ManifestResult, error) {
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
	return result, examples(ctx, read, say)
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

// examples wants every example to be one that the API server would take, by the schema and the rules of
// its kind and version.
func examples(ctx context.Context, b *manifests.Bundle, say report) error {
	var objects []unstructured.Unstructured
	if err := json.Unmarshal([]byte(b.CSV.Annotations["alm-examples"]), &objects); err != nil {
		return fmt.Errorf("reading the examples: %w", err)
	}
	for i := range objects {
		judge, err := kinds.JudgeOf(b.V1CRDs, &objects[i])
		if err != nil {
			return fmt.Errorf("judging the examples: %w", err)
		}
		if judge == nil {
			say("alm-examples", "%s %s is of no kind of the bundle", objects[i].GetKind(), objects[i].GetName())
			continue
		}
		for _, wrong := range judge.Created(ctx, &objects[i]) {
			say("alm-examples", "%s %s: %s", objects[i].GetKind(), objects[i].GetName(), wrong)
		}
	}
	return nil
}
