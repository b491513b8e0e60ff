package rig

import (
	"context"
	"fmt"
	"path/filepath"
)

// Image is one of the repository's programs as a container image.
type Image struct {
	Name string
	// module is empty where make has built the program.
	module  string
	pkg     string
	program string
	// names are what the program is called in the image; its own name if there are none.
	names []string
}

// The images that run on the local Kubernetes.
var (
	OperatorImage  = Image{"localhost/ambient/agentic-operator:dev", ".", ".", "operator", nil}
	RunnerImage    = Image{"localhost/ambient/reference-runner:dev", "test/runner", ".", "reference-runner", nil}
	GitServerImage = Image{"localhost/ambient/git-server:dev", "test/runner", "./gitserver", "git-server", nil}
	StateSyncImage = Image{"localhost/ambient/state-sync:dev", "test/statesync", ".", "state-sync", []string{"state-sync", "hydrate.sh", "sync.sh"}}
	S3ServerImage  = Image{"localhost/ambient/s3-server:dev", "hack/tools/versitygw", "tool", "versitygw", nil}
	ScorecardImage = Image{"localhost/ambient/scorecard:dev", "test/scorecard", ".", "scorecard", nil}
)

// builtInScorecard is the program of scorecard's own tests.
const builtInScorecard = "scorecard-test"

// Load builds images and loads them onto the real node.
func (c *Cluster) Load(ctx context.Context, images ...Image) error {
	if err := c.build(ctx, "hack/image", "image", "."); err != nil {
		return err
	}
	for _, image := range images {
		if image.module != "" {
			if err := c.build(ctx, image.module, image.program, image.pkg); err != nil {
				return err
			}
		}
		archive := filepath.Join(c.bin, image.program+".tar")
		args := []string{"--license", filepath.Join(c.root, "LICENSE"), "--user", "65532", "--tag", image.Name, "--output", archive}
		names := image.names
		if len(names) == 0 {
			names = []string{image.program}
		}
		for _, name := range names {
			args = append(args, "--binary", filepath.Join(c.bin, image.program)+":/usr/local/bin/"+name)
		}
		if _, err := c.run(ctx, filepath.Join(c.bin, "image"), args...); err != nil {
			return fmt.Errorf("making the image %s: %w", image.Name, err)
		}
		if _, err := c.run(ctx, c.devcluster(), "load-image", "--name", c.Name, archive); err != nil {
			return fmt.Errorf("loading the image %s: %w", image.Name, err)
		}
	}
	return nil
}
