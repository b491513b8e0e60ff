package main

import (
	"context"
	"flag"
	"io"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/table"
)

// printTable shows the bundle's features, and what every check says of it now.
func printTable(ctx context.Context, r *repository, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	checks := flags.Bool("checks", true, "run the checks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	sections, err := table.Features(r.root)
	if err != nil {
		return err
	}
	if *checks {
		results, err := table.Checks(ctx, r.root, "-count=1")
		if err != nil {
			return err
		}
		sections = append(sections, results...)
	}
	return table.Print(out, sections)
}
