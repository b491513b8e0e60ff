// Command demo shows the operator at work: it starts a local Kubernetes, installs the operator,
// runs one session over a real repository and shows its phases as they happen, then what came of
// it, then stops and restarts another. As root it uses a real node with real containers; otherwise nodes are simulated, and it says
// so. DEMO_ONCE=1 ends it by itself; DEMO_NODE=simulated (or real) chooses the node;
// DEMO_KUBECONFIG names a cluster to use instead; DEMO_PROMETHEUS=1 has Prometheus watch it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/monitoring"
)

const (
	project     = "demo-project"
	sessionName = "first-steps"
	repository  = "sample"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	log.SetLogger(logr.Discard())
	err := run(ctx)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	began := time.Now()
	headline("1. A local Kubernetes")
	say("The first time its programs are built from source, which takes some minutes; then it starts in seconds.")
	cluster, err := rig.Up(ctx, rig.Options{
		Name: fmt.Sprintf("demo-%d", os.Getpid()), Node: os.Getenv("DEMO_NODE"), Kubeconfig: os.Getenv("DEMO_KUBECONFIG"),
		DieWithUs: true, Progress: os.Stdout,
	})
	if err != nil {
		return err
	}
	defer func() {
		// The context may have ended; the cluster must go all the same.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, cluster.Down(ending))
	}()
	d := &demo{cluster: cluster}
	if err := d.install(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.watch(ctx); err != nil {
		return err
	}
	if err := d.session(ctx); err != nil {
		return err
	}
	if err := d.results(ctx); err != nil {
		return err
	}
	if err := d.control(ctx); err != nil {
		return err
	}
	if err := d.figures(ctx); err != nil {
		return err
	}
	fmt.Printf("\nAll of it took %s.\n", time.Since(began).Round(time.Second))
	if os.Getenv("DEMO_ONCE") == "1" {
		return nil
	}
	d.goOn()
	<-ctx.Done()
	return nil
}

// demo is what the demo has set up.
type demo struct {
	cluster *rig.Cluster
	process *rig.Process
	// Only where Prometheus was asked for.
	stack      *monitoring.Stack
	prometheus *monitoring.Prometheus
	files      string
}

// install installs the operator: from its image on a real node, else as a program beside the
// cluster, in both cases as its own ServiceAccount.
func (d *demo) install(ctx context.Context) error {
	headline("2. The operator")
	env := map[string]string{"AMBIENT_CODE_RUNNER_IMAGE": rig.RunnerImage.Name, "IMAGE_PULL_POLICY": "IfNotPresent"}
	if d.cluster.Node != rig.NodeReal {
		if d.cluster.Node == rig.NodeSimulated {
			say("The node is SIMULATED: phases and objects are real, containers are not. Run as root with Debian's containerd for real ones.")
		} else {
			env["AMBIENT_CODE_RUNNER_IMAGE"] = cmp.Or(os.Getenv("DEMO_RUNNER_IMAGE"), rig.RunnerImage.Name)
			say("The operator runs on this machine, its runners on your cluster, from the image " + env["AMBIENT_CODE_RUNNER_IMAGE"] + " (DEMO_RUNNER_IMAGE names another).")
		}
		if err := d.cluster.Install(ctx, env); err != nil {
			return err
		}
		log := filepath.Join(os.TempDir(), fmt.Sprintf("agentic-operator-demo-%d.log", os.Getpid()))
		var err error
		d.process, err = d.cluster.RunOperator(ctx, log, env)
		return err
	}
	say("Building the images of the operator, a reference runner and a git server, and loading them onto the node.")
	if err := d.cluster.Load(ctx, rig.OperatorImage, rig.RunnerImage, rig.GitServerImage); err != nil {
		return err
	}
	if err := d.cluster.Install(ctx, env); err != nil {
		return err
	}
	if err := d.cluster.Ready(ctx); err != nil {
		return err
	}
	say("The operator runs in namespace " + rig.OperatorNamespace + ".")
	return nil
}

func (d *demo) stop() error {
	if err := d.unwatch(); err != nil {
		return err
	}
	if d.process == nil {
		return nil
	}
	if err := d.process.Stop(); err != nil {
		return err
	}
	if err := os.Remove(d.process.Log); err != nil {
		return fmt.Errorf("removing the operator's log: %w", err)
	}
	return nil
}

func headline(text string) { fmt.Printf("\n\033[1m%s\033[0m\n", text) }

func say(text string) { fmt.Println(text) }
