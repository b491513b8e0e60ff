package workload_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/internal/runtimes"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

var (
	operators   = workload.Operator{Namespace: "ambient-code", S3Endpoint: "http://minio.ambient-code.svc:9000", S3Bucket: "ambient-sessions"}
	sharedKeys  = map[string]string{"access-key": "shared-id", "secret-key": "shared-secret"}
	projectKeys = map[string]string{"S3_ACCESS_KEY": "project-id", "S3_SECRET_KEY": "project-secret"}
)

func bytesOf(maps ...map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for _, m := range maps {
		for key, value := range m {
			all[key] = []byte(value)
		}
	}
	return all
}

func TestWhereAWorkspaceIsKept(t *testing.T) {
	const theirs, copied = "ambient-non-vertex-integrations", "ambient-storage-hello"
	custom := map[string]string{"STORAGE_MODE": "custom"}
	place := map[string]string{"S3_ENDPOINT": "https://s3.example.com", "S3_BUCKET": "team"}
	same := map[string]string{"S3_ENDPOINT": operators.S3Endpoint, "S3_BUCKET": operators.S3Bucket}
	for _, c := range []struct {
		name                      string
		project                   map[string][]byte
		endpoint, bucket, secrets string
	}{
		{"no Secret", nil, operators.S3Endpoint, operators.S3Bucket, copied},
		{"shared", bytesOf(map[string]string{"STORAGE_MODE": "shared"}, place, projectKeys), operators.S3Endpoint, operators.S3Bucket, copied},
		{"custom, all", bytesOf(custom, place, projectKeys), theirs, theirs, theirs},
		{"custom, keys alone", bytesOf(custom, projectKeys), operators.S3Endpoint, operators.S3Bucket, theirs},
		{"custom, nothing", bytesOf(custom), operators.S3Endpoint, operators.S3Bucket, copied},
		{"custom, the same place", bytesOf(custom, same), theirs, theirs, copied},
	} {
		got, missing := workload.StorageOf("hello", "project", c.project, bytesOf(sharedKeys), &operators)
		if len(missing) > 0 {
			t.Errorf("%s: %v is missing", c.name, missing)
		}
		for what, pair := range map[string][2]string{
			"endpoint": {from(got.Endpoint), c.endpoint}, "bucket": {from(got.Bucket), c.bucket},
			"access key": {got.AccessKey.Secret, c.secrets}, "secret key": {got.SecretKey.Secret, c.secrets},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: the %s is from %q, want %q", c.name, what, pair[0], pair[1])
			}
		}
		if got.Shared != (c.secrets == copied) {
			t.Errorf("%s: Shared is %t", c.name, got.Shared)
		}
	}
}

func from(s workload.Setting) string {
	if s.Secret != "" {
		return s.Secret
	}
	return s.Value
}

func TestWhatIsMissingOfAStorage(t *testing.T) {
	nowhere := workload.Operator{Namespace: "ambient-code"}
	for _, c := range []struct {
		name            string
		project, shared map[string][]byte
		operator        *workload.Operator
		says            string
	}{
		{"no credentials", nil, nil, &operators, "Secret minio-credentials of the operator's namespace ambient-code"},
		{"half of the credentials", nil, bytesOf(map[string]string{"access-key": "a"}), &operators, "minio-credentials"},
		{"no server", nil, bytesOf(sharedKeys), &nowhere, "set S3_ENDPOINT and S3_BUCKET of the operator"},
		{"another mode", bytesOf(map[string]string{"STORAGE_MODE": "disk"}), bytesOf(sharedKeys), &operators, `STORAGE_MODE in Secret ambient-non-vertex-integrations of namespace project is "disk"`},
		// The shared credentials must not be sent to a server or used on a bucket of the project's choice.
		{"their server, our keys", bytesOf(map[string]string{"STORAGE_MODE": "custom", "S3_ENDPOINT": "https://thief.example.com"}), bytesOf(sharedKeys), &operators, "without credentials"},
		{"another bucket, our keys", bytesOf(map[string]string{"STORAGE_MODE": "custom", "S3_BUCKET": "others"}), bytesOf(sharedKeys), &operators, "without credentials"},
		{"their server where we have none", bytesOf(map[string]string{"STORAGE_MODE": "custom", "S3_ENDPOINT": "https://thief.example.com", "S3_BUCKET": "b"}), bytesOf(sharedKeys), &nowhere, "without credentials"},
	} {
		got, missing := workload.StorageOf("hello", "project", c.project, c.shared, c.operator)
		if !strings.Contains(strings.Join(missing, "; "), c.says) {
			t.Errorf("%s: %v, want %s", c.name, missing, c.says)
		}
		if strings.Contains(c.name, "our keys") && got.Shared {
			t.Errorf("%s: the shared credentials are used", c.name)
		}
	}
}

