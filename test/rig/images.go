package rig

import (
	"context"
	"fmt"
	"path/filepath"
)

// Image is one of the repository's programs as a container image.
type Image struct {
	Name    string
	module  string
	pkg     string
	program string
}

// The images that run on the local Kubernetes.
var (
	OperatorImage  = Image{"localhost/ambient/agentic-operator:dev", ".", ".", "operator"}
	RunnerImage    = Image{"localhost/ambient/reference-runner:dev", "test/runner", ".", "reference-runner"}
	GitServerImage = Image{"localhost/ambient/git-server:dev", "test/runner", "./gitserver", "git-server"}
)

// Load builds images and loads them onto the real node.
func (c *Cluster) Load(ctx context.Context, images ...Image) error {
	if err := c.build(ctx, "hack/image", "image", "."); err != nil {
		return err
	}
	for _, image := range images {
		if err := c.build(ctx, image.module, image.program, image.pkg); err != nil {
			return err
		}
		archive := filepath.Join(c.bin, image.program+".tar")
		_, err := c.run(ctx, filepath.Join(c.bin, "image"),
			"--binary", filepath.Join(c.bin, image.program)+":/usr/local/bin/"+image.program,
			"--license", filepath.Join(c.root, "LICENSE"), "--user", "65532",
			"--tag", image.Name, "--output", archive)
		if err != nil {
			return fmt.Errorf("making the image %s: %w", image.Name, err)
		}
		if _, err := c.run(ctx, c.devcluster(), "load-image", "--name", c.Name, archive); err != nil {
			return fmt.Errorf("loading the image %s: %w", image.Name, err)
		}
	}
	return nil
}
