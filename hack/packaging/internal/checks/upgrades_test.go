package checks_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/kinds"
)

// release is a version with the objects that its users have stored.
type release struct {
	name   string
	bundle *manifests.Bundle
	stored []unstructured.Unstructured
}

// releases are all versions, oldest first, and last the one being worked on.
func releases(t *testing.T) []release {
	t.Helper()
	var all []release
	add := func(name, dir string) {
		r := release{name: name, bundle: load(t, dir), stored: stored(t, name)}
		r.stored = append(r.stored, examples(t, readCSV(t, dir))...)
		all = append(all, r)
	}
	for _, v := range released(t) {
		add(v.String(), filepath.Join(bundlesDir(), v.String()))
	}
	add("next", bundleDir())
	return all
}

func stored(t *testing.T, version string) (objects []unstructured.Unstructured) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "catalog", "stored", version+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		o := unstructured.Unstructured{}
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("the stored objects of %s: %v", version, err)
		}
		objects = append(objects, o)
	}
}

// everyUpgrade runs a test on each version with each later one.
func everyUpgrade(t *testing.T, test func(t *testing.T, older, newer release)) {
	t.Helper()
	all := releases(t)
	for i, older := range all {
		for _, newer := range all[i+1:] {
			t.Run(older.name+" to "+newer.name, func(t *testing.T) { test(t, older, newer) })
		}
	}
}

// looked are changes of a kind that somebody has looked at, with why nobody loses anything.
var looked = map[string]string{
	"v1alpha1.spec.repos: the rule is new: self.map(r, (r.url.find('[^/:]+$') + '/').replace('.git/', '/'))" +
		".all(n, self.exists_one(r, n == (r.url.find('[^/:]+$') + '/').replace('.git/', '/')))": // 0.4.0
	"it takes all lists that the one before took: see TestCase53NoListOfRepositoriesIsRefusedAnew",
}

// A newer version takes no field, value or version from the kinds.
func TestCase53KindsOnlyGrow(t *testing.T) {
	met := map[string]bool{}
	everyUpgrade(t, func(t *testing.T, older, newer release) {
		for _, crd := range older.bundle.V1CRDs {
			named := func(c *apiextensions.CustomResourceDefinition) bool { return c.Name == crd.Name }
			at := slices.IndexFunc(newer.bundle.V1CRDs, named)
			if at < 0 {
				t.Errorf("%s is gone", crd.Name)
				continue
			}
			for _, problem := range kinds.Problems(crd, newer.bundle.V1CRDs[at]) {
				met[problem] = true
				if looked[problem] == "" {
					t.Errorf("%s: %s", crd.Name, problem)
				}
			}
		}
	})
	for problem := range looked {
		if !met[problem] {
			t.Errorf("no version has this change any more: %s", problem)
		}
	}
}

// What users of a version have stored is valid for each later one: by OLM's rule, without which it
// refuses the upgrade, and by what the API server asks of who creates it anew from a backup.
func TestCase53WhatIsStoredStaysValid(t *testing.T) {
	everyUpgrade(t, func(t *testing.T, older, newer release) {
		for i := range older.stored {
			o := &older.stored[i]
			refuse(t, newer, o, "OLM refuses the upgrade", func(j *kinds.Judge) []string { return j.Stored(o) })
			refuse(t, newer, o, "the API server refuses", func(j *kinds.Judge) []string { return j.Created(t.Context(), o) })
		}
	})
}

func refuse(t *testing.T, by release, o *unstructured.Unstructured, what string, ask func(*kinds.Judge) []string) {
	t.Helper()
	for _, refusal := range ask(judgeOf(t, by, o)) {
		t.Errorf("%s: %s %s/%s: %s", what, o.GetKind(), o.GetNamespace(), o.GetName(), refusal)
	}
}

func judgeOf(t *testing.T, r release, o *unstructured.Unstructured) *kinds.Judge {
	t.Helper()
	judge, err := kinds.JudgeOf(r.bundle.V1CRDs, o)
	if err != nil {
		t.Fatal(err)
	}
	if judge == nil {
		t.Fatalf("version %s has no %s %s", r.name, o.GetAPIVersion(), o.GetKind())
	}
	return judge
}

// The stored objects are such as their version takes, and have every field that it knows.
func TestCase53TheStoredObjectsHaveEveryField(t *testing.T) {
	for _, r := range releases(t) {
		t.Run(r.name, func(t *testing.T) {
			for i := range r.stored {
				o := &r.stored[i]
				refuse(t, r, o, "the version itself refuses", func(j *kinds.Judge) []string { return j.Created(t.Context(), o) })
			}
			for _, crd := range r.bundle.V1CRDs {
				var all []any
				for _, o := range r.stored {
					if o.GetKind() == crd.Spec.Names.Kind {
						all = append(all, o.Object)
					}
				}
				for _, path := range unset("", schema(t, crd), all) {
					t.Errorf("no stored %s sets %s: add it to catalog/stored/%s.yaml", crd.Spec.Names.Kind, path, r.name)
				}
			}
		})
	}
}

// unset are the fields of a schema that none of some values has.
func unset(prefix string, s apiextensions.JSONSchemaProps, all []any) (paths []string) {
	for name, field := range s.Properties {
		var inside []any
		for _, value := range all {
			if object, ok := value.(map[string]any); ok && object[name] != nil {
				inside = append(inside, object[name])
			}
		}
		if len(inside) == 0 {
			paths = append(paths, prefix+name)
			continue
		}
		paths = append(paths, unset(prefix+name+".", field, inside)...)
	}
	var inside []any
	for _, value := range all {
		if list, ok := value.([]any); ok {
			inside = append(inside, list...)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		paths = append(paths, unset(strings.TrimSuffix(prefix, ".")+"[].", *s.Items.Schema, inside)...)
	}
	return paths
}

// Rules are compared by what they do: every list of repositories that a version took is taken still.
func TestCase53NoListOfRepositoriesIsRefusedAnew(t *testing.T) {
	var urls []string
	for _, name := range []string{"a", "a.git", "a.git.git", ".git", "a.github", "ahub", "A", "b/a"} {
		urls = append(urls, "https://example.com/"+name, "git@example.com:"+name)
	}
	var lists []*unstructured.Unstructured
	for _, one := range urls {
		lists = append(lists, sessionOf(one))
		for _, two := range urls {
			lists = append(lists, sessionOf(one, two))
		}
	}
	everyUpgrade(t, func(t *testing.T, older, newer release) {
		before, after := judgeOf(t, older, lists[0]), judgeOf(t, newer, lists[0])
		taken := 0
		for _, o := range lists {
			if len(before.Created(t.Context(), o)) > 0 {
				continue
			}
			taken++
			if refusals := after.Created(t.Context(), o); len(refusals) > 0 {
				t.Errorf("%v: %q", o.Object["spec"], refusals)
			}
		}
		if taken == 0 || taken == len(lists) {
			t.Errorf("%d of %d lists were taken: they say nothing", taken, len(lists))
		}
	})
}

func sessionOf(urls ...string) *unstructured.Unstructured {
	repos := make([]any, len(urls))
	for i, url := range urls {
		repos[i] = map[string]any{"url": url}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"repos": repos}}}
	o.SetAPIVersion("vteam.ambient-code/v1alpha1")
	o.SetKind("AgenticSession")
	o.SetName(fmt.Sprintf("with-%d", len(urls)))
	return o
}
