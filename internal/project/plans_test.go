package project_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/project"
)

func grant(group string, role v1alpha1.GroupRole) v1alpha1.GroupAccess {
	return v1alpha1.GroupAccess{GroupName: group, Role: role}
}

func settings(access ...v1alpha1.GroupAccess) *v1alpha1.ProjectSettings {
	return &v1alpha1.ProjectSettings{
		ObjectMeta: metav1.ObjectMeta{Namespace: "project", Name: "projectsettings", UID: "uid", Generation: 3},
		Spec:       v1alpha1.ProjectSettingsSpec{GroupAccess: access},
	}
}

func plan() *project.Plan {
	return &project.Plan{Settings: settings(), Callers: []string{"platform", "operators"}, RunnerPorts: []int32{8001}}
}
