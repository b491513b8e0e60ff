package realnode

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const pauseImage = "localhost/devcluster/pause:1"

// loadImage gives the images in a tar (docker save or OCI layout) to the node in dir and returns what
// containerd said of it. A pod uses them by the names they have in the tar, with an imagePullPolicy
// of IfNotPresent or Never.
func loadImage(ctx context.Context, dir, archive string) (said string, err error) {
	if _, err := readNetwork(dir); err != nil {
		return "", fmt.Errorf("loading %s: the cluster has no real node that runs: %w", archive, err)
	}
	file, err := os.Open(archive)
	if err != nil {
		return "", fmt.Errorf("loading an image: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// Handed over as an open file, since the tar may lie where the node has folders of its own.
	spec := ctr(dir, "images", "import", "-")
	cmd := exec.CommandContext(ctx, spec.Path, spec.Args...)
	cmd.Stdin = file
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("loading %s into the node: %w: %s", archive, err, bytes.TrimSpace(output))
	}
	return string(output), nil
}

// loadPauseImage puts the pause program on an empty image and gives it to the node.
func loadPauseImage(ctx context.Context, dir, program string) error {
	image, err := programImage(program, "/pause")
	if err != nil {
		return fmt.Errorf("making the pause image: %w", err)
	}
	tag, err := name.NewTag(pauseImage)
	if err != nil {
		return fmt.Errorf("naming the pause image: %w", err)
	}
	file := filepath.Join(dir, "pause.tar")
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		return fmt.Errorf("writing the pause image: %w", err)
	}
	_, err = loadImage(ctx, dir, file)
	return err
}

// programImage is an image with nothing in it but one static program, run by nobody in particular.
func programImage(program, path string) (v1.Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	if err := writer.WriteHeader(&tar.Header{Name: path[1:], Mode: 0o755, Size: int64(len(content))}); err != nil {
		return nil, err
	}
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config.Entrypoint = []string{path}
	file.Config.User = "65535:65535"
	return mutate.ConfigFile(image, file)
}
