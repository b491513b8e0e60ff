package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

func secretVersion(uid types.UID, version string) *metav1.PartialObjectMetadata {
	secret := partial("v1", "Secret")
	secret.UID, secret.ResourceVersion = uid, version
	return secret
}

// What was found to agree is not read again until the copy, its source or its owner is another.
func TestCase40WhatAgreedIsRemembered(t *testing.T) {
	var m copyMemory
	key := types.NamespacedName{Namespace: "team", Name: "ambient-vertex"}
	owner := &v1alpha1.ProjectSettings{ObjectMeta: metav1.ObjectMeta{UID: "settings", ResourceVersion: "1"}}
	edited := owner.DeepCopy()
	edited.ResourceVersion = "2"
	replaced := owner.DeepCopy()
	replaced.UID = "others"
	if m.agreed(key, secretVersion("copy", "1"), secretVersion("source", "1"), owner) {
		t.Error("it agrees before it was looked at")
	}
	m.agree(key, secretVersion("copy", "1"), secretVersion("source", "1"), owner)
	for _, c := range []struct {
		name     string
		copied   *metav1.PartialObjectMetadata
		source   *metav1.PartialObjectMetadata
		settings *v1alpha1.ProjectSettings
		want     bool
	}{
		{"nothing new", secretVersion("copy", "1"), secretVersion("source", "1"), owner, true},
		{"edited settings", secretVersion("copy", "1"), secretVersion("source", "1"), edited, true},
		{"an edited copy", secretVersion("copy", "2"), secretVersion("source", "1"), owner, false},
		{"a replaced copy", secretVersion("other", "1"), secretVersion("source", "1"), owner, false},
		{"an edited source", secretVersion("copy", "1"), secretVersion("source", "2"), owner, false},
		{"a replaced source", secretVersion("copy", "1"), secretVersion("other", "1"), owner, false},
		{"replaced settings", secretVersion("copy", "1"), secretVersion("source", "1"), replaced, false},
		{"no settings", secretVersion("copy", "1"), secretVersion("source", "1"), nil, false},
	} {
		if got := m.agreed(key, c.copied, c.source, c.settings); got != c.want {
			t.Errorf("%s: agrees: %t, want %t", c.name, got, c.want)
		}
	}
	m.forget(key)
	if m.agreed(key, secretVersion("copy", "1"), secretVersion("source", "1"), owner) {
		t.Error("it agrees after it was forgotten")
	}
}

func TestWhatIsToldOnce(t *testing.T) {
	var m copyMemory
	key := types.NamespacedName{Namespace: "team", Name: "ambient-vertex"}
	for i, want := range []bool{true, false} {
		if got := m.foreign(key, secretVersion("theirs", "1")); got != want {
			t.Errorf("look %d: somebody's Secret is news: %t", i, got)
		}
	}
	if m.foreign(key, secretVersion("theirs", "2")) || !m.foreign(key, secretVersion("others", "3")) {
		t.Error("a Secret is news again when it is edited, or not when it is another")
	}
	for i, c := range []struct{ missing, want bool }{{true, true}, {true, false}, {false, false}, {true, true}} {
		if got := m.missing(key.Name, c.missing); got != c.want {
			t.Errorf("look %d: the missing source is news: %t", i, got)
		}
	}
	m.keep(key)
	if !m.kept(key) || m.kept(types.NamespacedName{Namespace: "others", Name: key.Name}) {
		t.Error("what is kept is not remembered, or for another project")
	}
	m.agree(key, secretVersion("copy", "1"), secretVersion("source", "1"), nil)
	if m.kept(key) {
		t.Error("a copy that is wanted again is still to be removed")
	}
}

// The cache holds no content of Secrets, in an annotation of kubectl neither.
func TestCase42NoContentIsCached(t *testing.T) {
	const applied = "kubectl.kubernetes.io/last-applied-configuration"
	for name, labels := range map[string]map[string]string{"somebody's": nil, "a copy": {v1alpha1.LabelProjectSettings: "projectsettings"}} {
		secret := secretVersion("s", "1")
		secret.Labels = labels
		secret.Annotations = map[string]string{applied: "data", v1alpha1.AnnotationCopiedFrom: "operators/ambient-vertex"}
		if _, err := stripMetadata(secret); err != nil {
			t.Fatal(err)
		}
		if len(secret.Annotations) != 1 || secret.Annotations[v1alpha1.AnnotationCopiedFrom] != "operators/ambient-vertex" {
			t.Errorf("%s: the cache has %v", name, secret.Annotations)
		}
	}
}
