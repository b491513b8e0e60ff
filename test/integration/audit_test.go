package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// auditEvent is what is kept of a line of the API server's audit log.
type auditEvent struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
	Received    time.Time         `json:"requestReceivedTimestamp"`
}

// refusedByRBAC says that the request was not allowed, as opposed to refused by a quota or the like.
func (e *auditEvent) refusedByRBAC() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid"
}

func (e *auditEvent) write() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, e.Verb)
}

// resource is the resource as rules name it.
func (e *auditEvent) resource() string {
	if e.ObjectRef.Subresource != "" {
		return e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
	}
	return e.ObjectRef.Resource
}

// auditTrail is what the API server says the operator did.
type auditTrail struct {
	path string
	user []byte

	mu     sync.Mutex
	offset int64
	events []auditEvent
}

// followAudit reads the operator's part of an audit log while it grows; nil when there is none.
func followAudit(ctx context.Context, path, user string) (*auditTrail, error) {
	if path == "" {
		return nil, nil
	}
	a := &auditTrail{path: path, user: []byte(`"` + user + `"`)}
	if err := a.read(); err != nil {
		return nil, err
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(500 * time.Millisecond):
			}
			if err := a.read(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
		}
	}()
	return a, nil
}

// read takes in the whole lines that were added.
func (a *auditTrail) read() (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	file, err := os.Open(a.path)
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // half a line: next time
		}
		if err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		a.offset += int64(len(line))
		if !bytes.Contains(line, a.user) {
			continue
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		if event.Stage == "ResponseComplete" || event.Verb == "watch" {
			a.events = append(a.events, event)
		}
	}
}

// of returns the operator's requests about a namespace; about all when it is empty.
func (a *auditTrail) of(namespace string) ([]auditEvent, error) {
	if err := a.read(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var events []auditEvent
	for i := range a.events {
		if namespace == "" || a.events[i].ObjectRef.Namespace == namespace {
			events = append(events, a.events[i])
		}
	}
	return events, nil
}
