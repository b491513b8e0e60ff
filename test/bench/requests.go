package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// requests counts what the operator asked of the API server, by verb and resource.
type requests map[string]int

// auditDelay is how long the API server may take to write down a request.
const auditDelay = 2 * time.Second

// mark is a place in the audit log.
func (b *bench) mark() (int64, error) {
	info, err := os.Stat(b.cluster.AuditLog)
	if err != nil {
		return 0, fmt.Errorf("looking at the audit log: %w", err)
	}
	return info.Size(), nil
}

// since counts the operator's requests after a place in the audit log, those about some namespaces or
// all. What leads to no work is left out: watches, and the lease.
func (b *bench) since(mark int64, namespaces ...string) (all requests, writes int, err error) {
	time.Sleep(auditDelay)
	file, err := os.Open(b.cluster.AuditLog)
	if err != nil {
		return nil, 0, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(mark, io.SeekStart); err != nil {
		return nil, 0, fmt.Errorf("reading the audit log: %w", err)
	}
	all = requests{}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, writes, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("reading the audit log: %w", err)
		}
		var e struct {
			Stage, Verb string
			User        struct{ Username string }
			ObjectRef   struct{ Namespace, Resource, Subresource string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("reading the audit log: %w", err)
		}
		ours := e.User.Username == "system:serviceaccount:"+rig.OperatorNamespace+":"+rig.OperatorName
		if !ours || e.Stage != "ResponseComplete" || e.Verb == "watch" || e.ObjectRef.Resource == "leases" {
			continue
		}
		if len(namespaces) > 0 && !slices.Contains(namespaces, e.ObjectRef.Namespace) {
			continue
		}
		what := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		all[e.Verb+" "+what]++
		if e.Verb != "get" && e.Verb != "list" {
			writes++
		}
	}
}

func (r requests) total() int {
	n := 0
	for _, count := range r {
		n += count
	}
	return n
}
