package workload

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/runtimes"
)

// PortName is the name of the runner's port; source: the contract.
const PortName = "agui"

// Plan is all that the objects of a session's run are made from.
type Plan struct {
	Session *v1alpha1.AgenticSession
	Runtime runtimes.Runtime
	// Operator is what the operator is configured with.
	Operator Operator
	// Storage is where the workspace is kept; of a type that keeps it in S3.
	Storage Storage
	// Continued is the session in whose workspace the run goes on; empty for the session's own.
	Continued string
	// Project is the namespace's settings; nil when there are none.
	Project *v1alpha1.ProjectSettings
	// TrustedCA says that the project has a CA bundle of its own.
	TrustedCA bool
	// SecretKeys are the names that come from the project's Secrets; the session's own variables
	// may not override them.
	SecretKeys []string
}

// Operator is what of the operator's configuration reaches runners.
type Operator struct {
	// Namespace is the operator's own.
	Namespace        string
	BackendNamespace string
	// StateSyncUser is the user of the containers that fill and copy workspaces; nil leaves it to
	// the image or the cluster.
	StateSyncUser *int64
	// S3Endpoint and S3Bucket are the storage of projects without one of their own.
	S3Endpoint, S3Bucket string
	ImagePullPolicy      corev1.PullPolicy
	// FSGroup owns the workspace where the cluster does not assign a group itself.
	FSGroup *int64
	// JobDeadline is the Job's activeDeadlineSeconds; 0 means none.
	JobDeadline int64
	Vertex      Vertex
	Tracing     Tracing
	// Proxy holds the proxy variables that are handed on.
	Proxy []corev1.EnvVar
	// Placement says which nodes runners are put on.
	Placement Placement
}

// Vertex is how runners reach models on Vertex AI.
type Vertex struct {
	Enabled     bool
	Region      string
	ProjectID   string
	Credentials string
}

// RunnerSecret names the Secret with the keys of the project's runners.
func (p *Plan) RunnerSecret() string {
	return RunnerSecret(p.Project)
}

// RunnerSecret names the Secret with the keys of a project's runners.
func RunnerSecret(project *v1alpha1.ProjectSettings) string {
	if project != nil && project.Spec.RunnerSecretsName != "" {
		return project.Spec.RunnerSecretsName
	}
	return DefaultRunnerSecret
}

func (p *Plan) objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       p.Session.Namespace,
		Labels:          Labels(p.Session.Name),
		Annotations:     map[string]string{v1alpha1.AnnotationSessionUID: string(p.Session.UID)},
		OwnerReferences: []metav1.OwnerReference{Owner(p.Session.Name, p.Session.UID)},
	}
}

// Labels are on every object of a session; the operator's caches select by the first.
func Labels(session string) map[string]string {
	return map[string]string{
		v1alpha1.LabelSession:   session,
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
	}
}

// Owner is the owner reference of every object of a session. It does not block the deletion of
// the session: that would need a right on its finalizers and serves nothing here.
func Owner(session string, uid types.UID) metav1.OwnerReference {
	controller := true
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(),
		Kind:       "AgenticSession",
		Name:       session,
		UID:        uid,
		Controller: &controller,
	}
}

// ServiceAccount is the runner's identity. Its token is mounted as a file of our own making, so
// none is mounted by itself.
func (p *Plan) ServiceAccount() *corev1.ServiceAccount {
	automount := false
	sa := &corev1.ServiceAccount{
		ObjectMeta:                   p.objectMeta(ServiceAccountName(p.Session.Name)),
		AutomountServiceAccountToken: &automount,
	}
	if user := p.Session.Spec.UserContext; user != nil && user.UserID != "" {
		sa.Annotations[v1alpha1.AnnotationCreatedByUserID] = user.UserID
	}
	return sa
}

// Workspace is the volume claim that a session keeps over its runs.
func (p *Plan) Workspace() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: p.objectMeta(WorkspaceName(p.Session.Name)),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: p.Runtime.WorkspaceSize},
			},
		},
	}
}

// Service is the runner's network address.
func (p *Plan) Service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: p.objectMeta(ServiceName(p.Session.Name)),
		Spec: corev1.ServiceSpec{
			Selector: runnerSelector(p.Session.Name),
			Ports: []corev1.ServicePort{{
				Name:       PortName,
				Protocol:   corev1.ProtocolTCP,
				Port:       p.Runtime.Port,
				TargetPort: intstr.FromString(PortName),
			}},
		},
	}
}

func runnerSelector(session string) map[string]string {
	return map[string]string{
		v1alpha1.LabelSession: session,
		v1alpha1.LabelApp:     v1alpha1.AppRunner,
	}
}

// TokenSecret is the Secret with the runner's tokens, without its data.
func (p *Plan) TokenSecret(run int64) *corev1.Secret {
	meta := p.objectMeta(TokenSecretName(p.Session.Name))
	meta.Labels[v1alpha1.LabelApp] = v1alpha1.AppRunnerToken
	meta.Labels[v1alpha1.LabelRun] = strconv.FormatInt(run, 10)
	return &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque}
}
