package project_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/project"
)

const copiedFrom = "operators/ambient-vertex"

func source() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "operators", Name: "ambient-vertex", UID: "source", ResourceVersion: "7",
			Labels: map[string]string{"team": "platform"}, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "all of it"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ExternalSecret", Name: "vault", UID: "vault"}},
		},
		Type: "example.com/key", Data: map[string][]byte{"key.json": []byte("{}")},
	}
}

func TestCase26ACopyBelongsToTheProject(t *testing.T) {
	for name, s := range map[string]*v1alpha1.ProjectSettings{"with settings": settings(), "without settings": nil} {
		c := project.Copy(source(), "team", s)
		if c.Namespace != "team" || c.Name != "ambient-vertex" || c.UID != "" || c.ResourceVersion != "" || c.Type != corev1.SecretTypeOpaque {
			t.Errorf("%s: the copy is %s/%s of type %s", name, c.Namespace, c.Name, c.Type)
		}
		if !equality.Semantic.DeepEqual(c.Data, source().Data) {
			t.Errorf("%s: the data is another", name)
		}
		if !maps.Equal(c.Labels, project.Labels()) || !maps.Equal(c.Annotations, map[string]string{"vteam.ambient-code/copied-from": copiedFrom}) {
			t.Errorf("%s: the metadata is %v, %v", name, c.Labels, c.Annotations)
		}
		switch {
		case s == nil && len(c.OwnerReferences) > 0, s != nil && !metav1.IsControlledBy(c, s):
			t.Errorf("%s: it belongs to %+v", name, c.OwnerReferences)
		}
		if !project.IsCopy(c, copiedFrom) {
			t.Errorf("%s: it is not recognized", name)
		}
	}
}

func TestCase24WhatIsNoCopy(t *testing.T) {
	for _, c := range []struct {
		name   string
		secret corev1.Secret
		want   bool
	}{
		{"bare", corev1.Secret{}, false},
		{"a session's", corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelSession: "s"}}}, false},
		{"owned by the settings", corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner("ProjectSettings", "projectsettings", true)}}}, false},
		{"copied from elsewhere", corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationCopiedFrom: "vault/ambient-vertex"}}}, false},
		{"copied by the platform", corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationCopiedFrom: copiedFrom}}}, true},
		{"a copy without its annotation", corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: project.Labels()}}, true},
	} {
		if got := project.IsCopy(&c.secret, copiedFrom); got != c.want {
			t.Errorf("%s: is a copy: %t, want %t", c.name, got, c.want)
		}
	}
}

func owner(kind, name string, controller bool) metav1.OwnerReference {
	version := "apps/v1"
	if kind == "ProjectSettings" || kind == "AgenticSession" {
		version = v1alpha1.GroupVersion.String()
	}
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: types.UID(kind + name), Controller: &controller}
}

func TestCase28ACopyIsMended(t *testing.T) {
	desired := project.Copy(source(), "team", settings())
	ours := desired.OwnerReferences[0]
	for name, c := range map[string]struct {
		change func(*corev1.Secret)
		owners []metav1.OwnerReference
	}{
		"other data":       {func(s *corev1.Secret) { s.Data = map[string][]byte{"key.json": []byte("x"), "more": nil} }, []metav1.OwnerReference{ours}},
		"no data":          {func(s *corev1.Secret) { s.Data = nil }, []metav1.OwnerReference{ours}},
		"labels taken off": {func(s *corev1.Secret) { s.Labels = nil }, []metav1.OwnerReference{ours}},
		"annotation off":   {func(s *corev1.Secret) { s.Annotations = nil }, []metav1.OwnerReference{ours}},
		"owner taken off":  {func(s *corev1.Secret) { s.OwnerReferences = nil }, []metav1.OwnerReference{ours}},
		"a session's": {func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{owner("AgenticSession", "a", true), owner("AgenticSession", "b", false)}
		}, []metav1.OwnerReference{ours}},
		"of former settings": {func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{owner("ProjectSettings", "projectsettings", true)}
		}, []metav1.OwnerReference{ours}},
		"a Deployment's too": {func(s *corev1.Secret) { s.OwnerReferences = append(s.OwnerReferences, owner("Deployment", "d", false)) }, []metav1.OwnerReference{owner("Deployment", "d", false), ours}},
		"under a Deployment": {func(s *corev1.Secret) { s.OwnerReferences = []metav1.OwnerReference{owner("Deployment", "d", true)} }, []metav1.OwnerReference{ours}},
	} {
		stored := desired.DeepCopy()
		stored.UID, stored.ResourceVersion, stored.Labels["theirs"] = "copy", "9", "kept"
		c.change(stored)
		was := stored.DeepCopy()
		mended := project.MendCopy(stored, desired)
		if !equality.Semantic.DeepEqual(was, stored) {
			t.Errorf("%s: what was read was changed", name)
		}
		if mended.UID != "copy" || mended.ResourceVersion != "9" || !equality.Semantic.DeepEqual(mended.Data, desired.Data) ||
			mended.Annotations[v1alpha1.AnnotationCopiedFrom] != copiedFrom || mended.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator {
			t.Errorf("%s: it is mended to %+v", name, mended.ObjectMeta)
		}
		if was.Labels != nil && mended.Labels["theirs"] != "kept" {
			t.Errorf("%s: somebody else's label is gone", name)
		}
		if !slices.EqualFunc(mended.OwnerReferences, c.owners, func(a, b metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(a, b) }) {
			t.Errorf("%s: it belongs to %+v", name, mended.OwnerReferences)
		}
		if again := project.MendCopy(mended, desired); !equality.Semantic.DeepEqual(mended, again) {
			t.Errorf("%s: it is mended again and again", name)
		}
	}
	bare := project.MendCopy(desired, project.Copy(source(), "team", nil))
	if len(bare.OwnerReferences) > 0 {
		t.Errorf("without settings it belongs to %+v", bare.OwnerReferences)
	}
}
