package table

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-framework/api/pkg/manifests"
	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/bundle"
	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
)

// files are those of the repository that the features are read from.
type files struct {
	root       string
	csv        *operators.ClusterServiceVersion
	bundle     *manifests.Bundle
	notes      map[string]string // metadata/annotations.yaml
	properties []property
	template   *catalog.Template
	examples   []map[string]any
	scorecard  []scorecardTest
}

type property struct{ Type, Value string }

type scorecardTest struct {
	Image  string            `json:"image"`
	Labels map[string]string `json:"labels"`
}

func read(root string) (*files, error) {
	f := &files{root: root}
	dir := f.path("bundle")
	path, err := bundle.CSVPath(dir)
	if err != nil {
		return nil, err
	}
	if f.csv, err = bundle.ReadCSV(path); err != nil {
		return nil, err
	}
	if f.bundle, err = manifests.GetBundleFromDir(dir); err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	if f.template, err = catalog.Load(f.path("catalog", "template.yaml")); err != nil {
		return nil, err
	}
	var notes struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := f.yaml(&notes, "bundle", "metadata", "annotations.yaml"); err != nil {
		return nil, err
	}
	f.notes = notes.Annotations
	var properties struct {
		Properties []property `json:"properties"`
	}
	if err := f.yaml(&properties, "bundle", "metadata", "properties.yaml"); err != nil {
		return nil, err
	}
	f.properties = properties.Properties
	if err := json.Unmarshal([]byte(f.csv.Annotations["alm-examples"]), &f.examples); err != nil {
		return nil, fmt.Errorf("reading the examples: %w", err)
	}
	f.scorecard, err = scorecardTests(root)
	return f, err
}

// scorecardTests are those that the bundle lists.
func scorecardTests(root string) ([]scorecardTest, error) {
	var config struct {
		Stages []struct {
			Tests []scorecardTest `json:"tests"`
		} `json:"stages"`
	}
	f := files{root: root}
	if err := f.yaml(&config, "bundle", "tests", "scorecard", "config.yaml"); err != nil {
		return nil, err
	}
	var all []scorecardTest
	for _, stage := range config.Stages {
		all = append(all, stage.Tests...)
	}
	return all, nil
}

func (f *files) path(parts ...string) string {
	return filepath.Join(append([]string{f.root}, parts...)...)
}

func (f *files) yaml(into any, parts ...string) error {
	content, err := os.ReadFile(f.path(parts...))
	if err != nil {
		return fmt.Errorf("reading a file of the bundle: %w", err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Join(parts...), err)
	}
	return nil
}
