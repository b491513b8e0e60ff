// Command gitserver serves example git repositories that anybody may clone and
// push to, for demos and end-to-end tests:
//
//	gitserver --listen :8080 --repo sample --repo docs [--folder DIR]
//
// Without --repo it serves one repository named "sample". What it serves is in
// package githost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ambient-code/agentic-operator/test/runner/internal/githost"
)

// defaultRepository is served when no other is named.
const defaultRepository = "sample"

// patience is how long requests under way may take to end when we are stopped.
const patience = 2 * time.Second

func main() {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	if err := serve(log); err != nil {
		log.Error("the git server cannot go on", "error", err)
		os.Exit(1)
	}
}

func serve(log *slog.Logger) error {
	var names []string
	listen := flag.String("listen", ":8080", "address to serve on")
	folder := flag.String("folder", "", "keep the repositories in this folder; in memory if empty")
	flag.Func("repo", "name of a repository to serve (repeatable; \""+defaultRepository+"\" if none is named)", func(name string) error {
		names = append(names, name)
		return nil
	})
	flag.Parse()
	if len(names) == 0 {
		names = []string{defaultRepository}
	}
	host := githost.New(*folder)
	for _, name := range names {
		if err := host.Add(name); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("listening on %s (name a free address with --listen): %w", *listen, err)
	}
	log.Info("serving", "address", listener.Addr().String(), "repositories", host.Names())

	server := &http.Server{Handler: host.Handler(log), ReadHeaderTimeout: 10 * time.Second}
	stop, release := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer release()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-stop.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := server.Shutdown(ending); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("shutting down: %w", err)
	}
	log.Info("stopped")
	return nil
}
