package workload

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Names of the platform for storage; source: its operator.
const (
	// SharedStorageSecret is in the operator's namespace: the credentials of the storage that all
	// projects share.
	SharedStorageSecret = "minio-credentials"
	sharedAccessKey     = "access-key"
	sharedSecretKey     = "secret-key"

	// Keys of IntegrationsSecret.
	storageMode      = "STORAGE_MODE"
	storageEndpoint  = "S3_ENDPOINT"
	storageBucket    = "S3_BUCKET"
	storageAccessKey = "S3_ACCESS_KEY"
	storageSecretKey = "S3_SECRET_KEY"

	modeShared = "shared"
	modeCustom = "custom"
)

// Storage is where in S3 the workspace of a session is kept. Values stand in Secrets: no pod has
// credentials written on it.
type Storage struct {
	Endpoint, Bucket, AccessKey, SecretKey Setting
	// Shared says that the credentials are those that all projects share, so that the session needs
	// a copy of them in its namespace.
	Shared bool
}

// Setting is a value, or the place of one in a Secret of the session's namespace.
type Setting struct {
	Value       string
	Secret, Key string
}

func (s Setting) env(name string) corev1.EnvVar {
	if s.Secret == "" {
		return literal(name, s.Value)
	}
	return fromSecret(name, s.Secret, s.Key)
}

func fromSecret(name, secret, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret},
		Key:                  key,
	}}}
}

// StorageOf decides where a session's workspace is kept. A project that says STORAGE_MODE=custom in
// its IntegrationsSecret has its own; what it leaves out, and other projects, have the operator's.
// The shared credentials are given only for the operator's own bucket. It says, a sentence each,
// what is missing. Nil stands for a Secret that does not exist.
func StorageOf(session, namespace string, integrations, shared map[string][]byte, operator *Operator) (Storage, []string) {
	storage := Storage{Endpoint: Setting{Value: operator.S3Endpoint}, Bucket: Setting{Value: operator.S3Bucket}}
	value := func(key string) string { return strings.TrimSpace(string(integrations[key])) }
	switch mode := value(storageMode); mode {
	case "", modeShared:
		return storage.complete(session, namespace, true, shared, operator)
	case modeCustom:
	default:
		return storage, []string{fmt.Sprintf("%s in Secret %s of namespace %s is %.40q: set it to %s or %s", storageMode, IntegrationsSecret, namespace, mode, modeShared, modeCustom)}
	}
	take := func(key string, onto *Setting) {
		if value(key) != "" {
			*onto = Setting{Secret: IntegrationsSecret, Key: key}
		}
	}
	take(storageEndpoint, &storage.Endpoint)
	take(storageBucket, &storage.Bucket)
	take(storageAccessKey, &storage.AccessKey)
	take(storageSecretKey, &storage.SecretKey)
	ours := slices.Contains([]string{"", operator.S3Endpoint}, value(storageEndpoint)) &&
		slices.Contains([]string{"", operator.S3Bucket}, value(storageBucket))
	return storage.complete(session, namespace, ours, shared, operator)
}

// complete fills in the shared credentials where they may be used, and says what is missing.
func (s Storage) complete(session, namespace string, ours bool, shared map[string][]byte, operator *Operator) (Storage, []string) {
	var missing []string
	if s.Endpoint == (Setting{}) || s.Bucket == (Setting{}) {
		missing = append(missing, fmt.Sprintf("the runner type keeps workspaces in S3 and no server or bucket is configured: set S3_ENDPOINT and S3_BUCKET of the operator, or in Secret %s of namespace %s %s=%s, %s and %s", IntegrationsSecret, namespace, storageMode, modeCustom, storageEndpoint, storageBucket))
	}
	switch {
	case s.AccessKey != Setting{} && s.SecretKey != Setting{}:
	case !ours:
		missing = append(missing, fmt.Sprintf("the project has an S3 storage of its own without credentials: put %s and %s into Secret %s of namespace %s", storageAccessKey, storageSecretKey, IntegrationsSecret, namespace))
	case len(shared[sharedAccessKey]) == 0 || len(shared[sharedSecretKey]) == 0:
		missing = append(missing, fmt.Sprintf("the runner type keeps workspaces in S3 and there are no credentials: put keys %s and %s into Secret %s of the operator's namespace %s, or in Secret %s of namespace %s %s=%s with a storage of the project's own", sharedAccessKey, sharedSecretKey, SharedStorageSecret, operator.Namespace, IntegrationsSecret, namespace, storageMode, modeCustom))
	default:
		s.Shared = true
		s.AccessKey = Setting{Secret: StorageSecretName(session), Key: sharedAccessKey}
		s.SecretKey = Setting{Secret: StorageSecretName(session), Key: sharedSecretKey}
	}
	return s, missing
}

// StorageSecretName names the session's copy of the shared credentials.
func StorageSecretName(session string) string { return "ambient-storage-" + session }

// StorageSecret is the session's copy of the shared credentials. It has nothing but what is used.
func (p *Plan) StorageSecret(source *corev1.Secret) *corev1.Secret {
	meta := p.objectMeta(StorageSecretName(p.Session.Name))
	meta.Annotations[v1alpha1.AnnotationSourceVersion] = source.ResourceVersion
	return &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{
		sharedAccessKey: source.Data[sharedAccessKey],
		sharedSecretKey: source.Data[sharedSecretKey],
	}}
}
