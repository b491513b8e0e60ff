// Package monitoring brings up what watches the operator on a cluster: the CRDs of
// monitoring.coreos.com, the real prometheus-operator, Prometheus objects set up like those of
// OpenShift, and the real Prometheus.
//
// All programs run beside the cluster, built from pinned modules as the cluster's own are. A
// Prometheus gets exactly the configuration that prometheus-operator wrote for it out of
// ServiceMonitors and PrometheusRules; only the paths in it are changed to where its files lie
// here, and, where a test asks, how often it scrapes. It finds its targets and reaches them as
// the ServiceAccount that it has on OpenShift.
package monitoring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/ambient-code/agentic-operator/test/rig"
)

const operatorModule = "github.com/prometheus-operator/prometheus-operator"

// kinds are those without which there is no Prometheus. prometheus-operator does without the others,
// of Alertmanager and Thanos, which are large.
var kinds = []string{"podmonitors", "probes", "prometheuses", "prometheusrules", "servicemonitors"}

// Stack is the monitoring of a cluster.
type Stack struct {
	cluster *rig.Cluster
	dir     string // holds its files and logs
	bin     string // holds the programs
	crds    string // holds the manifests of the CRDs

	operator *rig.Program
	running  []*Prometheus
}

// Prepare builds the programs (some minutes the first time) and changes nothing on the cluster.
// Files and logs will lie in dir.
func Prepare(ctx context.Context, cluster *rig.Cluster, dir string) (*Stack, error) {
	bin, err := cluster.MonitoringPrograms(ctx)
	if err != nil {
		return nil, err
	}
	root, err := rig.Root()
	if err != nil {
		return nil, err
	}
	pinned := filepath.Join(root, "hack", "devcluster", "components", "prometheus-operator")
	if _, err := goCommand(ctx, pinned, "mod", "download", operatorModule); err != nil {
		return nil, err
	}
	source, err := goCommand(ctx, pinned, "list", "-m", "-f", "{{.Dir}}", operatorModule)
	if err != nil {
		return nil, err
	}
	crds := filepath.Join(source, "example", "prometheus-operator-crd")
	return &Stack{cluster: cluster, dir: dir, bin: bin, crds: crds}, nil
}

func goCommand(ctx context.Context, module string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off")
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of monitoring: go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// Install adds the CRDs to the cluster and starts prometheus-operator.
func (s *Stack) Install(ctx context.Context) error {
	var files []string
	for _, kind := range kinds {
		files = append(files, "-f", filepath.Join(s.crds, "monitoring.coreos.com_"+kind+".yaml"))
	}
	if _, err := s.cluster.RunKubectl(ctx, append([]string{"apply", "--server-side"}, files...)...); err != nil {
		return fmt.Errorf("installing the CRDs of monitoring: %w", err)
	}
	wait := append([]string{"wait", "--for=condition=Established", "--timeout=120s"}, files...)
	if _, err := s.cluster.RunKubectl(ctx, wait...); err != nil {
		return fmt.Errorf("waiting for the CRDs of monitoring: %w", err)
	}
	args, err := s.access()
	if err != nil {
		return err
	}
	address, err := rig.FreeAddresses(1)
	if err != nil {
		return err
	}
	args = append(args, "--web.listen-address="+address[0], "--log-level=debug")
	command := exec.Command(filepath.Join(s.bin, "prometheus-operator"), args...)
	s.operator, err = rig.Start("prometheus-operator", filepath.Join(s.dir, "prometheus-operator.log"), command)
	return err
}

// access writes the administrator's certificates to files, for prometheus-operator takes no
// kubeconfig, and returns the flags that name them.
func (s *Stack) access() ([]string, error) {
	config := rest.CopyConfig(s.cluster.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig's certificates: %w", err)
	}
	flags := []string{"--apiserver=" + config.Host}
	for flag, content := range map[string][]byte{"ca-file": config.CAData, "cert-file": config.CertData, "key-file": config.KeyData} {
		file := filepath.Join(s.dir, "apiserver-"+flag)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, fmt.Errorf("writing down the access of prometheus-operator: %w", err)
		}
		flags = append(flags, "--"+flag+"="+file)
	}
	return flags, nil
}

// OperatorLog is where prometheus-operator says what it rejects.
func (s *Stack) OperatorLog() string { return s.operator.Log }

// Stop ends what runs beside the cluster. The CRDs and all objects stay.
func (s *Stack) Stop() error {
	var errs []error
	for _, p := range s.running {
		errs = append(errs, p.Stop())
	}
	if s.operator != nil {
		errs = append(errs, s.operator.Stop())
	}
	return errors.Join(errs...)
}
