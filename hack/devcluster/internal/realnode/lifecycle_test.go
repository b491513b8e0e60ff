package realnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/build"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

// programs is the folder of the built programs. The test does not build them, which takes minutes.
func programs(t *testing.T) string {
	t.Helper()
	if err := (Node{}).Check(); err != nil {
		t.Skip(err)
	}
	builder, err := build.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	components := append(cluster.ControlPlane(), Node{}.Components()...)
	missing, err := builder.Missing(components)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Skipf("%d programs of the cluster are not built: run `go run . build --node=real` in hack/devcluster", len(missing))
	}
	binDir, err := builder.Build(t.Context(), components, build.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	return binDir
}

// up does what the supervisor does.
func up(t *testing.T, binDir string) *cluster.Cluster {
	t.Helper()
	began := time.Now()
	layout := cluster.Layout{Dir: filepath.Join(t.TempDir(), "a cluster")}
	if err := layout.Make(); err != nil {
		t.Fatal(err)
	}
	ports, err := cluster.ChoosePorts(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster.Cluster{
		Name: "test", Layout: layout, BinDir: binDir, Ports: ports,
		Procs: proc.NewGroup(layout.Logs()), Report: func(step string) { t.Log(step) },
	}
	t.Cleanup(func() { // for a test that failed half-way
		ctx := context.WithoutCancel(t.Context())
		if err := c.Procs.Stop(ctx); err != nil {
			t.Error(err)
		}
		if err := (Node{}).Clean(ctx, c); err != nil {
			t.Error(err)
		}
	})
	if c.Network, err = (Node{}).Prepare(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := c.StartControlPlane(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := (Node{}).Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.WaitUsable(ctx, true); err != nil {
		t.Fatal(err)
	}
	t.Logf("the cluster was usable after %.1f s", time.Since(began).Seconds())
	return c
}

// down ends the cluster while containers run on it and looks for what is left.
func down(t *testing.T, c *cluster.Cluster) {
	used, err := readNetwork(c.Layout.Node())
	if err != nil {
		t.Fatal(err)
	}
	own := namespaces(t, c, used)
	if len(own) != 2 {
		t.Fatalf("the cluster is in the network namespaces %v, want its own and that of the pod", own)
	}
	if err := c.Procs.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 { // cleaning again is no error
		if err := (Node{}).Clean(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	for _, process := range processes(t) {
		if slices.Contains(own, process.namespace) && process.dir != fmt.Sprintf("/proc/%d", os.Getpid()) {
			t.Errorf("process %s is left", process.dir)
		}
	}
	if _, err := os.Stat("/sys/class/net/" + used.Link); !os.IsNotExist(err) {
		t.Errorf("the link %s is left (%v)", used.Link, err)
	}
	mounts, err := readMounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		if strings.HasPrefix(m.point, c.Layout.Dir) {
			t.Errorf("%s is still mounted", m.point)
		}
		if m.kind != "cgroup" && m.kind != "cgroup2" {
			continue
		}
		if _, err := os.Stat(filepath.Join(m.point, used.cgroup())); !os.IsNotExist(err) {
			t.Errorf("a cgroup is left in %s (%v)", m.point, err)
		}
	}
	if err := c.Layout.Remove(false); err != nil {
		t.Error(err)
	}
}

type process struct{ dir, namespace string }

// processes lists all on this machine with their network namespaces, such as net:[4026531840].
func processes(t *testing.T) []process {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []process
	for _, dir := range dirs {
		if namespace, err := os.Readlink(dir + "/ns/net"); err == nil { // a process that ended since has none
			found = append(found, process{dir, namespace})
		}
	}
	return found
}

// namespaces lists the network namespaces of the processes that the cluster's cgroup or node holds.
func namespaces(t *testing.T, c *cluster.Cluster, used network) []string {
	t.Helper()
	cgroups, _, err := cgroupDirs(used.cgroup())
	if err != nil {
		t.Fatal(err)
	}
	var dirs, found []string
	for _, state := range c.Procs.States() {
		dirs = append(dirs, fmt.Sprintf("/proc/%d", state.PID))
	}
	inCgroups, err := cgroupProcesses(cgroups)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range inCgroups {
		dirs = append(dirs, fmt.Sprintf("/proc/%d", pid))
	}
	for _, process := range processes(t) {
		if slices.Contains(dirs, process.dir) {
			found = append(found, process.namespace)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
