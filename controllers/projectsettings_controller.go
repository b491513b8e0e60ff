package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/project"
)

// secondLook is when an object of somebody else's that has a name of ours is looked at again:
// objects of others are not cached, so nothing tells when it goes.
const secondLook = time.Minute

// ProjectSettingsReconciler keeps the objects of projects in place: the access of groups, what
// scheduled sessions act as, default limits and the network policy of runners.
type ProjectSettingsReconciler struct {
	// Client reads from caches, or from the API server under --legacy-watch, and writes.
	Client client.Client
	// Live reads from the API server; only where the cache may not be believed.
	Live client.Reader
	// Own reads the registry of runner types in the operator's own namespace.
	Own    client.Reader
	Config *config.Config
	Clock  clock.PassiveClock

	// seen reads for what maps events, without waiting for writes that are under way.
	seen     client.Reader
	reported reports
}

// The operator may bind exactly the roles of projects without holding their rights itself, and it
// may not change them. OwnerReferencesPermissionEnforcement lets only those put an owner back who
// may delete the object.
//
// +kubebuilder:rbac:groups=vteam.ambient-code,resources=projectsettings,verbs=get;list;watch
// +kubebuilder:rbac:groups=vteam.ambient-code,resources=projectsettings/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=serviceaccounts;limitranges,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=ambient-project-admin;ambient-project-edit;ambient-project-view,verbs=bind
// +kubebuilder:rbac:groups=vteam.ambient-code,resources=agenticsessions,verbs=create;get;list;update

// SetupWithManager adds the controller of projects to the manager.
func (r *ProjectSettingsReconciler) SetupWithManager(mgr ctrl.Manager) error {
	from, err := readingFrom(mgr, r.Config)
	if err != nil {
		return err
	}
	r.Client, r.seen, r.Live = from.client, from.seen, from.live
	sources := from.sources(watches(&AgenticSessionReconciler{}, r, &SharedSecretReconciler{}), func(w watched) mapping { return w.projects })
	var registry []source.Source
	if r.Own, registry, err = from.apart(mgr, registryWatch(r.Config.Namespace), r.byRegistry); err != nil {
		return err
	}
	return control(mgr, "projectsettings", r.Config, append(sources, registry...), r)
}

// inNamespace wakes the settings of a namespace that is managed now, or no longer.
func (r *ProjectSettingsReconciler) inNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	all := &v1alpha1.ProjectSettingsList{}
	if err := r.seen.List(ctx, all, client.InNamespace(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return request(object.GetName(), projectSettingsName)
	}
	var requests []reconcile.Request
	for i := range all.Items {
		requests = append(requests, request(all.Items[i].Namespace, all.Items[i].Name)...)
	}
	return requests
}

// Reconcile makes one pass over the settings of a project.
func (r *ProjectSettingsReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	settings := &v1alpha1.ProjectSettings{}
	found, err := lookup(ctx, r.Client, request.NamespacedName, settings)
	if err != nil || !found || settings.DeletionTimestamp != nil {
		// Everything that the settings made is owned by them and goes with them.
		r.reported.forget(request.NamespacedName)
		return ctrl.Result{}, err
	}
	r.reported.restore(settings)
	namespace := partial("v1", "Namespace")
	found, err = lookup(ctx, r.Client, types.NamespacedName{Name: settings.Namespace}, namespace)
	if err != nil || namespace.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	outcome := &project.Outcome{}
	switch {
	case settings.Name != project.SettingsName:
		outcome.Unserved = project.Ignored(settings.Name)
	case !found || namespace.Labels[v1alpha1.LabelManaged] != "true":
		outcome.Unserved = project.NotManaged()
	default:
		err = r.provide(ctx, &project.Plan{Settings: settings, Callers: []string{r.Config.BackendNamespace, r.Config.Namespace}}, outcome)
	}
	if err != nil && apierrors.HasStatusCause(err, terminating) {
		return ctrl.Result{}, nil
	}
	if err := errors.Join(err, r.report(ctx, settings, outcome)); err != nil {
		return ctrl.Result{}, err
	}
	if outcome.Unserved == nil && project.Collides(&settings.Status) {
		return ctrl.Result{RequeueAfter: secondLook}, nil
	}
	return ctrl.Result{}, nil
}

