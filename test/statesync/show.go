package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/ambient-code/agentic-operator/test/statesync/internal/bucket"
)

const showAddress = ":8080"

// show makes the bucket and serves what is in it: /objects?prefix=P lists the keys, /object?key=K
// is the content of one.
func show(stop context.Context, log *slog.Logger, store *bucket.Bucket) error {
	asking, cancel := context.WithTimeout(stop, reachable)
	defer cancel()
	if err := store.Make(asking); err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	answer := func(w http.ResponseWriter, content []byte, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if _, err := w.Write(content); err != nil {
			log.Warn("an answer was not taken", "error", err)
		}
	}
	routes.HandleFunc("GET /objects", func(w http.ResponseWriter, r *http.Request) {
		objects, err := store.List(r.Context(), r.URL.Query().Get("prefix"))
		keys := make([]string, 0, len(objects))
		for _, object := range objects {
			keys = append(keys, object.Key)
		}
		content, encodeErr := json.Marshal(keys)
		answer(w, content, errors.Join(err, encodeErr))
	})
	routes.HandleFunc("GET /object", func(w http.ResponseWriter, r *http.Request) {
		content, err := store.Read(r.Context(), r.URL.Query().Get("key"))
		answer(w, content, err)
	})
	server := &http.Server{Addr: showAddress, Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving on %s: %w", showAddress, err)
	case <-stop.Done():
		if err := server.Close(); err != nil {
			return fmt.Errorf("ending the server: %w", err)
		}
		return nil
	}
}
