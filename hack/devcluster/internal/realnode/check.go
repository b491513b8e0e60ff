package realnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tools are the programs of the host that a node is made of, with the Debian package of each.
var tools = []struct{ program, pkg string }{
	{"containerd", "containerd"},
	{"containerd-shim-runc-v2", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"iptables-restore", "iptables"},
	{"ip", "iproute2"},
	{"nsenter", "util-linux"},
	{"unshare", "util-linux"},
	{"mount", "mount"},
}

// cniFolders are where distributions keep the network plug-ins.
var cniFolders = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

const cniPackage = "containernetworking-plugins"

// check tells, in a sentence for a person, why this machine can't run a real node; nil if it can. The
// sentence follows "no real node here:".
func check() error {
	if os.Geteuid() != 0 {
		return errors.New("it needs root: run the command as root")
	}
	var missing, packages []string
	lack := func(what, pkg string) {
		missing = append(missing, what)
		if !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool.program); err != nil {
			lack(tool.program, tool.pkg)
		}
	}
	if cniFolder() == "" {
		lack("the CNI plug-ins", cniPackage)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s not found on this machine: run `apt-get update && apt-get install --yes --no-install-recommends %s`",
			strings.Join(missing, ", "), strings.Join(packages, " "))
	}
	if err := exec.Command("unshare", "--net", "--mount", "true").Run(); err != nil {
		return fmt.Errorf("root may not make namespaces here (%w): in a container, run that with --privileged", err)
	}
	return nil
}

// cniFolder is the folder that has the plug-ins which the node's pods are connected with.
func cniFolder() string {
	for _, folder := range cniFolders {
		complete := true
		for _, plugin := range []string{"ptp", "host-local", "portmap", "loopback"} {
			if _, err := os.Stat(filepath.Join(folder, plugin)); err != nil {
				complete = false
			}
		}
		if complete {
			return folder
		}
	}
	return ""
}
