// Command registry is a container registry that keeps everything in memory: for the images of
// bundles, which a cluster pulls while it is tested. It serves plain HTTP, which container runtimes
// accept from this machine alone, so it listens on a loopback address:
//
//	registry 127.0.0.1:5000
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("say where to listen, and nothing else: registry 127.0.0.1:5000")
	}
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		return fmt.Errorf("listening on %s: %w", args[0], err)
	}
	server := &http.Server{
		Handler:           registry.New(registry.Logger(log.New(os.Stderr, "", log.LstdFlags))),
		ReadHeaderTimeout: 10 * time.Second,
	}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		ended <- server.Shutdown(closing)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving images: %w", err)
	}
	if err := <-ended; err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ending: %w", err)
	}
	return nil
}
