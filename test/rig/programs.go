package rig

import (
	"context"
	"fmt"
	"strings"
)

// MonitoringPrograms builds prometheus-operator and Prometheus, unless that was done before, and
// returns the folder that holds them.
func (c *Cluster) MonitoringPrograms(ctx context.Context) (string, error) {
	if err := c.build(ctx, "hack/devcluster", "devcluster", "."); err != nil {
		return "", err
	}
	bin, err := c.run(ctx, c.devcluster(), "build", "--node", NodeSimulated, "--monitoring")
	if err != nil {
		return "", fmt.Errorf("building the programs of monitoring: %w", err)
	}
	return strings.TrimSpace(string(bin)), nil
}
