package supervisor

import (
	"encoding/json"
	"fmt"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
)

// Options say what cluster to run.
type Options struct {
	Name string `json:"name"`
	// Node is the kind of node (cluster.NodeSimulated, …).
	Node string `json:"node"`
	// Nodes is the number of simulated nodes.
	Nodes int `json:"nodes"`
	// DieWith is a process whose end ends the cluster; zero means none.
	DieWith int `json:"dieWith"`
	// Audit switches the audit log on.
	Audit bool `json:"audit"`
	// BinDir holds the built programs.
	BinDir string `json:"binDir"`
	// Ports are the ones to listen on.
	Ports cluster.Ports `json:"ports"`
}

// Command is the hidden subcommand that runs a supervisor; its one argument is from Encode.
const Command = "supervise"

// Encode makes the argument of Command.
func (o Options) Encode() (string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encoding the supervisor's options: %w", err)
	}
	return string(text), nil
}

// Decode reads the argument of Command.
func Decode(text string) (Options, error) {
	var o Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return Options{}, fmt.Errorf("reading the supervisor's options: %w", err)
	}
	return o, nil
}

// message is a line from the supervisor to Up; exactly one field is set.
type message struct {
	// Held is the first word of a supervisor that holds its lock.
	Held  bool   `json:"held,omitempty"`
	Step  string `json:"step,omitempty"`
	Error string `json:"error,omitempty"`
	Ready bool   `json:"ready,omitempty"`
}

// confirmation is what Up answers to a ready cluster; the lifeline may be closed after it.
const confirmation = "keep\n"

// The descriptors of the two pipes in the supervisor.
const (
	reportFD   = 3
	lifelineFD = 4
)
