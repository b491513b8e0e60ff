// Package olm puts the real Operator Lifecycle Manager onto the real node of the local Kubernetes and
// publishes to it what a release publishes: images of the operator, of its bundles and of its catalog.
// All of them lie in a registry beside the node under the names that they have in the world, so that
// bundles and catalogs are installed as they are, nothing in them changed.
package olm

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig"
)

const (
	module = "github.com/operator-framework/operator-lifecycle-manager"
	// The names under which the Operator Lifecycle Manager looks for its own images.
	lifecycleImage = "quay.io/operator-framework/olm:latest"
	opmImage       = "quay.io/operator-framework/opm:latest"
	// busybox is a program that stands for many; statically linked, it runs on an empty image.
	busybox = "/bin/busybox"
)

//go:embed olm.yaml
var manifests []byte

// Lifecycle is an Operator Lifecycle Manager that runs, and the registry it installs from.
type Lifecycle struct {
	cluster   *rig.Cluster
	registry  *rig.Registry
	bin       string // its programs
	dir       string // for what is made on the way
	packaging string // the program hack/packaging
}

// Install puts the Operator Lifecycle Manager onto the cluster, with a folder for what is made on the way.
// It does not wait until it works: see Available.
func Install(ctx context.Context, cluster *rig.Cluster, dir string) (*Lifecycle, error) {
	if _, err := os.Stat(busybox); err != nil {
		return nil, fmt.Errorf("images of the Operator Lifecycle Manager need busybox; install Debian's package busybox-static: %w", err)
	}
	bin, err := cluster.OLMPrograms(ctx)
	if err != nil {
		return nil, err
	}
	l := &Lifecycle{cluster: cluster, bin: bin, dir: dir}
	if l.packaging, err = cluster.Build(ctx, "hack/packaging", ".", "packaging"); err != nil {
		return nil, err
	}
	if l.registry, err = cluster.ServeImages(ctx, filepath.Join(bin, "registry"), filepath.Join(dir, "registry.log")); err != nil {
		return nil, err
	}
	if err := errors.Join(l.publishItself(ctx), l.apply(ctx)); err != nil {
		return nil, errors.Join(err, l.registry.Stop())
	}
	return l, nil
}

// Stop ends the registry.
func (l *Lifecycle) Stop() error { return l.registry.Stop() }

// publishItself publishes the images of the Operator Lifecycle Manager.
func (l *Lifecycle) publishItself(ctx context.Context) error {
	programs := map[string]string{"/bin/cp": busybox}
	for _, name := range []string{"olm", "catalog", "copy-content", "cpb"} {
		programs["/bin/"+name] = filepath.Join(l.bin, name)
	}
	err := l.registry.Push(ctx, lifecycleImage, rig.Contents{Programs: programs, Entrypoint: []string{"/bin/olm"}})
	// Images of catalogs are made on that of opm, with the probe that their pods are asked with.
	opm := map[string]string{"/bin/opm": l.cluster.Tool("opm"), "/bin/grpc_health_probe": filepath.Join(l.bin, "grpc_health_probe")}
	return errors.Join(err, l.registry.Push(ctx, opmImage, rig.Contents{Programs: opm, Entrypoint: []string{"/bin/opm"}}))
}

// apply installs the kinds and the two programs.
func (l *Lifecycle) apply(ctx context.Context) error {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = filepath.Join(l.cluster.Root(), "hack", "devcluster", "components", "olm")
	list.Env = append(os.Environ(), "GOWORK=off")
	dir, err := list.Output()
	if err != nil {
		return fmt.Errorf("finding the manifests of the Operator Lifecycle Manager: %w", err)
	}
	kinds := filepath.Join(strings.TrimSpace(string(dir)), "deploy", "chart", "crds")
	if _, err := l.cluster.RunKubectl(ctx, "apply", "--server-side", "-f", kinds); err != nil {
		return fmt.Errorf("installing the kinds of the Operator Lifecycle Manager: %w", err)
	}
	if _, err := l.cluster.RunKubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", kinds); err != nil {
		return fmt.Errorf("waiting for the kinds of the Operator Lifecycle Manager: %w", err)
	}
	return l.applyObjects(ctx)
}

// applyObjects applies the programs and what they need.
func (l *Lifecycle) applyObjects(ctx context.Context) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading objects to apply: %w", err)
		}
		err := l.cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("rig"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

// Available waits until the Operator Lifecycle Manager works.
func (l *Lifecycle) Available(ctx context.Context) error {
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
			d := &appsv1.Deployment{}
			if err := l.cluster.Client.Get(ctx, client.ObjectKey{Namespace: "olm", Name: name}, d); err != nil {
				return false, err
			}
			return d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas == 1, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", name, err)
		}
	}
	return nil
}
