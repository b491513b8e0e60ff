package integration

import (
	"bufio"
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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const repository = "../.."

// cluster is the Kubernetes that the tests run against.
type cluster struct {
	kubeconfig string
	kubectl    string
	// auditLog is empty when the cluster writes none.
	auditLog string
	end      func() error
}

// skipped says why there is no cluster although nothing is wrong.
type skipped struct{ why string }

func (s *skipped) Error() string { return "integration tests skipped: " + s.why }

// startCluster starts a local cluster that ends with this process, or uses the one that the
// environment names.
func startCluster(ctx context.Context) (*cluster, error) {
	if kubeconfig := os.Getenv("INTEGRATION_KUBECONFIG"); kubeconfig != "" {
		kubectl, err := exec.LookPath("kubectl")
		if err != nil {
			kubectl = ""
		}
		return &cluster{kubeconfig: kubeconfig, kubectl: kubectl, auditLog: os.Getenv("INTEGRATION_AUDIT_LOG"), end: func() error { return nil }}, nil
	}
	required := os.Getenv("INTEGRATION") == "required"
	program, err := devcluster(ctx, required)
	if err != nil {
		return nil, err
	}
	name := "integration-" + strconv.Itoa(os.Getpid())
	info, err := up(ctx, program, name, required)
	if err != nil {
		return nil, err
	}
	return &cluster{
		kubeconfig: info.Kubeconfig,
		kubectl:    filepath.Join(info.BinDir, "kubectl"),
		auditLog:   info.AuditLog,
		end: func() error {
			if out, err := exec.Command(program, "down", "--name", name).CombinedOutput(); err != nil {
				return fmt.Errorf("ending the local cluster: %w: %s", err, out)
			}
			return nil
		},
	}, nil
}

// devcluster is the program that runs local clusters. It is built here only where the tests are
// required; "make devcluster" builds it together with the programs of the cluster.
func devcluster(ctx context.Context, required bool) (string, error) {
	program, err := filepath.Abs(filepath.Join(repository, "bin", "devcluster"))
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	if !required {
		if _, err := os.Stat(program); err != nil {
			return "", &skipped{"the local Kubernetes is not built; run make devcluster (minutes, once), or set INTEGRATION_KUBECONFIG"}
		}
		return program, nil
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(repository, "hack", "devcluster"), "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building hack/devcluster: %w: %s", err, out)
	}
	return program, nil
}

// clusterInfo is what `devcluster up -o json` prints, as far as it is needed here.
type clusterInfo struct {
	Kubeconfig string `json:"kubeconfig"`
	BinDir     string `json:"binDir"`
	AuditLog   string `json:"auditLog"`
}

// up starts the cluster. Where its programs would have to be built first, that takes minutes and
// is done only if the tests are required.
func up(ctx context.Context, program, name string, required bool) (*clusterInfo, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "up", "--name", name, "--node", "simulated",
		"--die-with", strconv.Itoa(os.Getpid()), "--audit", "-o", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var answer bytes.Buffer
	cmd.Stdout = &answer
	messages, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the local cluster: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the local cluster: %w", err)
	}
	said, unbuilt := listen(messages, required, cancel)
	err = cmd.Wait()
	switch {
	case unbuilt:
		return nil, &skipped{"the programs of the local Kubernetes are not built; run make devcluster (minutes, once)"}
	case err != nil:
		return nil, fmt.Errorf("starting the local cluster: %w: %s", err, said)
	}
	info := &clusterInfo{}
	if err := json.Unmarshal(answer.Bytes(), info); err != nil {
		return nil, fmt.Errorf("reading what is known of the local cluster: %w", err)
	}
	return info, nil
}

// listen passes on what is told while the cluster starts, until it ends. It gives up when a build
// begins that is not wanted.
func listen(messages io.Reader, required bool, giveUp func()) (said string, unbuilt bool) {
	var all strings.Builder
	lines := bufio.NewScanner(messages)
	for lines.Scan() {
		line := lines.Text()
		all.WriteString(line + "\n")
		if strings.HasPrefix(line, "Building ") {
			if !required {
				unbuilt = true
				giveUp()
			}
		}
		if required {
			fmt.Fprintln(os.Stderr, line)
		}
	}
	return all.String(), unbuilt
}

func (c *cluster) adminConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", c.kubeconfig, err)
	}
	config.QPS = -1
	config.UserAgent = "integration-tests"
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// runKubectl runs kubectl as the administrator and returns what it printed.
func (c *cluster) runKubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	if c.kubectl == "" {
		return "", errors.New("kubectl is not on the PATH")
	}
	cache, err := os.MkdirTemp("", "integration-kubectl-")
	if err != nil {
		return "", fmt.Errorf("making a folder for what kubectl caches: %w", err)
	}
	cmd := exec.CommandContext(ctx, c.kubectl, append([]string{"--kubeconfig", c.kubeconfig, "--cache-dir", cache}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, os.RemoveAll(cache))
}
