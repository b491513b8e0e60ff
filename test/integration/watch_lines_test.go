package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchLines are the watch connections of an operator. Tests cut them, keep them cut for a while, and
// have the server no longer know where they broke off.
type watchLines struct {
	mu   sync.Mutex
	open map[*watchLine]bool
	down bool
	// gone is what the server has forgotten.
	gone forgotten
	// refused counts those who wanted to go on from there.
	refused int
}

// forgotten is a history that a server no longer has.
type forgotten struct {
	// answer is what it says to who wants to go on from there; nil where it has forgotten nothing.
	answer func(*http.Request) *http.Response
	// until is the first version that it still knows.
	until int64
	// but is a part of the paths of those kinds of which it has forgotten nothing.
	but string
}

// forgets says that a watch cannot go on from where it was.
func (f forgotten) forgets(request *http.Request) bool {
	query := request.URL.Query()
	version, err := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	return f.answer != nil && err == nil && version > 0 && version < f.until && query.Get("sendInitialEvents") == "" &&
		(f.but == "" || !strings.Contains(request.URL.Path, f.but))
}

// connect makes a connection, unless they are down.
func (w *watchLines) connect(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	w.mu.Lock()
	down, gone := w.down, w.gone
	if !down && gone.forgets(request) {
		w.refused++
		w.mu.Unlock()
		return gone.answer(request), nil
	}
	w.mu.Unlock()
	if down {
		return nil, fmt.Errorf("watching %s: the test keeps the line down: %w", request.URL.Path, io.EOF)
	}
	response, err := next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	line := &watchLine{ReadCloser: response.Body, lines: w}
	response.Body = line
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open = map[*watchLine]bool{}
	}
	w.open[line] = true
	return response, nil
}

// cut ends all connections and lets no new ones through; it says how many there were.
func (w *watchLines) cut() int {
	w.mu.Lock()
	w.down = true
	var lines []*watchLine
	for line := range w.open {
		lines = append(lines, line)
	}
	w.mu.Unlock()
	for _, line := range lines {
		// What is closed twice says so; it is as closed as it has to be.
		if err := line.Close(); err != nil {
			continue
		}
	}
	return len(lines)
}

// mend lets new connections through, to a server that has forgotten something.
func (w *watchLines) mend(gone forgotten) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down, w.gone, w.refused = false, gone, 0
}

// restore has the server remember again, and says how many watches could not go on.
func (w *watchLines) restore() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = forgotten{}
	return w.refused
}

type watchLine struct {
	io.ReadCloser
	lines *watchLines
}

// Close ends the connection, by the operator or by a test.
func (l *watchLine) Close() error {
	l.lines.mu.Lock()
	delete(l.lines.open, l)
	l.lines.mu.Unlock()
	return l.ReadCloser.Close()
}

// goneAnswer says with the answer itself that a place is no longer known, as proxies and stores do.
func goneAnswer(request *http.Request) *http.Response {
	return refusal(request, http.StatusGone, metav1.StatusReasonExpired)
}

// goneEvent says it with the first event of the watch, as API servers do.
func goneEvent(request *http.Request) *http.Response {
	body := []byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}}` + "\n")
	answer := refusal(request, http.StatusOK, "")
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer
}
