package githost

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
)

// largestRequest is the most a client may send: pushes of text, not of archives.
const largestRequest = 64 << 20

// Handler serves the repositories and logs every request that fails.
func (h *Host) Handler(log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, log, h.Names()) })
	mux.Handle("GET /{repo}/info/refs", h.serve(log, advertise))
	mux.Handle("POST /{repo}/git-upload-pack", h.serve(log, upload))
	mux.Handle("POST /{repo}/git-receive-pack", h.serve(log, receive))
	mux.Handle("GET /{repo}/commits", h.serve(log, func(repo *repository, _ *http.Request, _ io.Reader) (reply, error) {
		return repo.commits()
	}))
	return mux
}

// reply is a whole answer. Answers are made completely before the first byte is
// sent, so a slow client never keeps a repository locked.
type reply struct {
	contentType string
	body        []byte
}

// requestError is a fault of the request, not of the server.
type requestError struct{ error }

func (h *Host) serve(log *slog.Logger, answerTo func(*repository, *http.Request, io.Reader) (reply, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		repo, found := h.find(r.PathValue("repo"))
		if !found {
			http.Error(w, fmt.Sprintf("There is no repository %q here; GET / lists those there are.", r.PathValue("repo")), http.StatusNotFound)
			return
		}
		body, err := plainBody(w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := answerTo(repo, r, body)
		if err != nil {
			status := http.StatusInternalServerError
			if fault := (requestError{}); errors.As(err, &fault) {
				status = http.StatusBadRequest
			}
			log.Error("request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
			http.Error(w, err.Error(), status)
			return
		}
		w.Header().Set("Content-Type", answer.contentType)
		w.Header().Set("Cache-Control", "no-cache")
		if _, err := w.Write(answer.body); err != nil {
			log.Warn("client went away", "path", r.URL.Path, "error", err)
		}
	})
}

// plainBody undoes the compression that git uses for longer requests.
func plainBody(w http.ResponseWriter, r *http.Request) (io.Reader, error) {
	limited := http.MaxBytesReader(w, r.Body, largestRequest)
	if r.Header.Get("Content-Encoding") != "gzip" {
		return limited, nil
	}
	unzipped, err := gzip.NewReader(limited)
	if err != nil {
		return nil, fmt.Errorf("reading the compressed request: %w", err)
	}
	// A small request may unpack to a huge one.
	return io.LimitReader(unzipped, largestRequest), nil
}

func answerJSON(w http.ResponseWriter, log *slog.Logger, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Warn("client went away", "error", err)
	}
}
