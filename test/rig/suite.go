package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Suite is a package of end-to-end tests with a real node of its own.
type Suite struct {
	// Name tells it apart from others that run at the same time.
	Name string
	// Audit has the API server log every request.
	Audit bool
	// Prepare readies the cluster for the tests, with a folder for files and logs, and may return what
	// is to be called after them. The folder stays where a test failed.
	Prepare func(ctx context.Context, c *Cluster, dir string) (after func() error, err error)
}

// Run brings up the cluster, runs the tests, removes the cluster and returns the exit code: what
// TestMain of such a package does. Without root it says that it skips them.
func (s Suite) Run(tests func() int) int {
	log.SetLogger(logr.Discard()) // the client says in errors what it has to say
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Geteuid() != 0 && os.Getenv("E2E") != "required" {
		fmt.Println("skipped: a real node needs root; run: sudo make e2e")
		return 0
	}
	code, err := s.run(ctx, tests)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		return 1
	}
	return code
}

func (s Suite) run(ctx context.Context, tests func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", s.Name+"-")
	if err != nil {
		return 1, fmt.Errorf("making a folder: %w", err)
	}
	defer func() {
		if err == nil && code == 0 {
			err = os.RemoveAll(dir)
		} else {
			fmt.Println("files and logs are in", dir)
		}
	}()
	cluster, err := Up(ctx, Options{
		Name: fmt.Sprintf("%s-%d", s.Name, os.Getpid()), Node: NodeReal, Audit: s.Audit, DieWithUs: true, Progress: os.Stdout,
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, cluster.Down(ending))
	}()
	after, err := s.Prepare(ctx, cluster, dir)
	if err != nil {
		return 1, err
	}
	code = tests()
	if after != nil {
		err = after()
	}
	return code, err
}
