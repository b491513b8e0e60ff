package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/build"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
)

// program is devcluster as people use it, with a folder for clusters of the test's own.
type program struct {
	t     *testing.T
	file  string
	state string
}

func newProgram(t *testing.T) *program {
	t.Helper()
	builder, err := build.New(t.Context())
	if err != nil {
		t.Skipf("no cluster can be built here: %v", err)
	}
	if missing, err := builder.Missing(cluster.ControlPlane()); err != nil || len(missing) > 0 {
		t.Skipf("the programs of the cluster are not built (%v): run `go run . build --node simulated`", err)
	}
	p := &program{t: t, file: filepath.Join(t.TempDir(), "devcluster"), state: t.TempDir()}
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", p.file, ".").CombinedOutput(); err != nil {
		t.Fatalf("building devcluster: %v\n%s", err, said)
	}
	t.Cleanup(func() { // for a test that failed half-way
		if infos, err := filepath.Glob(filepath.Join(p.state, "*", "cluster.json")); err == nil {
			for _, info := range infos {
				if said, err := p.command("down", "--name", filepath.Base(filepath.Dir(info))).CombinedOutput(); err != nil {
					t.Logf("cleaning up: %v\n%s", err, said)
				}
			}
		}
	})
	return p
}

func (p *program) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.file, args...)
	cmd.Env = append(os.Environ(), cluster.StateVariable+"="+p.state)
	return cmd
}

// run returns what the program printed as its result.
func (p *program) run(args ...string) string {
	p.t.Helper()
	var out, messages bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("devcluster %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), messages.String())
	}
	return out.String()
}

func (p *program) up(args ...string) cluster.Info {
	p.t.Helper()
	text := p.run(append([]string{"up", "--node=simulated", "-o", "json"}, args...)...)
	var info cluster.Info
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		p.t.Fatalf("reading what `up` printed: %v\n%s", err, text)
	}
	return info
}

// processes lists those that have the test's folder among their arguments.
func (p *program) processes() []string {
	p.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		p.t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // ended since
		}
		if line := string(bytes.ReplaceAll(content, []byte{0}, []byte{' '})); strings.Contains(line, p.state) {
			found = append(found, line)
		}
	}
	return found
}

func (p *program) wantNothingLeft(name string) {
	p.t.Helper()
	p.eventually("no process is left", func() error {
		if found := p.processes(); len(found) > 0 {
			return fmt.Errorf("left: %s", strings.Join(found, "\n"))
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(p.state, name)); !os.IsNotExist(err) {
		p.t.Errorf("the folder of the cluster is left (%v)", err)
	}
}

func (p *program) eventually(what string, check func() error) {
	p.t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	p.t.Fatalf("waited in vain until %s: %v", what, err)
}

func TestClusterRunsAJobAndLeavesNothing(t *testing.T) {
	p := newProgram(t)
	info := p.up("--name=job", "--audit")
	config, err := clientcmd.BuildConfigFromFlags("", info.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	create(t, client)
	p.eventually("the Job is complete", func() error {
		job, err := client.BatchV1().Jobs("default").Get(t.Context(), "work", metav1.GetOptions{})
		if err == nil && job.Status.Succeeded != 1 {
			err = fmt.Errorf("status is %+v", job.Status)
		}
		return err
	})
	background := metav1.DeletePropagationBackground
	if err := client.BatchV1().Jobs("default").Delete(t.Context(), "work", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	p.eventually("the pod is collected", func() error {
		pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods.Items))
		}
		return err
	})
	if again := p.up("--name=job"); again.SupervisorPID != info.SupervisorPID {
		t.Errorf("a second `up` started another supervisor: %d and %d", info.SupervisorPID, again.SupervisorPID)
	}
	if audit, err := os.ReadFile(info.AuditLog); err != nil || !bytes.Contains(audit, []byte(`"username":"devcluster-admin"`)) {
		t.Errorf("the audit log does not tell of the administrator (%v)", err)
	}
	p.run("down", "--name=job")
	p.wantNothingLeft("job")
}

// create makes a claim and a Job whose pod mounts it and works for a moment.
func create(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "workspace"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if _, err := client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	volume := corev1.Volume{Name: "workspace"}
	volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "workspace"}
	container := corev1.Container{Name: "main", Image: "img", Env: []corev1.EnvVar{{Name: "INITIAL_PROMPT", Value: "sleep 500ms\nexit 0"}}}
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{container}, Volumes: []corev1.Volume{volume}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "work"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestClusterEndsWithItsProcessAndLeavesNothingWhenKilled(t *testing.T) {
	p := newProgram(t)
	guard := exec.Command("sleep", "300")
	if err := guard.Start(); err != nil {
		t.Fatal(err)
	}
	p.up("--name=guarded", fmt.Sprintf("--die-with=%d", guard.Process.Pid))
	if err := guard.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := guard.Wait(); err == nil {
		t.Fatal("the process was not killed")
	}
	p.eventually("the cluster's folder is gone", func() error {
		if _, err := os.Stat(filepath.Join(p.state, "guarded")); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(errors.New("it is still there"), err)
		}
		return nil
	})
	p.wantNothingLeft("guarded")

	killed := p.up("--name=killed")
	if err := syscall.Kill(killed.SupervisorPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.eventually("no process is left", func() error {
		if found := p.processes(); len(found) > 0 {
			return fmt.Errorf("left: %s", strings.Join(found, "\n"))
		}
		return nil
	})
	p.run("down", "--name=killed")
	p.wantNothingLeft("killed")
}
