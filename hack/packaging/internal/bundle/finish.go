// Package bundle finishes the bundle that operator-sdk generates: what stands in files of their
// own (the icon) or follows from the catalog (the version before) or from the images is filled in
// here, so that nobody keeps it by hand.
package bundle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

const (
	// openShiftVersions are those that have at least the Kubernetes of minKubeVersion (1.30).
	openShiftVersions = "v4.17"
	// maxOpenShiftVersion is the last one whose Kubernetes (1.37) the tests have seen.
	maxOpenShiftVersion = "5.1"
	relatedImagePrefix  = "RELATED_IMAGE_"
)

// Facts are what the generated files cannot know.
type Facts struct {
	// Icon is an SVG image.
	Icon []byte
	// Created is the day of the version, as 2006-01-02.
	Created string
	// Replaces names the CSV before this one; empty for the first.
	Replaces string
	// SkipRange is the range of versions from which a direct upgrade is safe; empty for none.
	SkipRange string
}

// Finish completes the bundle in dir and the Dockerfile beside it. Running it twice changes
// nothing.
func Finish(dir, dockerfile string, facts Facts) error {
	if err := finishCSV(dir, facts); err != nil {
		return err
	}
	if err := finishAnnotations(dir); err != nil {
		return err
	}
	if err := finishDockerfile(dockerfile); err != nil {
		return err
	}
	properties := fmt.Sprintf("properties:\n- type: olm.maxOpenShiftVersion\n  value: %q\n", maxOpenShiftVersion)
	return write(filepath.Join(dir, "metadata", "properties.yaml"), []byte(properties))
}

func finishCSV(dir string, facts Facts) error {
	path, err := CSVPath(dir)
	if err != nil {
		return err
	}
	// The typed form serves to read, the untyped to write: the typed would add empty fields.
	csv, err := ReadCSV(path)
	if err != nil {
		return err
	}
	raw, err := readYAML(path)
	if err != nil {
		return err
	}
	metadata, spec := section(raw, "metadata"), section(raw, "spec")
	annotations := section(metadata, "annotations")
	annotations["createdAt"] = facts.Created + "T00:00:00Z"
	annotations["containerImage"] = csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image
	if annotations["alm-examples"], err = withStatus(csv.Annotations["alm-examples"]); err != nil {
		return err
	}
	if facts.SkipRange != "" {
		annotations["olm.skipRange"] = facts.SkipRange
	}
	if facts.Replaces != "" {
		spec["replaces"] = facts.Replaces
	}
	spec["icon"] = []any{map[string]any{"base64data": base64.StdEncoding.EncodeToString(facts.Icon), "mediatype": "image/svg+xml"}}
	images := RelatedImages(csv)
	related := make([]any, 0, len(images))
	for _, image := range images {
		related = append(related, map[string]any{"name": image.Name, "image": image.Image})
	}
	spec["relatedImages"] = related
	if pinned(images) {
		// A mirror can serve only what is named by digest.
		annotations["features.operators.openshift.io/disconnected"] = "true"
		annotations["operators.openshift.io/infrastructure-features"] = `["disconnected", "proxy-aware"]`
	}
	out, err := yaml.Marshal(raw)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return write(path, out)
}

// firstStatus is what the API server gives a new object of each kind, or the operator at once.
// Scorecard wants a status in examples; whoever applies one with it gets this status anyway.
var firstStatus = map[string]any{
	"AgenticSession":  map[string]any{"phase": "Pending"},
	"ProjectSettings": map[string]any{"observedGeneration": 1},
}

func withStatus(examples string) (string, error) {
	var objects []map[string]any
	if err := json.Unmarshal([]byte(examples), &objects); err != nil {
		return "", fmt.Errorf("the annotation alm-examples is no JSON: %w", err)
	}
	for _, o := range objects {
		kind, _ := o["kind"].(string)
		if status, found := firstStatus[kind]; found {
			o["status"] = status
		}
	}
	out, err := json.MarshalIndent(objects, "", "  ")
	if err != nil {
		return "", fmt.Errorf("writing the examples: %w", err)
	}
	return string(out), nil
}

// RelatedImages are the images the operator consists of and those it starts.
func RelatedImages(csv *operators.ClusterServiceVersion) []operators.RelatedImage {
	var images []operators.RelatedImage
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for i := range d.Spec.Template.Spec.Containers {
			c := &d.Spec.Template.Spec.Containers[i]
			images = append(images, operators.RelatedImage{Name: c.Name, Image: c.Image})
			for _, e := range c.Env {
				if name, found := strings.CutPrefix(e.Name, relatedImagePrefix); found {
					name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
					images = append(images, operators.RelatedImage{Name: name, Image: e.Value})
				}
			}
		}
	}
	return images
}

func pinned(images []operators.RelatedImage) bool {
	return !slices.ContainsFunc(images, func(i operators.RelatedImage) bool { return !strings.Contains(i.Image, "@sha256:") })
}

func finishAnnotations(dir string) error {
	path := filepath.Join(dir, "metadata", "annotations.yaml")
	raw, err := readYAML(path)
	if err != nil {
		return err
	}
	section(raw, "annotations")["com.redhat.openshift.versions"] = openShiftVersions
	out, err := yaml.Marshal(raw)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return write(path, out)
}

func finishDockerfile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the bundle's Dockerfile: %w", err)
	}
	label := "LABEL com.redhat.openshift.versions=" + openShiftVersions
	if bytes.Contains(content, []byte(label)) {
		return nil
	}
	before := []byte("\n# Labels for testing.")
	if !bytes.Contains(content, before) {
		return fmt.Errorf("%s has no line %q to put our labels before", path, bytes.TrimSpace(before))
	}
	return write(path, bytes.Replace(content, before, []byte(label+"\n"+string(before)), 1))
}

// CSVPath finds the one ClusterServiceVersion of a bundle.
func CSVPath(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "manifests", "*.clusterserviceversion.yaml"))
	if err != nil || len(found) != 1 {
		return "", errors.Join(fmt.Errorf("%s must hold one *.clusterserviceversion.yaml, it holds %d; run make bundle", filepath.Join(dir, "manifests"), len(found)), err)
	}
	return found[0], nil
}

// ReadCSV reads a ClusterServiceVersion.
func ReadCSV(path string) (*operators.ClusterServiceVersion, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the ClusterServiceVersion: %w", err)
	}
	csv := &operators.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict(content, csv); err != nil {
		return nil, fmt.Errorf("%s is no ClusterServiceVersion: %w", path, err)
	}
	return csv, nil
}

func readYAML(path string) (map[string]any, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a file of the bundle: %w", err)
	}
	raw := map[string]any{}
	if err := yaml.Unmarshal(content, &raw); err != nil {
		return nil, fmt.Errorf("%s is no YAML: %w", path, err)
	}
	return raw, nil
}

// section is a map inside a map, made when it is not there.
func section(in map[string]any, key string) map[string]any {
	if m, ok := in[key].(map[string]any); ok {
		return m
	}
	m := map[string]any{}
	in[key] = m
	return m
}

func write(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("writing a file of the bundle: %w", err)
	}
	return nil
}
