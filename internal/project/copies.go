package project

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Origin is what a copy of a Secret says that it was copied from.
func Origin(namespace, name string) string { return namespace + "/" + name }

// Copy is a Secret of the operator's namespace as a project gets it. It belongs to the settings of
// the project, nil where there are none, and never to a session, since others use it as well. Its
// type is always the ordinary one: what a type demands of the source's data may change, the type
// of a Secret never.
func Copy(source *corev1.Secret, namespace string, settings *v1alpha1.ProjectSettings) *corev1.Secret {
	made := &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: source.Data}
	if settings != nil {
		made.ObjectMeta = (&Plan{Settings: settings}).objectMeta(source.Name)
	} else {
		made.ObjectMeta = metav1.ObjectMeta{Name: source.Name, Labels: Labels()}
	}
	made.Namespace = namespace
	made.Annotations = map[string]string{v1alpha1.AnnotationCopiedFrom: Origin(source.Namespace, source.Name)}
	return made
}

// IsCopy says that a Secret is a copy that the operator made, not somebody's own: it says so
// itself, in the annotation that the platform's copies have as well, or by the label on every
// object of a project. Either can be taken off alone by mistake. Who takes off both has made the
// Secret their own.
func IsCopy(secret metav1.Object, origin string) bool {
	return secret.GetAnnotations()[v1alpha1.AnnotationCopiedFrom] == origin ||
		secret.GetLabels()[v1alpha1.LabelProjectSettings] == SettingsName
}

// MendCopy is a stored copy as it should be. What others wrote into its metadata stays, other than
// an owner with which it would be deleted too early: a session, settings that are gone, or a
// controller, of which there can be but one.
func MendCopy(stored, desired *corev1.Secret) *corev1.Secret {
	mended := stored.DeepCopy()
	mended.Data = desired.Data
	mended.Labels = merged(stored.Labels, desired.Labels)
	mended.Annotations = merged(stored.Annotations, desired.Annotations)
	mended.OwnerReferences = nil
	for _, owner := range stored.OwnerReferences {
		ours := owner.APIVersion == v1alpha1.GroupVersion.String()
		if !ours && (owner.Controller == nil || !*owner.Controller) {
			mended.OwnerReferences = append(mended.OwnerReferences, owner)
		}
	}
	mended.OwnerReferences = append(mended.OwnerReferences, desired.OwnerReferences...)
	return mended
}

func merged(have, want map[string]string) map[string]string {
	all := maps.Clone(have)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, want)
	return all
}
