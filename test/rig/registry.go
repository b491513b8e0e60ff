package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// published is the registry that Registry stands in for.
	published    = "quay.io"
	registryPort = "5000"
)

// Registry is a container registry inside the real node's network, which the node asks instead of
// quay.io: what is pushed to it is pulled by the name that it has in the world.
type Registry struct {
	*Program
	cluster *Cluster
	address string
}

// Contents is what an image holds.
type Contents struct {
	// Base is a published image that it is made on; empty for none.
	Base string
	// Programs and Files are paths of this machine by their paths in the image.
	Programs, Files map[string]string
	// Entrypoint are its words; none for the first of the Programs.
	Entrypoint []string
	Labels     map[string]string
}

// OLMPrograms builds the Operator Lifecycle Manager and the registry, unless that was done before,
// and returns the folder that holds them.
func (c *Cluster) OLMPrograms(ctx context.Context) (string, error) {
	bin, err := c.run(ctx, c.devcluster(), "build", "--node", NodeReal, "--olm")
	if err != nil {
		return "", fmt.Errorf("building the Operator Lifecycle Manager: %w", err)
	}
	return strings.TrimSpace(string(bin)), nil
}

// ServeImages runs a registry, the given program, and has the node ask it.
func (c *Cluster) ServeImages(ctx context.Context, program, log string) (*Registry, error) {
	if err := c.build(ctx, "hack/image", "image", "."); err != nil {
		return nil, err
	}
	address := net.JoinHostPort(c.Network.Address, registryPort)
	server, err := Start("the registry", log, exec.Command("nsenter", "--net="+c.Network.NetNS, program, address))
	if err != nil {
		return nil, err
	}
	r := &Registry{Program: server, cluster: c, address: address}
	dir := filepath.Join(c.Dir, "registries", published)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("making the node's folder of registries: %w", err), r.Stop())
	}
	hosts := fmt.Appendf(nil, "server = \"http://%s\"\n\n[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", address, address)
	if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), hosts, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("telling the node of the registry: %w", err), r.Stop())
	}
	if err := r.listening(ctx); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

func (r *Registry) listening(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", r.address)
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	if err != nil {
		return fmt.Errorf("waiting for the registry (its log is %s): %w", r.Log, err)
	}
	return nil
}

// Push makes an image and publishes it under a name that begins with quay.io.
func (r *Registry) Push(ctx context.Context, name string, has Contents) error {
	if !strings.HasPrefix(name, published+"/") {
		return fmt.Errorf("the image %s cannot be published: its name must begin with %s", name, published)
	}
	args := []string{"--user", "65532", "--push", "--insecure", "--tag", r.here(name)}
	if has.Base != "" {
		args = append(args, "--base", r.here(has.Base))
	}
	for _, target := range slices.Sorted(maps.Keys(has.Programs)) {
		args = append(args, "--binary", has.Programs[target]+":"+target)
	}
	for _, target := range slices.Sorted(maps.Keys(has.Files)) {
		args = append(args, "--file", has.Files[target]+":"+target)
	}
	for _, key := range slices.Sorted(maps.Keys(has.Labels)) {
		args = append(args, "--label", key+"="+has.Labels[key])
	}
	if len(has.Entrypoint) > 0 {
		args = append(args, "--entrypoint", strings.Join(has.Entrypoint, " "))
	}
	if _, err := r.cluster.run(ctx, filepath.Join(r.cluster.bin, "image"), args...); err != nil {
		return fmt.Errorf("publishing the image %s: %w", name, err)
	}
	return nil
}

// here is where an image lies in this registry.
func (r *Registry) here(name string) string {
	return r.address + strings.TrimPrefix(name, published)
}

// Tool is the path of a program in the repository's bin/, which make has built.
func (c *Cluster) Tool(name string) string { return filepath.Join(c.bin, name) }

// Build builds a program of one of the repository's modules and returns its path.
func (c *Cluster) Build(ctx context.Context, module, pkg, name string) (string, error) {
	return c.Tool(name), c.build(ctx, module, name, pkg)
}

// Root is the top folder of the repository.
func (c *Cluster) Root() string { return c.root }

// Run runs a program at the top of the repository and returns what it printed.
func (c *Cluster) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	return c.run(ctx, program, args...)
}
