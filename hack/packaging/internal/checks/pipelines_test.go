package checks_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/catalog"
	"github.com/ambient-code/agentic-operator/hack/packaging/internal/external"
)

// The static checks that the pipelines of community-operators-prod make before they take a bundle
// in; where they only warn, we fail.
func TestCase57WhatTheCommunityPipelinesCheck(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		csv, notes := readCSV(t, dir), annotations(t, dir)
		check := func(ok bool, what string) {
			t.Helper()
			if !ok {
				t.Error(what)
			}
		}
		check(csv.Name == notes["operators.operatorframework.io.bundle.package.v1"]+".v"+csv.Spec.Version.String(), "the CSV's name must be package.vversion")
		check(filepath.Base(dir) == "bundle" || filepath.Base(dir) == csv.Spec.Version.String(), "the folder must be named after the version")
		check(len(csv.Spec.DisplayName) >= 3 && len(csv.Spec.DisplayName) <= 50, "displayName must have 3 to 50 characters")
		check(len(csv.Spec.Description) >= 20, "description must have 20 characters or more")
		check(len(csv.Annotations["description"]) >= 10, "the annotation description must have 10 characters or more")
		check(len(csv.Spec.Maintainers) > 0 && len(csv.Spec.Links) > 0 && len(csv.Spec.Keywords) > 0, "maintainers, links and keywords must be there")
		check(len(csv.Spec.Provider.Name) >= 3, "provider.name must have 3 characters or more")
		check(regexp.MustCompile(`^([^/]+/)+[^/:]+:.+$`).MatchString(csv.Annotations["containerImage"]), "containerImage must be an image with a tag or digest")
		check(regexp.MustCompile(`^https?://`).MatchString(csv.Annotations["repository"]), "repository must be a URL")
		check(csv.Annotations["support"] != "" && csv.Annotations["capabilities"] != "" && csv.Annotations["categories"] != "", "support, capabilities and categories must be there")
		_, err := time.Parse(time.RFC3339, csv.Annotations["createdAt"])
		check(err == nil, "createdAt must be a time")
		icon, err := base64.StdEncoding.DecodeString(csv.Spec.Icon[0].Data)
		check(err == nil && strings.HasPrefix(string(icon), "<svg") && len(icon) < 10_000, "the icon must be a small SVG")
		for _, o := range load(t, dir).Objects {
			kind := o.GetKind()
			check(!slices.Contains([]string{"NetworkPolicy", "ServiceMonitor", "PrometheusRule", "ConsoleQuickStart", "ConsoleYAMLSample", "ConsoleLink", "ConsolePlugin"}, kind),
				kind+" in a bundle fails the installation where its kind is unknown; the operator makes it")
		}
	})
}

// minKubeVersion without the OpenShift versions that have it is refused, and every OpenShift
// version named must have it. OpenShift 4.N is Kubernetes 1.N+13.
func TestCase57TheVersionsOfOpenShiftHaveTheKubernetesWeNeed(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		asked, err := semver.Parse(readCSV(t, dir).Spec.MinKubeVersion)
		if err != nil {
			t.Fatal(err)
		}
		from, found := strings.CutPrefix(annotations(t, dir)["com.redhat.openshift.versions"], "v4.")
		if !found {
			t.Fatalf("com.redhat.openshift.versions is %q, want v4.N", annotations(t, dir)["com.redhat.openshift.versions"])
		}
		minor, err := semver.ParseTolerant("0." + from)
		if err != nil {
			t.Fatal(err)
		}
		if has := minor.Minor + 13; has != asked.Minor {
			t.Errorf("OpenShift v4.%s has Kubernetes 1.%d, minKubeVersion is %s", from, has, asked)
		}
	})
}

// The annotations that preflight wants, each true or false. What is "true" has a test: proxy-aware
// in internal/workload (the proxy variables of a runner), disconnected below.
func TestCase57FeaturesAreAllAnswered(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		csv := readCSV(t, dir)
		for _, feature := range external.Features {
			if v := csv.Annotations["features.operators.openshift.io/"+feature]; v != "true" && v != "false" {
				t.Errorf("features.operators.openshift.io/%s is %q, want true or false", feature, v)
			}
		}
		images := csv.Spec.RelatedImages
		digests := !slices.ContainsFunc(images, func(i relatedImage) bool { return !strings.Contains(i.Image, "@sha256:") })
		if claimed := csv.Annotations["features.operators.openshift.io/disconnected"] == "true"; claimed != digests {
			t.Errorf("disconnected is claimed: %t; all images are named by digest: %t", claimed, digests)
		}
	})
}

