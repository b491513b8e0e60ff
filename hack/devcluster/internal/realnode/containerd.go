package realnode

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

const (
	// Paths inside the node's mount namespace.
	containerdState  = "/run/containerd"
	containerdSocket = containerdState + "/containerd.sock"
)

var (
	//go:embed containerd.toml
	containerdConfig string
	//go:embed cni.json
	cniConfig string
)

// startContainerd starts containerd, waits until it answers, and gives it the pause image.
func (s starting) startContainerd(ctx context.Context) error {
	dir := s.Layout.Node()
	cniConfigs := filepath.Join(dir, "cni")
	if err := makeDir(cniConfigs); err != nil {
		return err
	}
	values := map[string]any{
		"Root":       filepath.Join(dir, "containerd"),
		"State":      containerdState,
		"Socket":     containerdSocket,
		"PauseImage": pauseImage,
		"CNIPlugins": cniFolder(),
		"CNIConfigs": cniConfigs,
		"Pods":       s.network.Pods,
		"Registries": s.Layout.Registries(),
	}
	config := filepath.Join(dir, "containerd.toml")
	if err := render(config, containerdConfig, values); err != nil {
		return err
	}
	if err := render(filepath.Join(cniConfigs, "10-pods.conflist"), cniConfig, values); err != nil {
		return err
	}
	process, err := s.Procs.Start(inNode(dir, proc.Spec{
		Name: "containerd",
		Path: "containerd",
		Args: []string{"--config=" + config, "--log-level=info"},
	}))
	if err != nil {
		return err
	}
	if err := process.WaitReady(ctx, func(ctx context.Context) error {
		_, err := proc.Run(ctx, ctr(dir, "version"))
		return err
	}); err != nil {
		return err
	}
	return loadPauseImage(ctx, dir, s.Bin("pause"))
}

// ctr is a command to the containerd of the node in dir, on the images and containers of Kubernetes.
func ctr(dir string, args ...string) proc.Spec {
	return inNode(dir, proc.Spec{
		Path: "ctr",
		Args: append([]string{"--address=" + containerdSocket, "--namespace=k8s.io", "--timeout=" + time.Minute.String()}, args...),
	})
}

// render fills a template in and writes it to path.
func render(path, text string, values any) error {
	parsed, err := template.New(filepath.Base(path)).Option("missingkey=error").Parse(text)
	if err != nil {
		return fmt.Errorf("reading the template of %s: %w", path, err)
	}
	var content strings.Builder
	if err := parsed.Execute(&content, values); err != nil {
		return fmt.Errorf("filling in %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(content.String()), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
