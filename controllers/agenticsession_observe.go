package controllers

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// seen is what one pass works with: the world that decisions rest on, and the objects behind it.
type seen struct {
	world   session.World
	plan    workload.Plan
	objects objects
	// jobs and orphans are the Jobs of the session, and those of its pods that no Job looks after.
	jobs    []batchv1.Job
	orphans []corev1.Pod
	// lent is the workspace that a run that is to begin takes over; nil for one of the session's own.
	lent *lent
	// blocked says why the objects of a run that is to begin cannot be made yet.
	blocked *apply.Blocked
}

// objects are the session's objects besides its Job, nil where absent.
type objects struct {
	serviceAccount *corev1.ServiceAccount
	role           *rbacv1.Role
	roleBinding    *rbacv1.RoleBinding
	workspace      *corev1.PersistentVolumeClaim
	service        *corev1.Service
	token          *metav1.PartialObjectMetadata
	// storage is the copy of the credentials of the shared storage.
	storage *metav1.PartialObjectMetadata
}

// observe reads all that a pass over the session needs, or fails.
func (r *AgenticSessionReconciler) observe(ctx context.Context, s *v1alpha1.AgenticSession, now time.Time) (*seen, error) {
	o := &seen{}
	o.world = session.World{Now: now, Session: s, Problems: workload.Problems(s), Made: r.starts.of(s).job}
	for _, read := range []func(context.Context, *seen) error{
		r.observeProject, r.observeObjects, r.observeRuns, r.observeRuntime, r.observePrerequisites, r.observeStorage, r.observeWorkspace,
	} {
		if err := read(ctx, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// observeProject reads the namespace and its settings.
func (r *AgenticSessionReconciler) observeProject(ctx context.Context, o *seen) error {
	s := o.world.Session
	namespace := partial("v1", "Namespace")
	if found, err := r.get(ctx, types.NamespacedName{Name: s.Namespace}, namespace); err != nil {
		return err
	} else if found {
		o.world.Namespace.Managed = namespace.Labels[v1alpha1.LabelManaged] == "true"
		o.world.Namespace.Terminating = namespace.DeletionTimestamp != nil
	} else if underWay(s) && !yetToBegin(s) {
		// Its label may have been taken off, and it may be on its way out: then nothing is written.
		if err := r.observeNamespace(ctx, o); err != nil {
			return err
		}
	}
	project := &v1alpha1.ProjectSettings{}
	found, err := r.get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: projectSettingsName}, project)
	if err != nil {
		return err
	}
	if !found {
		project = nil
	}
	o.world.Policy = session.Policy{StartDeadline: r.Config.StartDeadline, Inactivity: r.inactivity(s, project)}
	o.plan = workload.Plan{Session: s, Project: project, Runtime: runtimes.Default(r.Config.RunnerImage), Operator: workload.Operator{
		Namespace:        r.Config.Namespace,
		BackendNamespace: r.Config.BackendNamespace,
		StateSyncUser:    r.Config.StateSyncUser,
		S3Endpoint:       r.Config.S3Endpoint,
		S3Bucket:         r.Config.S3Bucket,
		ImagePullPolicy:  r.Config.ImagePullPolicy,
		FSGroup:          r.Config.FSGroup,
		Vertex:           r.Config.Vertex,
		Tracing:          r.Config.Tracing,
		Proxy:            r.Config.Proxy,
		Placement:        r.Config.Placement,
	}}
	return nil
}

// inactivity is after how long an idle session stops: the session's word counts before the
// project's, the project's before the operator's; 0 is off at each.
func (r *AgenticSessionReconciler) inactivity(s *v1alpha1.AgenticSession, project *v1alpha1.ProjectSettings) time.Duration {
	switch {
	case s.Spec.InactivityTimeout != nil:
		return seconds(*s.Spec.InactivityTimeout)
	case project != nil && project.Spec.InactivityTimeoutSeconds != nil:
		return seconds(*project.Spec.InactivityTimeoutSeconds)
	default:
		return r.Config.DefaultInactivity
	}
}

// seconds is a duration of that many seconds, at most ten years: more is never meant, and would not fit.
func seconds(n int64) time.Duration {
	const most = 10 * 365 * 24 * 60 * 60
	return time.Duration(min(n, most)) * time.Second
}

// observeObjects reads the session's objects besides its Jobs.
func (r *AgenticSessionReconciler) observeObjects(ctx context.Context, o *seen) error {
	s := o.world.Session
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: s.Namespace, Name: name}
	}
	var err error
	if o.objects.serviceAccount, err = read(ctx, r, key(workload.ServiceAccountName(s.Name)), &corev1.ServiceAccount{}); err != nil {
		return err
	}
	if o.objects.role, err = read(ctx, r, key(workload.RoleName(s.Name)), &rbacv1.Role{}); err != nil {
		return err
	}
	if o.objects.roleBinding, err = read(ctx, r, key(workload.RoleBindingName(s.Name)), &rbacv1.RoleBinding{}); err != nil {
		return err
	}
	if o.objects.workspace, err = read(ctx, r, key(workload.WorkspaceName(s.Name)), &corev1.PersistentVolumeClaim{}); err != nil {
		return err
	}
	if o.objects.service, err = read(ctx, r, key(workload.ServiceName(s.Name)), &corev1.Service{}); err != nil {
		return err
	}
	if o.objects.token, err = read(ctx, r, key(workload.TokenSecretName(s.Name)), partial("v1", "Secret")); err != nil {
		return err
	}
	if o.objects.storage, err = read(ctx, r, key(workload.StorageSecretName(s.Name)), partial("v1", "Secret")); err != nil {
		return err
	}
	if o.objects.token == nil && o.tokenStored() {
		// The cache of Secrets may lag behind our own write; minting again would be in vain.
		secret := partial("v1", "Secret")
		switch err := r.Live.Get(ctx, key(workload.TokenSecretName(s.Name)), secret); {
		case err == nil:
			o.objects.token = secret
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("looking for the token Secret: %w", err)
		}
	}
	o.refresh()
	return nil
}

