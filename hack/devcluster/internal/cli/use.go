package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

func (c *commands) kubeconfig() *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the administrator's kubeconfig", Args: cobra.NoArgs,
		Example: "  export KUBECONFIG=$(devcluster kubeconfig)",
		RunE: func(*cobra.Command, []string) error {
			_, info, err := cluster.Open(c.name)
			if err != nil {
				return err
			}
			return c.print("%s", info.Kubeconfig)
		},
	}
}

// kubectl leaves every argument after the cluster's name to kubectl itself.
func (c *commands) kubectl() *cobra.Command {
	return &cobra.Command{
		Use: "kubectl ARGS...", Short: "Run the cluster's kubectl as its administrator",
		Example:            "  devcluster kubectl get pods -A\n  devcluster kubectl --name other get nodes   (--name first)",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			args, err := c.takeName(args)
			if err != nil {
				return err
			}
			_, info, err := cluster.Open(c.name)
			if err != nil {
				return err
			}
			path := filepath.Join(info.BinDir, "kubectl")
			env := append(os.Environ(), "KUBECONFIG="+info.Kubeconfig)
			if err := syscall.Exec(path, append([]string{"kubectl"}, args...), env); err != nil {
				return fmt.Errorf("running %s: %w", path, err)
			}
			return nil
		},
	}
}

// takeName takes --name from the front of kubectl's arguments.
func (c *commands) takeName(args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	if name, found := strings.CutPrefix(args[0], "--name="); found {
		c.name = name
		return args[1:], nil
	}
	if args[0] != "--name" {
		return args, nil
	}
	if len(args) < 2 {
		return nil, errors.New("--name wants the name of a cluster")
	}
	c.name = args[1]
	return args[2:], nil
}

func (c *commands) logs() *cobra.Command {
	follow := false
	cmd := &cobra.Command{
		Use: "logs [COMPONENT]", Short: "Print the log of a component, or list the components that have one", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			layout, err := cluster.LayoutOf(c.name)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return c.listLogs(layout)
			}
			file := proc.LogFile(layout.Logs(), filepath.Base(args[0]))
			if _, err := os.Stat(file); err != nil {
				return fmt.Errorf("cluster %q has no log of %q: run `logs` to see which it has", c.name, args[0])
			}
			if !follow {
				return c.copyLog(file)
			}
			tail := exec.CommandContext(cmd.Context(), "tail", "-n", "50", "-F", file)
			tail.Stdout, tail.Stderr = c.out, c.messages
			if err := tail.Run(); err != nil && cmd.Context().Err() == nil {
				return fmt.Errorf("following %s: %w", file, err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is added")
	return cmd
}

func (c *commands) listLogs(layout cluster.Layout) error {
	files, err := filepath.Glob(proc.LogFile(layout.Logs(), "*"))
	if err != nil {
		return fmt.Errorf("listing the logs: %w", err)
	}
	if len(files) == 0 {
		return c.tell("There are no logs of cluster %q.", c.name)
	}
	for _, file := range files {
		if err := c.print("%-24s %s", strings.TrimSuffix(filepath.Base(file), ".log"), file); err != nil {
			return err
		}
	}
	return nil
}

func (c *commands) copyLog(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(c.out, file); err != nil {
		return fmt.Errorf("printing %s: %w", path, err)
	}
	return nil
}

func (c *commands) loadImage() *cobra.Command {
	return &cobra.Command{
		Use: "load-image FILE.tar", Short: "Import an image archive into the real node", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			running, info, err := cluster.Open(c.name)
			if err != nil {
				return err
			}
			if info.Node != cluster.NodeReal {
				return fmt.Errorf("cluster %q has no containers (its node is %s): start one with `up --node=real`", c.name, info.Node)
			}
			return c.node.LoadImage(cmd.Context(), running, args[0], c.out)
		},
	}
}