// Preflight's SecurityContextConstraintsInCSV takes one constraint of OpenShift at most. We need none but
// the one that every pod may use: not by a right, and not by the annotation that asks for one.
func TestCase57NoSecurityContextConstraintsAreAskedFor(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		strategy := readCSV(t, dir).Spec.InstallStrategy.StrategySpec
		for _, p := range append(strategy.ClusterPermissions, strategy.Permissions...) {
			for _, r := range p.Rules {
				if slices.Contains(r.APIGroups, "security.openshift.io") || slices.Contains(r.Resources, "securitycontextconstraints") {
					t.Errorf("ServiceAccount %s asks for %v %v", p.ServiceAccountName, r.Resources, r.ResourceNames)
				}
			}
		}
		for _, d := range strategy.DeploymentSpecs {
			if scc := d.Spec.Template.Annotations["openshift.io/required-scc"]; scc != "" && scc != "restricted-v2" {
				t.Errorf("Deployment %s asks for %s", d.Name, scc)
			}
		}
	})
}

// Case 51: whoever needs a kind of somebody else would not be installed before that is.
func TestCase51NoKindOfOthersIsRequired(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		csv := readCSV(t, dir)
		for _, r := range csv.Spec.CustomResourceDefinitions.Required {
			t.Errorf("the CSV requires %s", r.Name)
		}
		services := csv.Spec.APIServiceDefinitions
		if len(services.Required) > 0 || len(services.Owned) > 0 || len(csv.Spec.NativeAPIs) > 0 {
			t.Errorf("the CSV wants API services %+v, native APIs %v", services, csv.Spec.NativeAPIs)
		}
		if _, err := os.Stat(filepath.Join(dir, "metadata", "dependencies.yaml")); !os.IsNotExist(err) {
			t.Errorf("the bundle has dependencies: %v", err)
		}
	})
}

func TestCase57TheDefaultChannelIsOneOfTheChannels(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		notes, version := annotations(t, dir), readCSV(t, dir).Spec.Version.Version
		channels := strings.Split(notes["operators.operatorframework.io.bundle.channels.v1"], ",")
		if fallback := notes["operators.operatorframework.io.bundle.channel.default.v1"]; fallback != catalog.Default {
			t.Errorf("the default channel is %q, want %s", fallback, catalog.Default)
		}
		if !slices.Equal(channels, catalog.Channels(version)) {
			t.Errorf("the channels are %v, the catalog puts the version into %v", channels, catalog.Channels(version))
		}
		for _, c := range channels {
			if !regexp.MustCompile(`^(candidate|fast|stable)`).MatchString(c) {
				t.Errorf("channel %q must begin with candidate, fast or stable", c)
			}
		}
	})
}

// annotations.yaml and the labels of the bundle's image must say the same.
func TestCase57TheBundleImageHasTheAnnotationsAsLabels(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "bundle.Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^LABEL ([^=]+)=(.*)$`).FindAllStringSubmatch(string(content), -1) {
		labels[m[1]] = m[2]
	}
	for key, value := range annotations(t, bundleDir()) {
		if labels[key] != value {
			t.Errorf("label %s is %q, the annotation %q", key, labels[key], value)
		}
		delete(labels, key)
	}
	for key := range labels {
		t.Errorf("label %s has no annotation", key)
	}
}

func TestCase57MaxOpenShiftVersionIsMajorAndMinor(t *testing.T) {
	everyBundle(t, func(t *testing.T, dir string) {
		content, err := os.ReadFile(filepath.Join(dir, "metadata", "properties.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Properties []struct{ Type, Value string }
		}
		if err := yaml.UnmarshalStrict(content, &file); err != nil {
			t.Fatal(err)
		}
		if len(file.Properties) != 1 || file.Properties[0].Type != "olm.maxOpenShiftVersion" || !regexp.MustCompile(`^\d+\.\d+$`).MatchString(file.Properties[0].Value) {
			t.Errorf("properties are %+v, want one olm.maxOpenShiftVersion like 5.1", file.Properties)
		}
	})
}
