// Package rig brings up what the demo and the tests run on: the local Kubernetes of
// hack/devcluster, images made without a container engine, and the operator, either as pods of
// its own image on a real node or as a process that acts as its own ServiceAccount.
package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Kinds of node.
const (
	NodeReal      = "real"
	NodeSimulated = "simulated"
	// NodeExisting is of a cluster that was there before and stays: no image can be loaded onto it.
	NodeExisting = "existing"
)

// Options says what to bring up.
type Options struct {
	// Name of the cluster; several run side by side.
	Name string
	// Node is the kind of node; empty leaves the choice to the local Kubernetes: a real one where
	// that is possible.
	Node string
	// Kubeconfig names a cluster that exists already and is used instead.
	Kubeconfig string
	// Audit has the API server log every request.
	Audit bool
	// OnlyIfBuilt has Up return ErrNotBuilt where programs would have to be built first, which takes
	// minutes.
	OnlyIfBuilt bool
	// DieWithUs ends the cluster with this process, however that ends.
	DieWithUs bool
	// Progress is told what goes on; nil for nobody.
	Progress io.Writer
}

// ErrNotBuilt is the answer to OnlyIfBuilt.
var ErrNotBuilt = errors.New("the local Kubernetes is not built; run make devcluster (minutes, once)")

// Cluster is a Kubernetes that can be used.
type Cluster struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	Node       string `json:"node"`
	AuditLog   string `json:"auditLog"`
	BinDir     string `json:"binDir"`
	Dir        string `json:"dir"`
	Ports      struct {
		Etcd int `json:"etcd"`
	} `json:"ports"`
	Network struct {
		NetNS   string `json:"netns"`
		Address string `json:"address"`
	} `json:"network"`

	// Config is the administrator's access, and Client speaks with it.
	Config *rest.Config     `json:"-"`
	Client client.WithWatch `json:"-"`
	// Operator is the program that RunOperator runs; empty has it built from the code as it is.
	Operator string    `json:"-"`
	root     string    // of the repository
	bin      string    // folder for what is built here
	out      io.Writer // progress
}

// Root is the top folder of the repository that the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "PROJECT")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not inside the repository of the operator: change into its folder")
		}
	}
}

// Up brings up a cluster and waits until it can be used.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Name: o.Name, root: root, bin: filepath.Join(root, "bin"), out: o.Progress}
	if c.out == nil {
		c.out = io.Discard
	}
	if o.Kubeconfig != "" {
		c.Kubeconfig, c.Node = o.Kubeconfig, NodeExisting
		return c, c.connect()
	}
	if err := c.start(ctx, o); err != nil {
		return nil, err
	}
	return c, c.connect()
}

// start runs the local Kubernetes and takes in what it says of itself.
func (c *Cluster) start(ctx context.Context, o Options) error {
	if o.OnlyIfBuilt {
		if _, err := os.Stat(c.devcluster()); err != nil {
			return ErrNotBuilt
		}
	}
	if err := c.build(ctx, "hack/devcluster", "devcluster", "."); err != nil {
		return err
	}
	args := []string{"up", "--name", o.Name, "-o", "json"}
	if o.Node != "" {
		args = append(args, "--node", o.Node)
	}
	if o.Audit {
		args = append(args, "--audit")
	}
	if o.OnlyIfBuilt {
		args = append(args, "--if-built")
	}
	if o.DieWithUs {
		args = append(args, "--die-with", strconv.Itoa(os.Getpid()))
	}
	answer, err := c.run(ctx, c.devcluster(), args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == notBuilt {
		return ErrNotBuilt
	}
	if err != nil {
		return fmt.Errorf("starting the local Kubernetes: %w", err)
	}
	if err := json.Unmarshal(answer, c); err != nil {
		return fmt.Errorf("reading what the local Kubernetes says of itself: %w", err)
	}
	return nil
}

// notBuilt is the exit code of `devcluster up --if-built`.
const notBuilt = 3

func (c *Cluster) connect() error {
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c.Config.QPS, c.Config.Burst = 200, 400
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	if c.Client, err = client.NewWithWatch(c.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	return nil
}

// Down ends the cluster; nothing of it is left.
func (c *Cluster) Down(ctx context.Context) error {
	if c.BinDir == "" {
		return nil
	}
	if _, err := c.run(ctx, c.devcluster(), "down", "--name", c.Name); err != nil {
		return fmt.Errorf("ending the local Kubernetes: %w", err)
	}
	return nil
}

// Kubectl is the path of a kubectl that fits the cluster.
func (c *Cluster) Kubectl() string {
	if c.BinDir == "" {
		return "kubectl"
	}
	return filepath.Join(c.BinDir, "kubectl")
}

// RunKubectl runs kubectl as the administrator and returns what it printed.
func (c *Cluster) RunKubectl(ctx context.Context, args ...string) ([]byte, error) {
	return c.run(ctx, c.Kubectl(), append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
}

func (c *Cluster) devcluster() string { return filepath.Join(c.bin, "devcluster") }

// build compiles a program of one of the repository's modules without cgo.
func (c *Cluster) build(ctx context.Context, module, name, pkg string, flags ...string) error {
	args := []string{"build", "-C", filepath.Join(c.root, module), "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(c.bin, name)}
	cmd := exec.CommandContext(ctx, "go", append(append(args, flags...), pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", name, err, output)
	}
	return nil
}

// run runs a program and returns its standard output; its standard error is progress, and part of
// the error if it fails.
func (c *Cluster) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = c.root
	cmd.Stdout, cmd.Stderr = &stdout, io.MultiWriter(&stderr, c.out)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
