package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Secrets with which runners report to a service that keeps traces of what agents do; names and
// keys are the platform's.
const (
	LangfuseSecret = "ambient-admin-langfuse-secret"
	MLflowSecret   = "ambient-admin-mlflow-observability-secret"
)

// SharedSecrets are all the Secrets that a platform can keep in the operator's namespace for every
// project to use. Pods can refer only to Secrets of their own namespace, so projects get copies.
var SharedSecrets = []string{VertexSecret, LangfuseSecret, MLflowSecret}

// Tracing says to which services runners report what agents do.
type Tracing struct {
	Langfuse bool
	MLflow   bool
}

var (
	langfuseKeys = []string{"LANGFUSE_ENABLED", "LANGFUSE_HOST", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"}
	mlflowKeys   = []string{
		"MLFLOW_TRACING_ENABLED", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME",
		"MLFLOW_TRACKING_AUTH", "MLFLOW_WORKSPACE", "OBSERVABILITY_BACKENDS",
	}
)

// tracing gives the runner what it reports with. Work goes on without traces, so a Secret or a key
// that is not there keeps no runner from starting.
func (p *Plan) tracing() []corev1.EnvVar {
	var env []corev1.EnvVar
	add := func(asked bool, secret string, keys []string) {
		if !asked {
			return
		}
		for _, key := range keys {
			yes := true
			env = append(env, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key, Optional: &yes,
			}}})
		}
	}
	add(p.Operator.Tracing.Langfuse, LangfuseSecret, langfuseKeys)
	add(p.Operator.Tracing.MLflow, MLflowSecret, mlflowKeys)
	return env
}

// RefersTo says whether a pod of ours uses a Secret.
func RefersTo(pod *corev1.PodSpec, secret string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == secret
	}) || slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool {
			return v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil && v.ValueFrom.SecretKeyRef.Name == secret
		})
	})
}
