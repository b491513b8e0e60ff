package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/build"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/supervisor"
)

// commands is what all commands share.
type commands struct {
	out, messages io.Writer
	name          string // of the cluster
	node          cluster.RealNode
}

// New makes the command line. Results go to out, everything that is told on the way to messages.
func New(out, messages io.Writer) *cobra.Command {
	c := &commands{out: out, messages: messages, node: realNode()}
	root := &cobra.Command{
		Use:           "devcluster",
		Short:         "Run a Kubernetes of your own on this machine",
		Long:          "devcluster builds and runs a Kubernetes control plane on this machine, with simulated nodes or, as root, a real one.\nThe first build takes some minutes and is kept; after that a cluster starts in seconds.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(out)
	root.SetErr(messages)
	root.PersistentFlags().StringVar(&c.name, "name", "dev", "name of the cluster; several run side by side")
	root.AddCommand(c.build(), c.up(), c.down(), c.status(), c.restart(), c.kubeconfig(), c.kubectl(), c.logs(), c.loadImage(), c.supervise())
	return root
}

func (c *commands) supervise() *cobra.Command {
	return &cobra.Command{
		Use: supervisor.Command + " OPTIONS", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			options, err := supervisor.Decode(args[0])
			if err != nil {
				return err
			}
			return supervisor.Run(options, c.node)
		},
	}
}

// tell prints a line for the person at the terminal.
func (c *commands) tell(format string, args ...any) error {
	_, err := fmt.Fprintf(c.messages, format+"\n", args...)
	return err
}

func (c *commands) print(format string, args ...any) error {
	_, err := fmt.Fprintf(c.out, format+"\n", args...)
	return err
}

func (c *commands) printJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return c.print("%s", text)
}

// components are the programs that a kind of node needs.
func (c *commands) components(node string) []build.Component {
	components := cluster.ControlPlane()
	if node == cluster.NodeReal {
		components = append(components, c.node.Components()...)
	}
	return components
}

// checkBuilt complains where programs would have to be built.
func (c *commands) checkBuilt(ctx context.Context, node string) error {
	builder, err := build.New(ctx)
	if err != nil {
		return err
	}
	missing, err := builder.Missing(c.components(node))
	if err == nil && len(missing) > 0 {
		return ErrNotBuilt
	}
	return err
}

func (c *commands) buildAll(ctx context.Context, components []build.Component) (binDir string, err error) {
	builder, err := build.New(ctx)
	if err != nil {
		return "", err
	}
	missing, err := builder.Missing(components)
	if err != nil {
		return "", err
	}
	if len(missing) > 0 {
		if err := c.tell("Building %d programs of the cluster. This is done once and takes some minutes; they are kept in %s.", len(missing), builder.Cache); err != nil {
			return "", err
		}
	}
	return builder.Build(ctx, components, build.NewProgress(c.messages))
}
