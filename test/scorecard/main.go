// Command scorecard holds the tests of the operator's bundle that "operator-sdk scorecard" runs
// beside its own: each as a pod with the bundle at /bundle and the test's name as argument, on the
// cluster that the operator is installed on. It prints the result as scorecard wants it, and nothing
// else. README.md beside this file tells how they are run and what they do.
//
// As "tar xvzf ARCHIVE -C FOLDER" it unpacks the bundle: scorecard calls the image of
// --untar-image that way, which may so be this one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambient-code/agentic-operator/test/scorecard/internal/archive"
	"github.com/ambient-code/agentic-operator/test/scorecard/internal/checks"
	"github.com/ambient-code/agentic-operator/test/scorecard/internal/report"
)

// patience is how long a test may take, its clearing up not included. Scorecard's own --wait-time
// ends all of them.
const patience = 10 * time.Minute

// bundle is where scorecard puts the bundle.
const bundle = "/bundle"

func main() {
	// What goes to the standard error is in the pod's log as well, which must be the result alone.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("name a test; there are: " + strings.Join(names(), ", "))
	}
	if args[0] == "tar" {
		return archive.Tar(args[1:])
	}
	out, err := json.MarshalIndent(result(args[0]), "", "  ")
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if _, err := fmt.Println(string(out)); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}

func names() []string { return slices.Sorted(maps.Keys(checks.All)) }

// result runs a test. Scorecard removes the pod when its time is up: then the test clears up, too.
func result(name string) report.Status {
	told := report.New(name)
	test, found := checks.All[name]
	if !found {
		told.Fail("there is no test %q; there are: %s", name, strings.Join(names(), ", "))
		return told.Status()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	from := bundle
	if other := os.Getenv("BUNDLE"); other != "" {
		from = other
	}
	if err := checks.Run(ctx, test, from, told); err != nil {
		told.Fail("%v", err)
	}
	return told.Status()
}
