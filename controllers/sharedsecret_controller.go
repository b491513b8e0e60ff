package controllers

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/project"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// SharedSecretReconciler keeps copies of the operator's shared Secrets in every managed namespace.
// A request names one copy. The content of Secrets is in no cache: it is read when the metadata of
// the copy, of its source or of its owner tell that something has changed.
type SharedSecretReconciler struct {
	// Client reads from caches, or from the API server under --legacy-watch, and writes.
	Client client.Client
	// Live reads from the API server: content of Secrets, and what Jobs refer to.
	Live   client.Reader
	Config *config.Config
	Events events.EventRecorder

	// seen reads for what maps events, without waiting for writes that are under way.
	seen   client.Reader
	memory copyMemory
}

// +kubebuilder:rbac:groups=vteam.ambient-code,resources=agenticsessions;projectsettings,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller of shared Secrets to the manager.
func (r *SharedSecretReconciler) SetupWithManager(mgr ctrl.Manager) error {
	from, err := readingFrom(mgr, r.Config)
	if err != nil {
		return err
	}
	r.Client, r.Live, r.seen = from.client, from.live, from.seen
	table := watches(&AgenticSessionReconciler{}, &ProjectSettingsReconciler{}, r)
	return control(mgr, "sharedsecret", r.Config, from.sources(table, func(w watched) mapping { return w.copies }), r)
}

// Reconcile makes one pass over one copy.
func (r *SharedSecretReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := request.NamespacedName
	if key.Namespace == r.Config.Namespace {
		return ctrl.Result{}, nil // the source itself
	}
	namespace, secret := partial("v1", "Namespace"), partial("v1", "Secret")
	if _, err := lookup(ctx, r.Client, types.NamespacedName{Name: key.Namespace}, namespace); err != nil {
		return ctrl.Result{}, err
	}
	found, err := lookup(ctx, r.Client, key, secret)
	if err != nil || namespace.DeletionTimestamp != nil || secret.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	wanted := namespace.Labels[v1alpha1.LabelManaged] == "true" && slices.Contains(r.Config.SharedSecrets(), key.Name)
	switch {
	case wanted && found && !project.IsCopy(secret, r.origin(key.Name)):
		err = r.yield(ctx, key, secret)
	case wanted && !found:
		err = r.provide(ctx, key, nil)
	case wanted:
		err = r.provide(ctx, key, secret)
	case found && project.IsCopy(secret, r.origin(key.Name)):
		err = r.withdraw(ctx, secret)
	default:
		r.memory.forget(key)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		// It changed meanwhile. Its event makes the next pass before; this is for one that got lost.
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	case apierrors.IsNotFound(err), err != nil && apierrors.HasStatusCause(err, terminating):
		return ctrl.Result{}, nil
	default:
		return ctrl.Result{}, err
	}
}

// yield tells, once, that a Secret of the project's own is in the place of a copy.
func (r *SharedSecretReconciler) yield(ctx context.Context, key types.NamespacedName, secret *metav1.PartialObjectMetadata) error {
	settings := &v1alpha1.ProjectSettings{}
	found, err := lookup(ctx, r.Client, types.NamespacedName{Namespace: key.Namespace, Name: project.SettingsName}, settings)
	if err != nil || !found || !r.memory.foreign(key, secret) {
		return err // without settings nobody can be told; they wake this again when they are made
	}
	log.FromContext(ctx).Info("A Secret of the project's own is used in place of a copy", "source", r.origin(key.Name))
	r.Events.Eventf(settings, nil, corev1.EventTypeWarning, v1alpha1.ReasonOwnSecretUsed, "LeaveSecret",
		"Secret %s is the project's own and is used as it is, not as a copy of Secret %s: to have the copy, remove or rename it", key.Name, r.origin(key.Name))
	return nil
}

func (r *SharedSecretReconciler) origin(name string) string {
	return project.Origin(r.Config.Namespace, name)
}

