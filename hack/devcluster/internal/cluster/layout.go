package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// StateVariable names the environment variable that says where clusters keep their folders.
const StateVariable = "DEVCLUSTER_STATE"

// maxNameLength keeps the paths of the sockets in a cluster's folder below the kernel's limit.
const maxNameLength = 40

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// CheckName refuses a name that can't be a folder, a host name and a network namespace.
func CheckName(name string) error {
	if len(name) > maxNameLength || !namePattern.MatchString(name) {
		return fmt.Errorf("cluster name %q is not usable: take up to %d lower-case letters, digits and dashes", name, maxNameLength)
	}
	return nil
}

// StateRoot is the folder that holds the folders of all clusters of this user.
func StateRoot() (string, error) {
	if root := os.Getenv(StateVariable); root != "" {
		return filepath.Abs(root)
	}
	if root := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(root) {
		return filepath.Join(root, "agentic-operator", "devcluster"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no folder for clusters (%w): set %s to one", err, StateVariable)
	}
	return filepath.Join(home, ".local", "state", "agentic-operator", "devcluster"), nil
}

// Layout is the folder of one cluster.
type Layout struct{ Dir string }

// LayoutOf is the layout of the cluster of that name, which need not exist.
func LayoutOf(name string) (Layout, error) {
	if err := CheckName(name); err != nil {
		return Layout{}, err
	}
	root, err := StateRoot()
	if err != nil {
		return Layout{}, err
	}
	return Layout{Dir: filepath.Join(root, name)}, nil
}

// InfoFile is cluster.json.
func (l Layout) InfoFile() string { return filepath.Join(l.Dir, "cluster.json") }

// LockFile is held by the supervisor for as long as it lives.
func (l Layout) LockFile() string { return filepath.Join(l.Dir, "supervisor.lock") }

// Kubeconfig is the administrator's.
func (l Layout) Kubeconfig() string { return filepath.Join(l.Dir, "kubeconfig") }

// ComponentKubeconfig is that of a component, such as kube-scheduler or kubelet.
func (l Layout) ComponentKubeconfig(name string) string {
	return filepath.Join(l.Dir, "kubeconfigs", name)
}

// PKI holds certificates and keys.
func (l Layout) PKI() string { return filepath.Join(l.Dir, "pki") }

// Logs holds one file a process.
func (l Layout) Logs() string { return filepath.Join(l.Dir, "logs") }

// Registries is a folder of containerd's: <registry>/hosts.toml in it says where the real node pulls
// the images of a registry from. Without one it asks the registry itself.
func (l Layout) Registries() string { return filepath.Join(l.Dir, "registries") }

// AuditLog is written when the cluster was started with it.
func (l Layout) AuditLog() string { return filepath.Join(l.Dir, "audit.log") }

// EtcdData is the folder of etcd's data.
func (l Layout) EtcdData() string { return filepath.Join(l.Dir, "etcd") }

// Node belongs to the real node.
func (l Layout) Node() string { return filepath.Join(l.Dir, "node") }

// Make creates the folders.
func (l Layout) Make() error {
	for _, dir := range []string{l.Dir, l.PKI(), l.Logs(), l.EtcdData(), filepath.Join(l.Dir, "kubeconfigs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making the cluster's folder: %w", err)
		}
	}
	return nil
}

// Remove deletes the folder. keepLogs leaves logs and the audit log behind.
func (l Layout) Remove(keepLogs bool) error {
	entries, err := os.ReadDir(l.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the cluster's folder: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(l.Dir, entry.Name())
		if keepLogs && (path == l.Logs() || path == l.AuditLog()) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing the cluster's folder: %w", err)
		}
	}
	if keepLogs {
		return nil
	}
	if err := os.Remove(l.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the cluster's folder: %w", err)
	}
	return nil
}
