package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/supervisor"
)

func (c *commands) down() *cobra.Command {
	keepLogs := false
	cmd := &cobra.Command{
		Use: "down", Short: "End a cluster; nothing of it is left", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := supervisor.Down(cmd.Context(), c.name, c.node, keepLogs)
			if err != nil {
				return fmt.Errorf("ending cluster %q: %w", c.name, err)
			}
			if !found {
				return c.tell("There is no cluster %q.", c.name)
			}
			if keepLogs {
				layout, err := cluster.LayoutOf(c.name)
				if err != nil {
					return err
				}
				return c.tell("Cluster %q has ended; its logs are in %s.", c.name, layout.Logs())
			}
			return c.tell("Cluster %q has ended.", c.name)
		},
	}
	cmd.Flags().BoolVar(&keepLogs, "keep-logs", false, "leave the logs in the cluster's folder")
	return cmd
}

// statusRow is one cluster as `status` shows it.
type statusRow struct {
	cluster.Info
	State string `json:"state"`
}

func (c *commands) status() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use: "status", Short: "List the clusters of this user", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			rows, err := statusRows()
			if err != nil {
				return err
			}
			if output == "json" {
				return c.printJSON(rows)
			}
			return c.printStatus(rows)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "print the list as json")
	return cmd
}

func statusRows() ([]statusRow, error) {
	infos, err := cluster.List()
	if err != nil {
		return nil, err
	}
	rows := []statusRow{}
	for _, info := range infos {
		alive, err := (cluster.Layout{Dir: info.Dir}).Alive()
		if err != nil {
			return nil, err
		}
		state := "starting"
		switch {
		case !alive:
			state = "dead" // its supervisor was killed
		case info.Ready:
			state = "ready"
		}
		rows = append(rows, statusRow{Info: info, State: state})
	}
	return rows, nil
}

func (c *commands) printStatus(rows []statusRow) error {
	if len(rows) == 0 {
		return c.tell("No cluster is running; start one with `up`.")
	}
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(table, "NAME\tSTATE\tNODE\tSERVER\tKUBECONFIG"); err != nil {
		return err
	}
	for _, row := range rows {
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", row.Name, row.State, row.Node, row.Server, row.Kubeconfig); err != nil {
			return err
		}
	}
	return table.Flush()
}
