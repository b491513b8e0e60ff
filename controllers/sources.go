package controllers

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/project"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

const (
	// indexSession finds Jobs and pods by their session.
	indexSession = "session"
	// indexInvolvedUID finds Events by the object they speak of. It has the name of the API
	// server's own field selector, so that the same list works with and without a cache.
	indexInvolvedUID = "involvedObject.uid"

	reasonFailedCreate  = "FailedCreate"
	projectSettingsName = project.SettingsName
)

// watched is a kind of object that the operator sees, with what its changes wake. The table of all
// serves the shared caches and the plain watches of --legacy-watch alike.
type watched struct {
	object client.Object
	list   client.ObjectList
	// labels and fields select what is ours to see; nil selects all.
	labels labels.Selector
	fields fields.Selector
	// in limits the watch to namespaces; nil is all. What is clusterWide is in none.
	in          []string
	clusterWide bool
	// shared says that the operator's own namespace is looked at in any case.
	shared bool
	// strip drops what is never read, to keep caches small.
	strip func(any) (any, error)
	// sessions, projects, namespaces and copies (of shared Secrets) are what changes of the kind
	// wake; nil where the kind does not concern them.
	sessions, projects, namespaces, copies mapping
}

// mapping maps an object to what it concerns.
type mapping func(context.Context, client.Object) []reconcile.Request

// watches lists every kind that the operator depends on.
func watches(r *AgenticSessionReconciler, p *ProjectSettingsReconciler, c *SharedSecretReconciler) []watched {
	session, err := labels.NewRequirement(v1alpha1.LabelSession, "exists", nil)
	selector := labels.NewSelector()
	if err == nil {
		selector = selector.Add(*session)
	}
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	managed := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManaged: "true"})
	refused := fields.Set{"involvedObject.kind": "Job", "reason": reasonFailedCreate}.AsSelector()
	trustedCA := fields.OneTermEqualSelector("metadata.name", workload.TrustedCAConfigMap)
	return []watched{
		{object: &v1alpha1.AgenticSession{}, list: &v1alpha1.AgenticSessionList{}, sessions: r.bySession, copies: c.byRun},
		{object: &batchv1.Job{}, list: &batchv1.JobList{}, labels: selector, strip: stripJob, sessions: byLabel, copies: c.byRun},
		{object: &corev1.Pod{}, list: &corev1.PodList{}, labels: selector, strip: stripPod, sessions: r.byRunner},
		{object: &corev1.Service{}, list: &corev1.ServiceList{}, labels: selector, sessions: byLabel},
		{object: &corev1.PersistentVolumeClaim{}, list: &corev1.PersistentVolumeClaimList{}, labels: selector, sessions: r.byWorkspace},
		{object: &corev1.ServiceAccount{}, list: &corev1.ServiceAccountList{}, labels: ours, sessions: byLabel, projects: ofProject},
		{object: &rbacv1.Role{}, list: &rbacv1.RoleList{}, labels: ours, sessions: byLabel, projects: ofProject},
		{object: &rbacv1.RoleBinding{}, list: &rbacv1.RoleBindingList{}, labels: ours, sessions: byLabel, projects: ofProject},
		{object: &corev1.LimitRange{}, list: &corev1.LimitRangeList{}, labels: ours, projects: ofProject},
		{object: &networkingv1.NetworkPolicy{}, list: &networkingv1.NetworkPolicyList{}, labels: ours, projects: ofProject},
		{object: partial("v1", "Secret"), list: partialList("v1", "SecretList"), shared: true, strip: stripMetadata, sessions: r.bySecret, copies: c.bySecret},
		{object: partial("v1", "ConfigMap"), list: partialList("v1", "ConfigMapList"), fields: trustedCA, strip: stripMetadata, sessions: r.byProject},
		{object: partial("v1", "Namespace"), list: partialList("v1", "NamespaceList"), clusterWide: true, labels: managed, strip: stripMetadata, sessions: r.byNamespace, projects: p.inNamespace, namespaces: itself, copies: c.byNamespace},
		{object: &corev1.Event{}, list: &corev1.EventList{}, fields: refused, strip: stripEvent, sessions: byEvent},
		{object: &v1alpha1.ProjectSettings{}, list: &v1alpha1.ProjectSettingsList{}, sessions: r.byProject, projects: itself, namespaces: itsNamespace, copies: c.byProject},
	}
}

// registryWatch is for the registry of runner types. The shared cache selects ConfigMaps by another
// name in all namespaces, and selectors know no "or": so this one has a cache of its own.
func registryWatch(namespace string) watched {
	return watched{
		object: &corev1.ConfigMap{}, list: &corev1.ConfigMapList{}, in: []string{namespace},
		fields: fields.OneTermEqualSelector("metadata.name", runtimes.RegistryConfigMap),
	}
}

// CacheOptions configures the manager's cache: only what is ours, in the namespaces that are to be
// served, without what is never read, and no cache that nobody asked for.
func CacheOptions(settings *config.Config) cache.Options {
	options := cache.Options{
		ByObject:                    map[client.Object]cache.ByObject{},
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
	}
	for _, w := range watches(&AgenticSessionReconciler{}, &ProjectSettingsReconciler{}, &SharedSecretReconciler{}) {
		w = scoped(w, settings)
		by := cache.ByObject{Namespaces: w.configs(), Label: w.labels, Field: w.fields, Transform: cache.TransformStripManagedFields()}
		if w.strip != nil {
			by.Transform = w.strip
		}
		options.ByObject[w.object] = by
	}
	return options
}

