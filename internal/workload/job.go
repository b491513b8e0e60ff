package workload

import (
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// Paths inside the runner's container; source: the contract.
const (
	workspacePath = "/workspace"
	statePath     = "/app"
	tokenPath     = "/var/run/secrets/ambient"
	tokenFile     = "bot-token"
	vertexPath    = "/app/vertex"
	trustedCAPath = "/etc/pki/tls/certs/ca-bundle.crt"

	// rootCAConfigMap is published in every namespace by Kubernetes itself.
	rootCAConfigMap = "kube-root-ca.crt"
	rootCAKey       = "ca.crt"
)

// Job is one run of a session. It is never retried by itself: an agent's work has effects, so a
// second attempt is for a person to ask for.
func (p *Plan) Job(run int64) *batchv1.Job {
	var (
		one   = int32(1)
		never = int32(0)
		when  = batchv1.Failed
	)
	meta := p.objectMeta(JobName(p.Session.Name, run))
	meta.Labels[v1alpha1.LabelRun] = strconv.FormatInt(run, 10)
	meta.Annotations[v1alpha1.AnnotationTimeoutSeconds] = strconv.FormatInt(p.timeout(), 10)
	meta.Annotations[v1alpha1.AnnotationRunSpec] = session.RunSpec(p.Session)
	meta.Annotations[v1alpha1.AnnotationRunRepos] = encode(p.Session.Spec.Repos, "[]")
	meta.Annotations[v1alpha1.AnnotationRunWorkflow] = encode(p.Session.Spec.ActiveWorkflow, "{}")
	p.record(meta.Annotations)
	if p.promptForced() {
		meta.Annotations[v1alpha1.AnnotationForceExecutePrompt] = "true"
	}
	job := &batchv1.Job{
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			Parallelism:          &one,
			Completions:          &one,
			BackoffLimit:         &never,
			PodReplacementPolicy: &when,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      maps.Clone(meta.Labels),
					Annotations: map[string]string{v1alpha1.AnnotationSessionUID: string(p.Session.UID)},
				},
				Spec: p.pod(),
			},
		},
	}
	job.Spec.Template.Labels[v1alpha1.LabelApp] = v1alpha1.AppRunner
	if p.Operator.JobDeadline > 0 {
		job.Spec.ActiveDeadlineSeconds = &p.Operator.JobDeadline
	}
	return job
}

func (p *Plan) timeout() int64 {
	if p.Session.Spec.Timeout == nil {
		return 0
	}
	return *p.Session.Spec.Timeout
}

// pod is the runner pod. It passes Pod Security "restricted" and fixes no user or group, so that
// OpenShift's restricted-v2 can assign its own.
func (p *Plan) pod() corev1.PodSpec {
	yes, no := true, false
	pod := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		ServiceAccountName:            ServiceAccountName(p.Session.Name),
		AutomountServiceAccountToken:  &no,
		EnableServiceLinks:            &no,
		TerminationGracePeriodSeconds: &p.Runtime.GracePeriod,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   &yes,
			FSGroup:        p.Operator.FSGroup,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		InitContainers: p.preparation(),
		Containers:     []corev1.Container{p.runner()},
		Volumes:        p.volumes(),
	}
	p.Operator.Placement.place(&pod)
	return pod
}

func (p *Plan) runner() corev1.Container {
	return corev1.Container{
		Name:            session.RunnerContainer,
		Image:           p.Runtime.Image,
		ImagePullPolicy: p.Operator.ImagePullPolicy,
		Ports:           []corev1.ContainerPort{{Name: PortName, ContainerPort: p.Runtime.Port, Protocol: corev1.ProtocolTCP}},
		Env:             p.environment(),
		EnvFrom:         p.environmentFrom(),
		Resources:       p.Runtime.Resources,
		VolumeMounts:    p.mounts(),
		SecurityContext: containerSecurity(),
		ReadinessProbe:  health(2, 3),
		// A busy agent may answer late; only one that is silent for five minutes is taken for dead.
		LivenessProbe: health(30, 10),
	}
}

func containerSecurity() *corev1.SecurityContext {
	no := false
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		ReadOnlyRootFilesystem:   &no,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func health(period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromString(PortName)},
		},
		PeriodSeconds:    period,
		TimeoutSeconds:   5,
		FailureThreshold: failures,
	}
}

func (p *Plan) volumes() []corev1.Volume {
	volumes := []corev1.Volume{p.workspace(), p.tokenVolume()}
	if p.UsesVertex() {
		volumes = append(volumes, corev1.Volume{Name: "vertex", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: VertexSecret},
		}})
	}
	if p.TrustedCA {
		volumes = append(volumes, corev1.Volume{Name: "trusted-ca", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: TrustedCAConfigMap},
				Items:                []corev1.KeyToPath{{Key: TrustedCAKey, Path: TrustedCAKey}},
			},
		}})
	}
	return volumes
}

// tokenVolume holds the runner's token and, where the cluster publishes it, the certificate by which
// a client knows the API server. Kubelets renew both in a running pod.
func (p *Plan) tokenVolume() corev1.Volume {
	yes := true
	return corev1.Volume{Name: "runner-token", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: TokenSecretName(p.Session.Name)},
				Items:                []corev1.KeyToPath{{Key: TokenKey, Path: tokenFile}},
			}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: rootCAConfigMap},
				Items:                []corev1.KeyToPath{{Key: rootCAKey, Path: rootCAKey}},
				Optional:             &yes,
			}},
		}},
	}}
}

func (p *Plan) mounts() []corev1.VolumeMount {
	// The folder is mounted, not the file: a file mounted by itself is never renewed.
	mounts := append(p.workspaceMounts(), corev1.VolumeMount{Name: "runner-token", MountPath: tokenPath, ReadOnly: true})
	if p.UsesVertex() {
		mounts = append(mounts, corev1.VolumeMount{Name: "vertex", MountPath: vertexPath, ReadOnly: true})
	}
	return slices.Concat(mounts, p.trustedCAMounts())
}

func (p *Plan) trustedCAMounts() []corev1.VolumeMount {
	if !p.TrustedCA {
		return nil
	}
	return []corev1.VolumeMount{{Name: "trusted-ca", MountPath: trustedCAPath, SubPath: TrustedCAKey, ReadOnly: true}}
}
