package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of node that a cluster can have.
const (
	NodeSimulated = "simulated"
	NodeReal      = "real"
	NodeNone      = "none"
)

// Info is what others need to know of a running cluster; it is printed as JSON.
type Info struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	Dir        string `json:"dir"`
	Server     string `json:"server"`
	// Node is the kind of node.
	Node string `json:"node"`
	// AuditLog is empty when the cluster writes none.
	AuditLog string `json:"auditLog,omitempty"`
	// BinDir holds the programs, kubectl among them.
	BinDir string `json:"binDir"`
	// SupervisorPID is the process that ends the cluster on SIGTERM.
	SupervisorPID int `json:"supervisorPid"`
	// Ready is false while the cluster starts.
	Ready   bool    `json:"ready"`
	Network Network `json:"network"`
	Ports   Ports   `json:"ports"`
}

// ErrNotRunning says that there is no cluster of that name.
var ErrNotRunning = errors.New("not running")

// WriteInfo replaces the file at once, so that a reader never sees half of it.
func (l Layout) WriteInfo(info Info) error {
	content, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding what is known of the cluster: %w", err)
	}
	fresh := l.InfoFile() + ".new"
	if err := os.WriteFile(fresh, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing what is known of the cluster: %w", err)
	}
	if err := os.Rename(fresh, l.InfoFile()); err != nil {
		return fmt.Errorf("writing what is known of the cluster: %w", err)
	}
	return nil
}

// ReadInfo reads cluster.json, whether the cluster still runs or not.
func (l Layout) ReadInfo() (Info, error) {
	content, err := os.ReadFile(l.InfoFile())
	if errors.Is(err, os.ErrNotExist) {
		return Info{}, ErrNotRunning
	}
	if err != nil {
		return Info{}, fmt.Errorf("reading what is known of the cluster: %w", err)
	}
	var info Info
	if err := json.Unmarshal(content, &info); err != nil {
		return Info{}, fmt.Errorf("reading %s: %w", l.InfoFile(), err)
	}
	return info, nil
}

const holdTries = 50

// Hold takes the supervisor's lock. It is given back when the process ends, however it ends, which
// makes it the sign of life of a cluster.
func (l Layout) Hold() (release func() error, err error) {
	file, err := os.OpenFile(l.LockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the supervisor's lock: %w", err)
	}
	for range holdTries { // a look by Alive holds the lock for a moment
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return file.Close, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.Join(fmt.Errorf("taking the supervisor's lock: %w", err), file.Close())
}

// Alive tells whether a supervisor runs this cluster.
func (l Layout) Alive() (alive bool, err error) {
	file, err := os.OpenFile(l.LockFile(), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening the supervisor's lock: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("testing the supervisor's lock: %w", err)
	}
	return false, nil
}

// Open reads a running cluster, for a process that is not its supervisor.
func Open(name string) (*Cluster, Info, error) {
	layout, err := LayoutOf(name)
	if err != nil {
		return nil, Info{}, err
	}
	alive, err := layout.Alive()
	if err != nil {
		return nil, Info{}, err
	}
	if !alive {
		return nil, Info{}, fmt.Errorf("cluster %q is %w: start it with `up --name %s`", name, ErrNotRunning, name)
	}
	info, err := layout.ReadInfo()
	if err != nil {
		return nil, Info{}, err
	}
	c := &Cluster{Name: name, Layout: layout, BinDir: info.BinDir, Network: info.Network, Ports: info.Ports, Report: func(string) {}}
	if info.Ready {
		if c.PKI, err = OpenPKI(layout.PKI()); err != nil {
			return nil, Info{}, err
		}
	}
	return c, info, nil
}

// List reads what is known of every cluster of this user.
func List() ([]Info, error) {
	root, err := StateRoot()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "cluster.json"))
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var infos []Info
	for _, file := range files {
		info, err := (Layout{Dir: filepath.Dir(file)}).ReadInfo()
		if errors.Is(err, ErrNotRunning) {
			continue // removed since
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}