func partialList(version, kind string) *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}}
}

func request(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

func itself(_ context.Context, object client.Object) []reconcile.Request {
	return request(object.GetNamespace(), object.GetName())
}

func itsNamespace(_ context.Context, object client.Object) []reconcile.Request {
	return request("", object.GetNamespace())
}

// ofProject maps an object of ours that is not a session's to the settings of its project. It does
// not go by the project's label, which may have been taken off.
func ofProject(_ context.Context, object client.Object) []reconcile.Request {
	if object.GetLabels()[v1alpha1.LabelSession] != "" {
		return nil
	}
	return request(object.GetNamespace(), projectSettingsName)
}

// byLabel goes by the label, not the owner: the end of an object that belonged to a deleted session
// wakes a new one of the same name that waits for it.
func byLabel(_ context.Context, object client.Object) []reconcile.Request {
	if name := object.GetLabels()[v1alpha1.LabelSession]; name != "" {
		return request(object.GetNamespace(), name)
	}
	return nil
}

// byEvent maps the Job controller's complaint to the session of the Job.
func byEvent(_ context.Context, object client.Object) []reconcile.Request {
	event, ok := object.(*corev1.Event)
	if !ok {
		return nil
	}
	if name := workload.SessionOfJob(event.InvolvedObject.Name); name != "" {
		return request(event.Namespace, name)
	}
	return nil
}

// bySecret wakes the session of a token Secret, or the sessions that wait for one that the project
// must hold.
func (r *AgenticSessionReconciler) bySecret(ctx context.Context, object client.Object) []reconcile.Request {
	if requests := byLabel(ctx, object); requests != nil {
		return requests
	}
	if object.GetNamespace() == r.Config.Namespace && object.GetName() == workload.SharedStorageSecret {
		return r.inNamespace(ctx, metav1.NamespaceAll, underWay)
	}
	if name := workload.SessionOfToken(object.GetName()); name != "" {
		return request(object.GetNamespace(), name)
	}
	settings := &v1alpha1.ProjectSettings{}
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: projectSettingsName}
	if err := r.Seen.Get(ctx, key, settings); err != nil {
		settings = nil
	}
	switch object.GetName() {
	case workload.RunnerSecret(settings), workload.VertexSecret, workload.IntegrationsSecret:
		return r.waiting(ctx, object.GetNamespace())
	}
	return nil
}

// byRegistry wakes the sessions of all namespaces whose run has not begun: the others do not depend
// on the registry.
func (r *AgenticSessionReconciler) byRegistry(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.inNamespace(ctx, metav1.NamespaceAll, func(s *v1alpha1.AgenticSession) bool {
		return yetToBegin(s) || s.Status.Phase == v1alpha1.PhaseCreating
	})
}

func (r *AgenticSessionReconciler) byNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	return r.waiting(ctx, object.GetName())
}

// waiting lists the sessions of a namespace that have not begun.
func (r *AgenticSessionReconciler) waiting(ctx context.Context, namespace string) []reconcile.Request {
	return r.inNamespace(ctx, namespace, yetToBegin)
}

func yetToBegin(s *v1alpha1.AgenticSession) bool {
	return s.Status.Phase == "" || s.Status.Phase == v1alpha1.PhasePending
}

func underWay(s *v1alpha1.AgenticSession) bool { return !s.Status.Phase.Terminal() }

// byProject wakes the sessions that a change of the project can concern: those that are not over.
func (r *AgenticSessionReconciler) byProject(ctx context.Context, object client.Object) []reconcile.Request {
	return r.inNamespace(ctx, object.GetNamespace(), underWay)
}

func (r *AgenticSessionReconciler) inNamespace(ctx context.Context, namespace string, wanted func(*v1alpha1.AgenticSession) bool) []reconcile.Request {
	sessions, err := listSessions(ctx, r.Seen, r.Config, namespace)
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range sessions {
		if s := &sessions[i]; wanted(s) {
			requests = append(requests, request(s.Namespace, s.Name)...)
		}
	}
	return requests
}

// stripPod keeps of a pod what outcomes and obstacles are read from.
func stripPod(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds}
	}
	return object, nil
}

// stripJob drops the pod template, which holds the prompt.
func stripJob(object any) (any, error) {
	if job, ok := object.(*batchv1.Job); ok {
		job.ManagedFields = nil
		job.Spec.Template = corev1.PodTemplateSpec{}
	}
	return object, nil
}

func stripEvent(object any) (any, error) {
	if event, ok := object.(*corev1.Event); ok {
		event.ObjectMeta = metav1.ObjectMeta{Namespace: event.Namespace, Name: event.Name, UID: event.UID, ResourceVersion: event.ResourceVersion}
	}
	return object, nil
}

// stripMetadata keeps of other people's objects that they exist, and of ours what we wrote.
func stripMetadata(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		m.ManagedFields = nil
		if m.Labels[v1alpha1.LabelSession] == "" {
			// Annotations of others may hold anything, a whole Secret for instance.
			origin := m.Annotations[v1alpha1.AnnotationCopiedFrom]
			m.Annotations = nil
			if origin != "" {
				m.Annotations = map[string]string{v1alpha1.AnnotationCopiedFrom: origin}
			}
			m.OwnerReferences = nil
		}
	}
	return object, nil
}
