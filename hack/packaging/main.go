// Command packaging makes what OLM needs from what the repository holds. It is run by make, from
// the top of the repository:
//
//	packaging bundle                  finish the bundle that operator-sdk generated
//	packaging prepare --version V     begin a release: change log, VERSION
//	packaging freeze --version V      end a release: keep the bundle, add it to the catalog
//	packaging deprecate --version V --message M
//	                                  note that a released version should be left
//	packaging catalog [--inline]      print the catalog
//	packaging versions                print the released versions, oldest first
//	packaging publish --to DIR        write the layout of the community's catalogs
//	packaging table [--checks=false]  print what the bundle has, and the result of every check
//	packaging installer               print the rights that OLM v1 needs to install the operator
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// commands by name.
var commands = map[string]func(context.Context, *repository, []string, io.Writer) error{
	"bundle":    finishBundle,
	"prepare":   prepare,
	"freeze":    freeze,
	"deprecate": deprecate,
	"catalog":   printCatalog,
	"publish":   publishTo,
	"versions":  printVersions,
	"installer": printInstaller,
	"table":     printTable,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	names := make([]string, 0, len(commands))
	for name := range commands {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(args) == 0 {
		return fmt.Errorf("name one of the commands: %s", strings.Join(names, ", "))
	}
	command, found := commands[args[0]]
	if !found {
		return fmt.Errorf("%q is no command; there are: %s", args[0], strings.Join(names, ", "))
	}
	root := os.Getenv("REPOSITORY")
	if root == "" {
		root = "."
	}
	return command(ctx, &repository{root: root}, args[1:], out)
}