// provide makes the copy be as its source; known is what the cache has of it. Without a source an
// old copy stays: sources are replaced by others, and runs that use it are to go on.
func (r *SharedSecretReconciler) provide(ctx context.Context, key types.NamespacedName, known *metav1.PartialObjectMetadata) error {
	settings, from := &v1alpha1.ProjectSettings{}, partial("v1", "Secret")
	found, err := lookup(ctx, r.Client, types.NamespacedName{Namespace: key.Namespace, Name: project.SettingsName}, settings)
	if err != nil {
		return err
	}
	if !found || settings.DeletionTimestamp != nil {
		settings = nil
	}
	found, err = lookup(ctx, r.Client, types.NamespacedName{Namespace: r.Config.Namespace, Name: key.Name}, from)
	if err != nil {
		return err
	}
	if r.memory.missing(key.Name, !found) {
		log.FromContext(ctx).Info("A Secret that is to be shared is missing; copies of it are made when it is there", "source", r.origin(key.Name))
	}
	if !found || known != nil && r.memory.agreed(key, known, from, settings) {
		return nil
	}
	source := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(from), source); err != nil {
		return fmt.Errorf("reading the Secret %s, which is shared: %w", r.origin(key.Name), err)
	}
	desired := project.Copy(source, key.Namespace, settings)
	if known == nil {
		err = r.create(ctx, desired)
	} else {
		desired, err = r.mend(ctx, desired)
	}
	if err != nil || desired == nil {
		return err
	}
	r.memory.agree(key, desired, source, settings)
	return nil
}

func (r *SharedSecretReconciler) create(ctx context.Context, desired *corev1.Secret) error {
	if err := r.applier().Create(ctx, desired); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Shared Secret copied", "source", r.origin(desired.Name))
	return nil
}

// mend makes a stored copy be as desired and returns it; nil when it has to be made anew, or is
// somebody else's by now.
func (r *SharedSecretReconciler) mend(ctx context.Context, desired *corev1.Secret) (*corev1.Secret, error) {
	stored := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(desired), stored); err != nil {
		return nil, fmt.Errorf("reading the copy of Secret %s: %w", r.origin(desired.Name), err)
	}
	if !project.IsCopy(stored, r.origin(desired.Name)) || stored.DeletionTimestamp != nil {
		return nil, nil
	}
	mended := project.MendCopy(stored, desired)
	if equality.Semantic.DeepEqual(stored, mended) {
		return stored, nil
	}
	if stored.Immutable != nil && *stored.Immutable && !equality.Semantic.DeepEqual(stored.Data, mended.Data) {
		known := partial("v1", "Secret")
		stored.ObjectMeta.DeepCopyInto(&known.ObjectMeta)
		return nil, r.remove(ctx, known)
	}
	if err := r.applier().Change(ctx, mended, stored); err != nil {
		return nil, err
	}
	log.FromContext(ctx).Info("Copy of a shared Secret brought up to date", "source", r.origin(desired.Name))
	return mended, nil
}

// withdraw removes a copy that is no longer wanted, once no run uses it.
func (r *SharedSecretReconciler) withdraw(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	key := client.ObjectKeyFromObject(secret)
	// Said before it is looked for, so that no run ends in between unnoticed.
	r.memory.keep(key)
	used, err := r.used(ctx, key)
	if err != nil || used {
		return err
	}
	if err := r.remove(ctx, secret); err != nil {
		return err
	}
	r.memory.forget(key)
	return nil
}

func (r *SharedSecretReconciler) remove(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	if err := r.applier().RemoveAsRead(ctx, secret); err != nil {
		return fmt.Errorf("removing the copy of Secret %s: %w", r.origin(secret.GetName()), err)
	}
	log.FromContext(ctx).Info("Copy of a shared Secret removed", "source", r.origin(secret.GetName()))
	return nil
}

// used says whether a run that is under way refers to the copy. A run that is being stopped needs it
// no more. Jobs are in the cache without their
// templates, so they are read; only where sessions are under way at all.
func (r *SharedSecretReconciler) used(ctx context.Context, key types.NamespacedName) (bool, error) {
	sessions := &v1alpha1.AgenticSessionList{}
	if err := r.Client.List(ctx, sessions, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the sessions that may use a shared Secret: %w", err)
	}
	if !slices.ContainsFunc(sessions.Items, func(s v1alpha1.AgenticSession) bool {
		return s.Status.Phase != "" && s.Status.Phase != v1alpha1.PhasePending && !s.Status.Phase.Terminal()
	}) {
		return false, nil
	}
	jobs := &batchv1.JobList{}
	if err := r.Live.List(ctx, jobs, client.InNamespace(key.Namespace), client.HasLabels{v1alpha1.LabelSession}); err != nil {
		return false, fmt.Errorf("listing the Jobs that may use a shared Secret: %w", err)
	}
	return slices.ContainsFunc(jobs.Items, func(job batchv1.Job) bool {
		return job.DeletionTimestamp == nil && !session.Finished(&job) && workload.RefersTo(&job.Spec.Template.Spec, key.Name)
	}), nil
}

func (r *SharedSecretReconciler) applier() *apply.Applier {
	return &apply.Applier{Client: r.Client, Live: r.Live}
}
