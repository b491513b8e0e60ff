package realnode

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

const podImage = "localhost/devcluster/pod:test"

// TestNode brings a real node up, runs containers on it, and looks for what is left of it.
func TestNode(t *testing.T) {
	binDir := programs(t)
	c := up(t, binDir)
	loadPodImage(t, c)
	kubectl(t, c, "apply", "--filename=testdata/pods.yaml")
	kubectl(t, c, "wait", "pod/server", "--for=condition=Ready", "--timeout=60s")

	t.Run("a Job of any user writes to a volume", func(t *testing.T) {
		kubectl(t, c, "wait", "job/writer", "--for=condition=Complete", "--timeout=60s")
		if got, want := kubectl(t, c, "logs", "job/writer"), "uid 1000730000 gid 0\nread back: written by a pod\n"; got != want {
			t.Errorf("the Job said %q, want %q", got, want)
		}
	})
	t.Run("a pod finds a Service by its name and reaches it", func(t *testing.T) {
		kubectl(t, c, "wait", "job/client", "--for=condition=Complete", "--timeout=60s")
		if got := kubectl(t, c, "logs", "job/client"); !strings.Contains(got, "served to 10.100.") {
			t.Errorf("the Service answered %q", got)
		}
	})
	t.Run("exec runs in a container, and there is nothing beyond the cluster", func(t *testing.T) {
		address := strings.TrimSpace(kubectl(t, c, "get", "service", "named", "--output=jsonpath={.spec.clusterIP}"))
		got := kubectl(t, c, "exec", "server", "--", "/pod", "lookup", "named.default.svc.cluster.local")
		if want := "named.default.svc.cluster.local is [" + address + "]\n"; got != want {
			t.Errorf("lookup said %q, want %q", got, want)
		}
		if got, err := tryKubectl(t, c, "exec", "server", "--", "/pod", "lookup", "example.com"); err == nil || !strings.Contains(err.Error(), "no such host") {
			t.Errorf("a name outside was looked up with %q, %v", got, err)
		}
	})
	t.Run("the host reaches a Service", func(t *testing.T) {
		address := kubectl(t, c, "get", "service", "named", "--output=jsonpath={.spec.clusterIP}")
		response, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if response.StatusCode != http.StatusOK {
			t.Errorf("the Service answered %s", response.Status)
		}
	})
	t.Run("a container over its memory limit is OOMKilled", func(t *testing.T) {
		kubectl(t, c, "wait", "job/filler", "--for=condition=Failed", "--timeout=60s")
		const state = `--output=jsonpath={.items[0].status.containerStatuses[0].state.terminated['reason','exitCode']}`
		if got := kubectl(t, c, "get", "pods", "--selector=job-name=filler", state); got != "OOMKilled 137" {
			t.Errorf("the container ended with %q", got)
		}
	})
	t.Run("a volume's folder goes with its claim", func(t *testing.T) { volumeGoes(t, c) })
	t.Run("nothing is left", func(t *testing.T) {
		kubectl(t, c, "get", "pod", "server") // still there: containers are running when the node goes
		down(t, c)
	})
}

func volumeGoes(t *testing.T, c *cluster.Cluster) {
	folders := func() []string {
		found, err := filepath.Glob(filepath.Join(c.Layout.Node(), "volumes", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := folders(); len(got) != 1 {
		t.Fatalf("there are the folders %v, want one", got)
	}
	kubectl(t, c, "delete", "job/writer", "pvc/work", "--timeout=60s")
	for deadline := time.Now().Add(30 * time.Second); len(folders()) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the folders %v are left", folders())
		}
	}
}

func loadPodImage(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	program, archive := filepath.Join(t.TempDir(), "pod"), filepath.Join(t.TempDir(), "pod.tar")
	compile := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/pod")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("building what the pods run: %v: %s", err, output)
	}
	image, err := programImage(program, "/pod")
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(podImage)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(archive, tag, image); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if err := (Node{}).LoadImage(t.Context(), c, archive, &said); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), podImage) {
		t.Errorf("loading the image said %q", said.String())
	}
}

func kubectl(t *testing.T, c *cluster.Cluster, args ...string) string {
	t.Helper()
	output, err := tryKubectl(t, c, args...)
	if err != nil {
		t.Fatalf("%v\nThe pods are:\n%s", err, pods(t, c))
	}
	return output
}

// tryKubectl runs kubectl on the host, outside the cluster's network, where people run it.
func tryKubectl(t *testing.T, c *cluster.Cluster, args ...string) (string, error) {
	return proc.Run(t.Context(), proc.Spec{Path: c.Bin("kubectl"), Args: append([]string{"--kubeconfig=" + c.Layout.Kubeconfig()}, args...)})
}

func pods(t *testing.T, c *cluster.Cluster) string {
	output, err := tryKubectl(t, c, "describe", "pods")
	if err != nil {
		return err.Error()
	}
	return output
}