// provide makes the objects of a project be as the settings say. What one of them lacks keeps none
// of the others back. The error says that the pass is to be tried again.
func (r *ProjectSettingsReconciler) provide(ctx context.Context, plan *project.Plan, outcome *project.Outcome) error {
	errs := []error{r.provideAccess(ctx, plan, outcome)}
	ensure := func(condition string, objects ...client.Object) {
		for _, object := range objects {
			if _, err := r.ensure(ctx, plan, object); err != nil {
				problem, retry := explain(err)
				outcome.Add(condition, problem)
				errs = append(errs, retry)
			}
		}
	}
	ensure(v1alpha1.ConditionScheduledRBACReady, plan.TriggerAccount(), plan.TriggerRole(), plan.TriggerBinding())
	ensure(v1alpha1.ConditionLimitRangeReady, plan.LimitRange())
	var err error
	if plan.RunnerPorts, err = r.runnerPorts(ctx, plan.Settings.Namespace); err != nil {
		problem, retry := explain(err)
		outcome.Add(v1alpha1.ConditionNetworkPolicyReady, problem)
		return errors.Join(append(errs, retry)...)
	}
	ensure(v1alpha1.ConditionNetworkPolicyReady, plan.NetworkPolicy())
	return errors.Join(errs...)
}

// provideAccess gives groups the access that the settings list, then takes away what they no longer
// list: a group whose role changes is never without any. That access cannot be given does not keep
// other access from being taken away.
func (r *ProjectSettingsReconciler) provideAccess(ctx context.Context, plan *project.Plan, outcome *project.Outcome) error {
	var errs []error
	grants, refused := project.Grants(plan.Settings.Spec.GroupAccess)
	outcome.Groups = refused
	for _, grant := range grants {
		made, err := r.ensure(ctx, plan, plan.GroupBinding(grant))
		if err != nil {
			problem, retry := explain(err)
			outcome.Refuse(grant, problem)
			errs = append(errs, retry)
			continue
		}
		outcome.Bound++
		if made {
			log.FromContext(ctx).Info("Access given", "group", grant.GroupName, "role", grant.Role)
		}
	}
	if err := r.revoke(ctx, plan, grants); err != nil {
		outcome.Add(v1alpha1.ConditionGroupAccessReady, project.Problem{Reason: v1alpha1.ReasonRevocationFailed,
			Message: "a group that was taken off the list may still have access; its removal is tried again: " + err.Error()})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// revoke removes the RoleBindings of groups that are no longer listed.
func (r *ProjectSettingsReconciler) revoke(ctx context.Context, plan *project.Plan, grants []v1alpha1.GroupAccess) error {
	bindings := &rbacv1.RoleBindingList{}
	of := []client.ListOption{client.InNamespace(plan.Settings.Namespace), client.MatchingLabels(project.Labels()), client.DisableReadYourWritesConsistency}
	if err := r.Client.List(ctx, bindings, of...); err != nil {
		return fmt.Errorf("listing the RoleBindings of the project: %w", err)
	}
	var errs []error
	for _, binding := range plan.Revoked(bindings.Items, grants) {
		if err := r.applier().Remove(ctx, &binding); err != nil {
			errs = append(errs, err)
			continue
		}
		log.FromContext(ctx).Info("Access revoked", "group", binding.Annotations[v1alpha1.AnnotationGroup], "clusterRole", binding.RoleRef.Name)
	}
	return errors.Join(errs...)
}

// ensure makes one object be as desired and says whether it was made anew.
func (r *ProjectSettingsReconciler) ensure(ctx context.Context, plan *project.Plan, desired client.Object) (made bool, err error) {
	observed, err := r.observe(ctx, plan, desired)
	if err != nil {
		return false, err
	}
	_, err = r.applier().Ensure(ctx, desired, observed)
	return err == nil && observed == nil, err
}

// observe reads what there is of a desired object; nil when there is nothing.
func (r *ProjectSettingsReconciler) observe(ctx context.Context, plan *project.Plan, desired client.Object) (client.Object, error) {
	gvk, err := r.Client.GroupVersionKindFor(desired)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %s: %w", desired.GetName(), err)
	}
	empty, err := r.Client.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("making an empty %s: %w", gvk.Kind, err)
	}
	observed, ok := empty.(client.Object)
	if !ok {
		return nil, fmt.Errorf("the kind %s has no metadata", gvk.Kind)
	}
	key := client.ObjectKeyFromObject(desired)
	found, err := lookup(ctx, r.Client, key, observed)
	if err == nil && !found && project.Collides(&plan.Settings.Status) {
		// It may be somebody else's: found here, it is not written at in vain.
		found, err = lookup(ctx, r.Live, key, observed)
	}
	if err != nil || !found {
		return nil, err
	}
	return observed, nil
}

func (r *ProjectSettingsReconciler) applier() *apply.Applier {
	return &apply.Applier{Client: r.Client, Live: r.Live}
}

// explain tells a failure in the words of the status, and returns the error to try again for; nil
// when trying again at once does not help.
func explain(err error) (project.Problem, error) {
	var blocked *apply.Blocked
	if !errors.As(err, &blocked) {
		return project.Problem{Reason: v1alpha1.ReasonNotApplied, Message: err.Error()}, err
	}
	problem := project.Problem{Reason: blocked.Reason, Message: blocked.Message}
	if blocked.Final {
		return problem, nil
	}
	return problem, err
}
