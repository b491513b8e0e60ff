// Volumes gives out folders of this machine as PersistentVolumes of the one real node. It makes one
// folder for each claim and removes it when the volume is deleted (see folders.go for how).
//
// A claim's size is written into its volume but nothing holds a pod to it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the `file` that says how to reach the cluster")
	provisioner := flag.String("provisioner", "", "the `name` that the StorageClass calls this program by")
	var f folders
	flag.StringVar(&f.root, "folder", "", "the `folder` below which those of the volumes are made")
	flag.StringVar(&f.node, "node", "", "the `name` of the node that has the folders")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *kubeconfig, *provisioner, f); err != nil {
		klog.ErrorS(err, "Giving out volumes failed")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

func serve(ctx context.Context, kubeconfig, provisioner string, f folders) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	controller.NewProvisionController(ctx, client, provisioner, f,
		controller.LeaderElection(false), // there is one of it
		controller.MetricsPort(0),        // nobody reads its metrics
	).Run(ctx)
	return nil
}
