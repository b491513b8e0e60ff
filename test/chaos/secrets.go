package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// token looks like one of a ServiceAccount.
var token = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{20,}\.`)

// secret says what a text holds that nobody may read; empty for nothing.
func (c *chaos) secret(text []byte) string {
	if token.Match(text) {
		return "a token"
	}
	for _, key := range c.keys {
		if bytes.Contains(text, []byte(key)) {
			return "an API key"
		}
	}
	return ""
}

// judgeLogs reads what the operators logged, and what the API server noted of them.
func (c *chaos) judgeLogs() error {
	for _, r := range c.replicas {
		r.mu.Lock()
		logs := r.logs
		r.mu.Unlock()
		for _, log := range logs {
			n, err := lines(log, func(line []byte) {
				if what := c.secret(line); what != "" {
					c.violation("seed %d and after: there is %s in log %s", c.seed, what, log)
				}
				if bytes.Contains(line, []byte("panic")) {
					c.violation("seed %d and after: the operator panicked: %s: %.500s", c.seed, log, line)
				}
			})
			if err != nil {
				return err
			}
			c.holds("log lines without a secret or panic", n)
		}
	}
	return c.judgeAudit()
}

// judgeAudit checks that the operator never did what it may not.
func (c *chaos) judgeAudit() error {
	user := []byte(`"system:serviceaccount:` + rig.OperatorNamespace + ":" + rig.OperatorName + `"`)
	judged := 0
	_, err := lines(c.cluster.AuditLog, func(line []byte) {
		if !bytes.Contains(line, user) {
			return
		}
		judged++
		var event struct {
			RequestURI  string            `json:"requestURI"`
			Verb        string            `json:"verb"`
			Annotations map[string]string `json:"annotations"`
			Received    time.Time         `json:"requestReceivedTimestamp"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return // the last line before the API server was killed may be half
		}
		if event.Annotations["authorization.k8s.io/decision"] == "forbid" && !c.starting(event.Received) {
			c.violation("seed %d and after: the operator may not %s %s", c.seed, event.Verb, event.RequestURI)
		}
	})
	c.holds("requests that were allowed", judged)
	return err
}

// starting says that the API server had just been started then: for a moment it does not know all roles.
func (c *chaos) starting(at time.Time) bool {
	return slices.ContainsFunc(c.restarts, func(restart time.Time) bool {
		return at.After(restart) && at.Before(restart.Add(30*time.Second))
	})
}

// lines hands on every line of a file, and counts them.
func lines(path string, take func([]byte)) (n int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("reading a log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	reader := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			take(line)
			n++
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("reading log %s: %w", path, err)
		}
	}
}

// judgeEvents reads what the operator told the users of the round.
func (r *round) judgeEvents(ctx context.Context) error {
	events := &corev1.EventList{}
	if err := insist(ctx, func() error { return r.cluster.Client.List(ctx, events) }); err != nil {
		return fmt.Errorf("listing Events: %w", err)
	}
	for i := range events.Items {
		e := &events.Items[i]
		if !strings.HasPrefix(e.Namespace, r.prefix) {
			continue
		}
		if what := r.secret([]byte(e.Message)); what != "" {
			r.violation("seed %d: there is %s in an Event about %s/%s", r.seed, what, e.Namespace, e.InvolvedObject.Name)
		}
		r.holds("Events without a secret", 1)
	}
	return nil
}
