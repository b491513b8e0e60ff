package histories

import (
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	projects "github.com/ambient-code/agentic-operator/internal/project"
)

var settingsKey = types.NamespacedName{Namespace: project, Name: projects.SettingsName}

// projectSettings are the settings of the project, as a copy; nil for none.
func (h *history) projectSettings() *v1alpha1.ProjectSettings {
	object := h.api.objects["ProjectSettings"][settingsKey]
	if object == nil {
		return nil
	}
	return object.DeepCopyObject().(*v1alpha1.ProjectSettings)
}

func (h *history) writeSettings(own *v1alpha1.ProjectSettings) {
	h.note("people edit the settings: %v, runner Secret %q", own.Spec.GroupAccess, own.Spec.RunnerSecretsName)
	if err := h.api.update(people, own, false); err != nil {
		h.complain("writing the settings: %v", err)
	}
}

// groups are some that have access, one of them in two roles, or in a role that does not exist.
func (h *history) groups() []v1alpha1.GroupAccess {
	all := []v1alpha1.GroupAccess{
		{GroupName: "team", Role: v1alpha1.GroupRoleEdit}, {GroupName: "Team A", Role: v1alpha1.GroupRoleView}, {GroupName: "team", Role: v1alpha1.GroupRoleAdmin},
		{GroupName: "system:authenticated", Role: v1alpha1.GroupRoleView}, {GroupName: "team", Role: "owner"},
	}
	h.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:h.pick(len(all)+1)]
}

// projectDeed has people make, edit or delete the settings of the project, or take away what was made of
// them.
func (h *history) projectDeed() {
	own := h.projectSettings()
	if own == nil {
		if !h.ended && h.chance(0.5) {
			h.note("people make settings")
			h.make(&v1alpha1.ProjectSettings{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: projects.SettingsName}, Spec: v1alpha1.ProjectSettingsSpec{GroupAccess: h.groups()}})
		}
		return
	}
	h.count("deeds about settings")
	switch h.pick(8) {
	case 0:
		background := metav1.DeletePropagationBackground
		h.remove(people, "ProjectSettings", own, client.DeleteOptions{PropagationPolicy: &background})
	case 1, 2, 3:
		own.Spec.GroupAccess = h.groups()
		h.writeSettings(own)
	case 4:
		seconds := int64([]int{0, 600, 86400}[h.pick(3)])
		own.Spec.InactivityTimeoutSeconds = &seconds
		h.writeSettings(own)
	case 5:
		own.Spec.RunnerSecretsName = []string{"", "team-keys"}[h.pick(2)]
		h.writeSettings(own)
	default:
		h.spoilProject(own)
	}
}

// spoilProject takes away something that was made of the settings, or changes it.
func (h *history) spoilProject(own *v1alpha1.ProjectSettings) {
	var made []client.Object
	for _, kind := range collected {
		for _, object := range h.api.list(kind) {
			if metav1.IsControlledBy(object, own) {
				made = append(made, object)
			}
		}
	}
	if len(made) == 0 {
		return
	}
	object := made[h.pick(len(made))]
	switch spoilt := object.DeepCopyObject().(type) {
	case *networkingv1.NetworkPolicy:
		if h.chance(0.5) {
			spoilt.Spec.Ingress = nil
			h.note("people change NetworkPolicy %s", spoilt.Name)
			h.write(spoilt, false)
			return
		}
	case *rbacv1.RoleBinding:
		if h.chance(0.5) {
			spoilt.Subjects = []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "others"}}
			h.note("people change RoleBinding %s", spoilt.Name)
			h.write(spoilt, false)
			return
		}
	}
	h.remove(people, kindOf(object), object, client.DeleteOptions{})
}

// judgeProject: at rest a managed namespace has settings, and of them has been made what they say, access
// of groups above all.
func (h *history) judgeProject() {
	if h.ended {
		for _, kind := range append([]string{"ProjectSettings"}, collected...) {
			for _, object := range h.api.list(kind) {
				if controller := metav1.GetControllerOf(object); kind == "ProjectSettings" || controller != nil && controller.Kind == "ProjectSettings" {
					h.complain("%s %s outlives its namespace", kind, object.GetName())
				}
			}
		}
		return
	}
	own := h.projectSettings()
	if own == nil {
		h.complain("the project has no settings")
		return
	}
	ready := meta.FindStatusCondition(own.Status.Conditions, v1alpha1.ConditionReady)
	grants, refused := projects.Grants(own.Spec.GroupAccess)
	if ready == nil || ready.ObservedGeneration != own.Generation || (ready.Status == metav1.ConditionTrue) != (len(refused) == 0) {
		h.complain("the settings rest with Ready %v, %d of their entries are refused", ready, len(refused))
	}
	plan, wanted := &projects.Plan{Settings: own}, map[string]bool{projects.TriggerName: true}
	for _, grant := range grants {
		wanted[plan.GroupBinding(grant).Name] = true
	}
	has := map[string]bool{}
	for _, object := range h.api.list("RoleBinding") {
		binding := object.(*rbacv1.RoleBinding)
		if !metav1.IsControlledBy(binding, own) {
			continue
		}
		has[binding.Name] = true
		for _, grant := range grants {
			if meant := plan.GroupBinding(grant); meant.Name == binding.Name && (!slices.Equal(meant.Subjects, binding.Subjects) || meant.RoleRef != binding.RoleRef) {
				h.complain("RoleBinding %s gives %v %v", binding.Name, binding.Subjects, binding.RoleRef)
			}
		}
	}
	if !maps.Equal(has, wanted) {
		h.complain("the project has the RoleBindings %v, its settings mean %v", slices.Sorted(maps.Keys(has)), slices.Sorted(maps.Keys(wanted)))
	}
	for _, meant := range []client.Object{plan.NetworkPolicy(), plan.LimitRange(), plan.TriggerAccount(), plan.TriggerRole()} {
		if object := h.api.objects[kindOf(meant)][client.ObjectKeyFromObject(meant)]; object == nil || !metav1.IsControlledBy(object, own) {
			h.complain("the project lacks its %s %s", kindOf(meant), meant.GetName())
		}
	}
}
