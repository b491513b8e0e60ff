package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/supervisor"
)

const mostSimulatedNodes = 1000

// upFlags are those of `up` that don't go to the supervisor as they are.
type upFlags struct {
	supervisor.Options
	output  string
	ifBuilt bool
}

// ErrNotBuilt is the answer to `up --if-built` where something would have to be built first.
var ErrNotBuilt = errors.New("the programs of the cluster are not built: run `build` (minutes, once)")

func (c *commands) build() *cobra.Command {
	node, monitoring, olm := "", false, false
	cmd := &cobra.Command{
		Use: "build", Short: "Build the cluster's programs, unless that was done before", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kind, err := c.chooseNode(node)
			if err != nil {
				return err
			}
			components := c.components(kind)
			if monitoring {
				components = append(components, cluster.Monitoring()...)
			}
			if olm {
				components = append(components, cluster.OLM()...)
			}
			binDir, err := c.buildAll(cmd.Context(), components)
			if err != nil {
				return err
			}
			return c.print("%s", binDir)
		},
	}
	cmd.Flags().StringVar(&node, "node", "", nodeUsage)
	cmd.Flags().BoolVar(&monitoring, "monitoring", false, "build prometheus-operator and Prometheus too, which run beside a cluster")
	cmd.Flags().BoolVar(&olm, "olm", false, "build the Operator Lifecycle Manager too, which tests install on a cluster")
	return cmd
}

const nodeUsage = "kind of node: simulated (scripted pods), real (containers; needs root) or none; the default is real where that is possible"

func (c *commands) up() *cobra.Command {
	var flags upFlags
	cmd := &cobra.Command{
		Use: "up", Short: "Start a cluster and wait until it can be used", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runUp(cmd.Context(), flags) },
	}
	cmd.Flags().StringVar(&flags.Node, "node", "", nodeUsage)
	cmd.Flags().IntVar(&flags.Nodes, "nodes", 3, "number of simulated nodes")
	cmd.Flags().IntVar(&flags.DieWith, "die-with", 0, "end the cluster when the process with this number ends")
	cmd.Flags().BoolVar(&flags.Audit, "audit", false, "write an audit log of every request")
	cmd.Flags().BoolVar(&flags.ifBuilt, "if-built", false, "fail with exit code 3 rather than build the cluster's programs first")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "print what is known of the cluster as json")
	return cmd
}

func (c *commands) runUp(ctx context.Context, flags upFlags) error {
	if err := checkOutput(flags.output); err != nil {
		return err
	}
	if flags.Nodes < 1 || flags.Nodes > mostSimulatedNodes {
		return fmt.Errorf("--nodes is %d: give a number from 1 to %d", flags.Nodes, mostSimulatedNodes)
	}
	options := flags.Options
	options.Name = c.name
	if err := cluster.CheckName(options.Name); err != nil {
		return err
	}
	if info, err := running(c.name); err != nil || info != nil {
		if err != nil {
			return err
		}
		return c.reportUp(*info, flags.output, "is running already")
	}
	var err error
	if options.Node, err = c.chooseNode(options.Node); err != nil {
		return err
	}
	if flags.ifBuilt {
		if err := c.checkBuilt(ctx, options.Node); err != nil {
			return err
		}
	}
	if options.BinDir, err = c.buildAll(ctx, c.components(options.Node)); err != nil {
		return err
	}
	began := time.Now()
	info, started, err := supervisor.Up(ctx, options, c.node, c.step)
	if err != nil {
		return fmt.Errorf("cluster %q did not start: %w", c.name, err)
	}
	if !started {
		return c.reportUp(info, flags.output, "is running already")
	}
	return c.reportUp(info, flags.output, fmt.Sprintf("is ready after %.1f s", time.Since(began).Seconds()))
}

// running returns what is known of the cluster if it runs and is ready.
func running(name string) (*cluster.Info, error) {
	_, info, err := cluster.Open(name)
	if errors.Is(err, cluster.ErrNotRunning) || err == nil && !info.Ready {
		return nil, nil
	}
	return &info, err
}

// step passes a supervisor's step on; a message that can't be written stops nothing.
func (c *commands) step(step string) {
	if err := c.tell("  %s", step); err != nil {
		return
	}
}

func checkOutput(output string) error {
	if output != "" && output != "json" {
		return fmt.Errorf("output %q is not known: give -o json or leave it out", output)
	}
	return nil
}

// chooseNode checks the kind that was asked for, or chooses one and says so.
func (c *commands) chooseNode(asked string) (string, error) {
	switch asked {
	case cluster.NodeSimulated, cluster.NodeNone:
		return asked, nil
	case cluster.NodeReal:
		if err := c.node.Check(); err != nil {
			return "", fmt.Errorf("no real node here: %w; or take --node=simulated", err)
		}
		return asked, nil
	case "":
		if err := c.node.Check(); err != nil {
			return cluster.NodeSimulated, c.tell("Nodes will be simulated, pods will not run containers: %v.", err)
		}
		return cluster.NodeReal, c.tell("The node will be a real one, pods will run containers (--node=simulated for the other kind).")
	}
	return "", fmt.Errorf("kind of node %q is not known: give --node=simulated, real or none", asked)
}

func (c *commands) reportUp(info cluster.Info, output, state string) error {
	if output == "json" {
		if err := c.tell("Cluster %q %s.", info.Name, state); err != nil {
			return err
		}
		return c.printJSON(info)
	}
	lines := []string{
		fmt.Sprintf("Cluster %q %s.", info.Name, state),
		fmt.Sprintf("  server      %s", info.Server),
		fmt.Sprintf("  node        %s", info.Node),
		fmt.Sprintf("  kubeconfig  %s", info.Kubeconfig),
		fmt.Sprintf("  kubectl     %s/kubectl", info.BinDir),
	}
	return c.print("%s", strings.Join(lines, "\n"))
}
