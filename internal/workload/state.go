package workload

import (
	"maps"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// The containers that fill a workspace and copy it to S3. Source of the names, programs and
// variables: the platform's state-sync image.
const (
	hydrateContainer = "init-hydrate"
	hydrateProgram   = "/usr/local/bin/hydrate.sh"
	syncProgram      = "/usr/local/bin/sync.sh"

	maxSyncSize = "1073741824" // bytes
)

// Seconds between two copies to S3.
const (
	usualInterval = 60
	leastInterval = 5
)

// preparation is what runs before the runner: what fills the workspace, to its end, and then what
// copies it to S3. That starts only when the workspace is full, for it makes S3 be like the
// workspace. It is a sidecar in Kubernetes' own sense: it ends after the runner, with what is left
// of the grace period to copy the last changes, and does not keep the Job from completing.
func (p *Plan) preparation() []corev1.Container {
	var containers []corev1.Container
	if p.hydrates() || p.Runtime.Seed.CloneRepos {
		containers = append(containers, p.stateContainer(hydrateContainer, hydrateProgram, p.hydrateEnvironment()))
	}
	if p.KeptInS3() {
		sync := p.stateContainer(session.SyncContainer, syncProgram, p.syncEnvironment())
		always := corev1.ContainerRestartPolicyAlways
		sync.RestartPolicy = &always
		containers = append(containers, sync)
	}
	return containers
}

// hydrates says that the workspace is brought back from S3; there is nothing to bring back for
// other kinds of persistence.
func (p *Plan) hydrates() bool {
	return p.KeptInS3() && p.Runtime.Seed.HydrateState
}

func (p *Plan) stateContainer(name, program string, env []corev1.EnvVar) corev1.Container {
	security := containerSecurity()
	security.RunAsUser = p.Operator.StateSyncUser
	return corev1.Container{
		Name:            name,
		Image:           p.Runtime.StateSyncImage,
		ImagePullPolicy: p.Operator.ImagePullPolicy,
		Command:         []string{program},
		Env:             env,
		// What such a program says last is why it failed, and belongs into the session's status.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("100m"),
				corev1.ResourceMemory: resource.MustParse("128Mi"),
			},
			Limits: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("1"),
				corev1.ResourceMemory: resource.MustParse("1Gi"),
			},
		},
		VolumeMounts:    slices.Concat(p.workspaceMounts(), p.trustedCAMounts()),
		SecurityContext: security,
	}
}

// hydrateEnvironment tells what to fill the workspace with. The token lets private repositories be
// cloned; as the container runs once, at the start, it need not be renewed.
func (p *Plan) hydrateEnvironment() []corev1.EnvVar {
	s := p.Session
	env := p.stateIdentity()
	if p.hydrates() {
		env = slices.Concat(env, p.storage())
	}
	env = append(env,
		p.backend(),
		literal("PROJECT_NAME", s.Namespace),
		fromSecret("BOT_TOKEN", TokenSecretName(s.Name), TokenKey),
	)
	if p.Runtime.Seed.CloneRepos {
		env = append(env, literal("REPOS_JSON", encode(s.Spec.Repos, "[]")))
		env = slices.Concat(env, p.workflow())
	}
	return p.withTheirs(env)
}

func (p *Plan) syncEnvironment() []corev1.EnvVar {
	env := slices.Concat(p.stateIdentity(), p.storage())
	env = append(env, literal("SYNC_INTERVAL", strconv.FormatInt(p.syncInterval(), 10)), literal("MAX_SYNC_SIZE", maxSyncSize))
	return p.withTheirs(env)
}

// syncInterval is how many seconds lie between two copies. The platform's program is a shell script
// that sleeps between them, and a shell looks at SIGTERM only when what it waits for has ended: half
// of the grace period is left for the last copy.
func (p *Plan) syncInterval() int64 {
	return min(usualInterval, max(leastInterval, p.Runtime.GracePeriod/2))
}

func (p *Plan) stateIdentity() []corev1.EnvVar {
	return []corev1.EnvVar{
		literal("SESSION_NAME", p.Session.Name),
		literal("NAMESPACE", p.Session.Namespace),
		literal(runtimes.StateDirVariable, p.stateDir()),
	}
}

func (p *Plan) storage() []corev1.EnvVar {
	return []corev1.EnvVar{
		p.Storage.Endpoint.env("S3_ENDPOINT"),
		p.Storage.Bucket.env("S3_BUCKET"),
		p.Storage.AccessKey.env("AWS_ACCESS_KEY_ID"),
		p.Storage.SecretKey.env("AWS_SECRET_ACCESS_KEY"),
	}
}

// withTheirs adds the proxies and the variables of the type and the session that are not set yet:
// none of those above may be overridden here.
func (p *Plan) withTheirs(env []corev1.EnvVar) []corev1.EnvVar {
	for _, proxy := range p.Operator.Proxy {
		env = unlessSet(env, proxy)
	}
	own := p.own()
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = unlessSet(env, literal(name, own[name]))
	}
	return p.withTypes(env)
}

// workspaceMounts are the workspace, and the state folder where the framework looks for it.
func (p *Plan) workspaceMounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: "workspace", MountPath: workspacePath},
		{Name: "workspace", MountPath: path.Join(statePath, p.stateDir()), SubPath: p.stateDir()},
	}
}

// workspace is the volume with the session's files. Where it does not outlive the pod it may take
// no more of the node than the type says.
func (p *Plan) workspace() corev1.Volume {
	volume := corev1.Volume{Name: "workspace"}
	if p.Volumeless() != "" {
		size := p.Runtime.WorkspaceSize.DeepCopy()
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{SizeLimit: &size}
		return volume
	}
	volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.claimName()}
	return volume
}