// tokenStored says that the status knows of the run's token.
func (o *seen) tokenStored() bool {
	s := &o.world.Session.Status
	return (s.Phase == v1alpha1.PhaseCreating || s.Phase == v1alpha1.PhaseRunning) &&
		meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionSecretsReady)
}

// refresh carries what the objects say over to the world.
func (o *seen) refresh() {
	o.world.Workspace = o.objects.workspace
	o.world.Token = nil
	if secret := o.objects.token; secret != nil && owned(secret, o.world.Session) {
		o.world.Token = tokenView(secret)
	}
}

// get reads an object and says whether it exists.
func (r *AgenticSessionReconciler) get(ctx context.Context, key types.NamespacedName, object client.Object) (bool, error) {
	return lookup(ctx, r.Client, key, object)
}

// lookup reads an object and says whether it exists.
func lookup(ctx context.Context, from client.Reader, key types.NamespacedName, object client.Object) (bool, error) {
	err := from.Get(ctx, key, object)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	default:
		return false, fmt.Errorf("reading %s %s: %w", kindOf(object), key, err)
	}
}

// read is get for an object that is nil when absent.
func read[T client.Object](ctx context.Context, r *AgenticSessionReconciler, key types.NamespacedName, object T) (T, error) {
	var absent T
	found, err := r.get(ctx, key, object)
	if err != nil || !found {
		return absent, err
	}
	return object, nil
}

// partial asks for the metadata of an object alone.
func partial(version, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}}
}

// owned says that the session controls an object.
func owned(object client.Object, s *v1alpha1.AgenticSession) bool {
	controller := metav1.GetControllerOf(object)
	return controller != nil && controller.UID == s.UID
}