func TestNoCredentialsStandOnAPod(t *testing.T) {
	for _, p := range []*workload.Plan{kept(), elsewhere()} {
		seen := 0
		for _, container := range p.Job(1).Spec.Template.Spec.InitContainers {
			for _, v := range container.Env {
				if v.Name != "AWS_ACCESS_KEY_ID" && v.Name != "AWS_SECRET_ACCESS_KEY" && v.Name != "BOT_TOKEN" {
					continue
				}
				if container.Name == "state-sync" && v.Name == "BOT_TOKEN" {
					continue // a session's own variable of that name
				}
				seen++
				if v.Value != "" || v.ValueFrom == nil || v.ValueFrom.SecretKeyRef == nil {
					t.Errorf("%s: %s is %+v, want a reference to a Secret", container.Name, v.Name, v)
				}
			}
		}
		if seen != 5 {
			t.Errorf("%d credentials are looked at, want 5: two each and the token", seen)
		}
	}
}

func TestTheCopyHasWhatIsUsedAlone(t *testing.T) {
	secret := kept().StorageSecret(&corev1.Secret{Data: bytesOf(sharedKeys, map[string]string{"root-password": "x"})})
	if len(secret.Data) != 2 || string(secret.Data["access-key"]) != "shared-id" {
		t.Errorf("it has %d keys", len(secret.Data))
	}
}

// preparation tells the containers before the runner, a native sidecar with a "+".
func preparation(p *workload.Plan) []string {
	var names []string
	for _, c := range p.Job(1).Spec.Template.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			c.Name += "+"
		}
		names = append(names, c.Name)
	}
	return names
}

func TestWhatRunsBeforeTheRunner(t *testing.T) {
	for _, c := range []struct {
		persistence string
		clone       bool
		hydrate     bool
		want        []string
	}{
		{"none", false, true, nil},
		{"none", true, false, []string{"init-hydrate"}},
		{"pvc", false, true, nil},
		{"pvc", true, true, []string{"init-hydrate"}},
		{"s3", false, false, []string{"state-sync+"}},
		{"s3", true, false, []string{"init-hydrate", "state-sync+"}},
		{"s3", false, true, []string{"init-hydrate", "state-sync+"}},
	} {
		p := kept()
		p.Runtime.Persistence, p.Runtime.Seed.CloneRepos, p.Runtime.Seed.HydrateState = runtimes.Persistence(c.persistence), c.clone, c.hydrate
		if got := preparation(p); !slices.Equal(got, c.want) {
			t.Errorf("%s, clone %t, hydrate %t: %v, want %v", c.persistence, c.clone, c.hydrate, got, c.want)
		}
		for _, container := range p.Job(1).Spec.Template.Spec.InitContainers {
			told := map[string]bool{}
			for _, v := range container.Env {
				if told[v.Name] {
					t.Errorf("%s: %s stands twice", container.Name, v.Name)
				}
				told[v.Name] = true
			}
			if hydrate := container.Name == "init-hydrate"; hydrate && (told["REPOS_JSON"] != c.clone || told["AWS_ACCESS_KEY_ID"] != (c.hydrate && c.persistence == "s3")) {
				t.Errorf("%+v: init-hydrate is told %v", c, told)
			}
		}
	}
}

func TestAWorkspaceThatIsNotAVolume(t *testing.T) {
	for _, p := range []*workload.Plan{passing(), kept()} {
		volume := p.Job(1).Spec.Template.Spec.Volumes[0]
		if volume.Name != "workspace" || volume.EmptyDir == nil || volume.EmptyDir.SizeLimit.String() != "10Gi" || p.Volumeless() == "" {
			t.Errorf("%s: %+v, %q", p.Runtime.Persistence, volume, p.Volumeless())
		}
	}
}

// An image that would run as root is refused where Pod Security is restricted, unless it is told
// another user; the runner's own is never touched.
func TestTheUserOfTheStateContainers(t *testing.T) {
	p, user := kept(), int64(1001)
	p.Operator.StateSyncUser = &user
	pod := p.Job(1).Spec.Template.Spec
	for i := range pod.InitContainers {
		if got := pod.InitContainers[i].SecurityContext.RunAsUser; got == nil || *got != user {
			t.Errorf("%s runs as %v", pod.InitContainers[i].Name, got)
		}
	}
	if got := pod.Containers[0].SecurityContext.RunAsUser; got != nil {
		t.Errorf("the runner runs as %d", *got)
	}
}

// A shell script that sleeps notices SIGTERM only when the sleep is over: the grace period must be
// longer, with room for the last copy.
func TestTheIntervalLeavesTimeForTheLastCopy(t *testing.T) {
	for grace, want := range map[int64]string{600: "60", 60: "30", 20: "10", 5: "5", 0: "5"} {
		p := kept()
		p.Runtime.GracePeriod = grace
		containers := p.Job(1).Spec.Template.Spec.InitContainers
		for _, v := range containers[len(containers)-1].Env {
			if v.Name == "SYNC_INTERVAL" && v.Value != want {
				t.Errorf("grace period %d s: SYNC_INTERVAL is %s, want %s", grace, v.Value, want)
			}
		}
	}
}
