package rig

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	s3Server     = "s3-server"
	s3ServerPort = 9000
	s3ShowPort   = 8080
	s3Data       = "/data"

	// sharedStorage and its keys are where the operator looks for the credentials of the storage
	// that all projects share; source: the contract.
	sharedStorage   = "minio-credentials"
	sharedAccessKey = "access-key"
	sharedSecretKey = "secret-key"
)

// What the S3 server of the real node lets in, and its bucket.
const (
	S3Bucket    = "sessions"
	S3AccessKey = "rig-access"
	S3SecretKey = "rig-secret-never-to-be-printed"
	// S3Endpoint is where pods find the server.
	S3Endpoint = "http://s3-server." + OperatorNamespace + ".svc.cluster.local:9000"
)

// S3Server runs an S3 server with an empty bucket in the operator's namespace of the real node, as
// the storage that all projects share.
func (c *Cluster) S3Server(ctx context.Context) error {
	labels := map[string]string{"app": s3Server}
	meta := metav1.ObjectMeta{Namespace: OperatorNamespace, Name: s3Server, Labels: labels}
	objects := []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: OperatorNamespace, Name: sharedStorage},
			StringData: map[string]string{sharedAccessKey: S3AccessKey, sharedSecretKey: S3SecretKey},
		},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{
			{Name: "s3", Port: s3ServerPort}, {Name: "show", Port: s3ShowPort},
		}}},
		&corev1.Pod{ObjectMeta: meta, Spec: s3ServerPod()},
	}
	for _, object := range objects {
		if err := c.Client.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("starting the S3 server: %w", err)
		}
	}
	if err := c.podReady(ctx, OperatorNamespace, s3Server); err != nil {
		return fmt.Errorf("waiting for the S3 server: %w", err)
	}
	return nil
}

// s3ServerPod is the server and, beside it, the state-sync image by its other name: it makes the
// bucket and shows what is in it.
func s3ServerPod() corev1.PodSpec {
	yes, no := true, false
	key := func(name, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: sharedStorage}, Key: key,
		}}}
	}
	ready := func(port int32) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(port)},
		}}
	}
	security := &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	return corev1.PodSpec{
		AutomountServiceAccountToken: &no,
		SecurityContext:              &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		// Beside the objects the server keeps what it knows of them in files: not every file system
		// has extended attributes.
		Volumes: []corev1.Volume{
			{Name: "objects", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "metadata", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		Containers: []corev1.Container{{
			Name: s3Server, Image: S3ServerImage.Name, SecurityContext: security, ReadinessProbe: ready(s3ServerPort),
			Args: []string{"--quiet", "--port", fmt.Sprintf(":%d", s3ServerPort), "--health", "/healthz", "posix", "--sidecar", s3Data + "/metadata", s3Data + "/objects"},
			Env:  []corev1.EnvVar{key("ROOT_ACCESS_KEY_ID", sharedAccessKey), key("ROOT_SECRET_ACCESS_KEY", sharedSecretKey)},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "objects", MountPath: s3Data + "/objects"}, {Name: "metadata", MountPath: s3Data + "/metadata"},
			},
		}, {
			Name: "show", Image: StateSyncImage.Name, SecurityContext: security, ReadinessProbe: ready(s3ShowPort),
			Env: []corev1.EnvVar{
				{Name: "S3_ENDPOINT", Value: fmt.Sprintf("http://127.0.0.1:%d", s3ServerPort)}, {Name: "S3_BUCKET", Value: S3Bucket},
				key("AWS_ACCESS_KEY_ID", sharedAccessKey), key("AWS_SECRET_ACCESS_KEY", sharedSecretKey),
			},
		}},
	}
}

// Objects lists the keys in the bucket that begin with a prefix.
func (c *Cluster) Objects(ctx context.Context, prefix string) ([]string, error) {
	answer, err := c.show(ctx, "objects", "prefix", prefix)
	if err != nil {
		return nil, err
	}
	var keys []string
	if err := json.Unmarshal(answer, &keys); err != nil {
		return nil, fmt.Errorf("reading the list of objects: %w", err)
	}
	return keys, nil
}

// Object is the content of an object in the bucket.
func (c *Cluster) Object(ctx context.Context, key string) ([]byte, error) {
	return c.show(ctx, "object", "key", key)
}

func (c *Cluster) show(ctx context.Context, path, name, value string) ([]byte, error) {
	clientset, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	answer, err := clientset.CoreV1().Services(OperatorNamespace).ProxyGet("http", s3Server, fmt.Sprint(s3ShowPort), path, map[string]string{name: value}).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking what is in the bucket under %s: %w: %s", value, err, answer)
	}
	return answer, nil
}
