package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// scorecardAccess names the namespace and the ServiceAccount of test/scorecard/rbac.yaml.
	scorecardAccess = "agentic-operator-scorecard"
	// scorecardPatience is longer than all tests together may take on a slow machine.
	scorecardPatience = "20m"
)

// ScorecardTest is the result of one of scorecard's tests.
type ScorecardTest struct {
	// Test and Suite are the labels that the bundle's configuration gives it.
	Test, Suite string
	// State is "pass" or tells that it is not.
	State       string
	Errors      []string
	Suggestions []string
	Log         string
}

// scorecardTests is what a bundle lists, and what scorecard prints.
type scorecardTests struct {
	Image  string            `json:"image"`
	Labels map[string]string `json:"labels"`
}

// Scorecard runs the tests that a bundle lists as pods of the real node, under Pod Security
// "restricted", on the operator that is installed; all of them, or those that a selector on their labels
// picks. It gives the result of each, at least one, and the report as scorecard prints it.
func (c *Cluster) Scorecard(ctx context.Context, bundle, selector string) (results []ScorecardTest, printed []byte, err error) {
	images, listed, err := c.scorecardImages(bundle)
	if err != nil {
		return nil, nil, err
	}
	if err := c.Load(ctx, images...); err != nil {
		return nil, nil, err
	}
	if _, err := c.RunKubectl(ctx, "apply", "-f", filepath.Join(c.root, "test", "scorecard", "rbac.yaml")); err != nil {
		return nil, nil, fmt.Errorf("giving scorecard its rights: %w", err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "operator-sdk"), "scorecard", bundle, "--kubeconfig", c.Kubeconfig,
		"--namespace", scorecardAccess, "--service-account", scorecardAccess, "--pod-security", "restricted",
		"--untar-image", ScorecardImage.Name, "--wait-time", scorecardPatience, "--output", "json", "--selector", selector)
	cmd.Stdout, cmd.Stderr = &stdout, io.MultiWriter(&stderr, c.out)
	failed := cmd.Run()
	// It fails where a test does, and has printed all results then.
	if results, err = scorecardResults(stdout.Bytes()); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("running scorecard: %w: %s", err, strings.TrimSpace(stderr.String())), failed)
	}
	if len(results) == 0 || selector == "" && len(results) != listed {
		return nil, nil, fmt.Errorf("scorecard ran %d tests; the bundle %s lists %d", len(results), bundle, listed)
	}
	return results, stdout.Bytes(), nil
}

// scorecardImages are those of a bundle's tests under the names that the bundle has for them, and the
// one that unpacks the bundle; with how many tests it lists.
func (c *Cluster) scorecardImages(bundle string) (images []Image, listed int, err error) {
	content, err := os.ReadFile(filepath.Join(bundle, "tests", "scorecard", "config.yaml"))
	if err != nil {
		return nil, 0, fmt.Errorf("reading scorecard's configuration: %w", err)
	}
	var config struct {
		Stages []struct {
			Tests []scorecardTests `json:"tests"`
		} `json:"stages"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return nil, 0, fmt.Errorf("reading scorecard's configuration: %w", err)
	}
	images = []Image{ScorecardImage}
	for _, stage := range config.Stages {
		listed += len(stage.Tests)
		for _, test := range stage.Tests {
			image := ScorecardImage
			if name, _, _ := strings.Cut(path.Base(test.Image), ":"); name == builtInScorecard {
				image = Image{program: builtInScorecard}
			} else if name != scorecardAccess {
				return nil, 0, fmt.Errorf("scorecard's configuration names the image %s, which is not made here", test.Image)
			}
			image.Name = test.Image
			if !slices.ContainsFunc(images, func(i Image) bool { return i.Name == image.Name }) {
				images = append(images, image)
			}
		}
	}
	for _, program := range []string{builtInScorecard, "operator-sdk"} {
		if _, err := os.Stat(filepath.Join(c.bin, program)); err != nil {
			return nil, 0, fmt.Errorf("%s is not built; run make packaging-tools: %w", program, err)
		}
	}
	return images, listed, nil
}

func scorecardResults(printed []byte) ([]ScorecardTest, error) {
	var list struct {
		Items []struct {
			Spec   scorecardTests `json:"spec"`
			Status struct {
				Results []struct {
					State       string   `json:"state"`
					Errors      []string `json:"errors"`
					Suggestions []string `json:"suggestions"`
					Log         string   `json:"log"`
				} `json:"results"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(printed, &list); err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	var results []ScorecardTest
	for _, item := range list.Items {
		one := ScorecardTest{Test: item.Spec.Labels["test"], Suite: item.Spec.Labels["suite"], State: "no result"}
		for _, r := range item.Status.Results {
			one.State, one.Log = r.State, one.Log+r.Log
			one.Errors, one.Suggestions = append(one.Errors, r.Errors...), append(one.Suggestions, r.Suggestions...)
		}
		results = append(results, one)
	}
	return results, nil
}
