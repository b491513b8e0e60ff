// Command statesync is a reference image for the containers that fill a session's workspace from S3
// and copy it back: it does what the platform's image does, under the same names, with the same
// variables and the same places in the bucket, against any S3 server. End-to-end tests run it as a
// real container.
//
// Like the platform's image it has two programs, /usr/local/bin/hydrate.sh and
// /usr/local/bin/sync.sh; both are this one, which looks at the name it was called by. By any other
// name it shows what is in a bucket, for tests. README.md beside this file describes it.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ambient-code/agentic-operator/test/statesync/internal/bucket"
	"github.com/ambient-code/agentic-operator/test/statesync/internal/settings"
	"github.com/ambient-code/agentic-operator/test/statesync/internal/workspace"
)

// reachable is how long a server may take to answer before the program gives up.
const reachable = 30 * time.Second

func main() {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	stop, release := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := do(stop, log, filepath.Base(os.Args[0]))
	release()
	if err != nil {
		// The last line of the log becomes the container's message, and part of the session's status.
		fmt.Println("ERROR:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

func do(stop context.Context, log *slog.Logger, name string) error {
	with, err := settings.Read(os.Getenv)
	if err != nil {
		return err
	}
	store, err := bucket.Open(with)
	if err != nil {
		return err
	}
	switch name {
	case "hydrate.sh":
		return hydrate(stop, log, with, store)
	case "sync.sh":
		return sync(stop, log, with, store)
	default:
		return show(stop, log, store)
	}
}

// hydrate makes the folders of a workspace and brings back what is in the bucket.
func hydrate(ctx context.Context, log *slog.Logger, with settings.Settings, store *bucket.Bucket) error {
	if err := workspace.Prepare(with.Workspace, append(with.Folders(), "repos")); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, reachable)
	defer cancel()
	if err := store.Check(asking); err != nil {
		return err
	}
	for _, folder := range with.Folders() {
		files, err := workspace.Fill(ctx, store, filepath.Join(with.Workspace, folder), with.Prefix()+folder+"/")
		if err != nil {
			return fmt.Errorf("bringing back %s: %w", folder, err)
		}
		log.Info("brought back", "folder", folder, "files", files)
	}
	return nil
}

// sync copies the workspace to the bucket again and again, and a last time when it is told to end.
// A copy that fails is made again, except for the last.
func sync(stop context.Context, log *slog.Logger, with settings.Settings, store *bucket.Bucket) error {
	var crash <-chan time.Time
	if with.CrashAfter > 0 {
		crash = time.After(with.CrashAfter)
	}
	log.Info("syncing", "session", with.Prefix(), "interval", with.Interval.String())
	next := time.NewTicker(with.Interval)
	defer next.Stop()
	for {
		select {
		case <-stop.Done():
			// What stops us must not stop the last copy; the kubelet bounds it.
			if err := workspace.Save(context.WithoutCancel(stop), log, store, with); err != nil {
				return fmt.Errorf("the last copy to S3 failed: %w", err)
			}
			log.Info("the last copy is made")
			return nil
		case <-crash:
			return fmt.Errorf("ended after %s, as SYNC_CRASH_AFTER asks", with.CrashAfter)
		case <-next.C:
			if err := workspace.Save(stop, log, store, with); err != nil && stop.Err() == nil {
				log.Error("a copy to S3 failed, it is made again", "error", err)
			}
		}
	}
}
