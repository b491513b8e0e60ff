// Package project builds the objects that the operator keeps in every project, which is a managed
// namespace: who has access (access.go), what scheduled sessions act as (trigger.go), and what
// holds for all its pods (limits.go). It also says what the status of the ProjectSettings tells
// (status.go). It is pure: the same input gives the same bytes.
//
// A project has no life like a session's: its objects are either there or not. So there are no
// phases and no rules here; controllers/projectsettings_controller.go applies what this package
// desires and reports.
package project

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// SettingsName is the name of the one ProjectSettings of a namespace; source: the contract.
const SettingsName = "projectsettings"

const kindSettings = "ProjectSettings"

// Plan is all that the objects of a project are made from.
type Plan struct {
	Settings *v1alpha1.ProjectSettings
	// Callers are the namespaces from which runners are called: the backend's and the operator's.
	Callers []string
	// RunnerPorts are the ports on which runners serve.
	RunnerPorts []int32
}

// Default is the settings of a project that has none: nobody has access through them. They spell
// out the operator's own idle stop, for the API would fill in another figure.
func Default(namespace string, inactivity time.Duration) *v1alpha1.ProjectSettings {
	seconds := int64(inactivity / time.Second)
	return &v1alpha1.ProjectSettings{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SettingsName},
		// An empty list, not none: the field is required.
		Spec: v1alpha1.ProjectSettingsSpec{GroupAccess: []v1alpha1.GroupAccess{}, InactivityTimeoutSeconds: &seconds},
	}
}

// Labels are on every object of a project.
func Labels() map[string]string {
	return map[string]string{
		v1alpha1.LabelProjectSettings: SettingsName,
		v1alpha1.LabelManagedBy:       v1alpha1.ManagedByOperator,
	}
}

func (p *Plan) objectMeta(name string) metav1.ObjectMeta {
	controller := true
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: p.Settings.Namespace,
		Labels:    Labels(),
		// It does not block the deletion of the settings: that would need a right on their
		// finalizers and serves nothing here.
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(),
			Kind:       kindSettings,
			Name:       p.Settings.Name,
			UID:        p.Settings.UID,
			Controller: &controller,
		}},
	}
}
