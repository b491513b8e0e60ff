package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const usableEvery = 50 * time.Millisecond

// ClientConfig signs a client certificate for an identity and returns the configuration of a client
// that uses it, from inside the cluster's network.
func (c *Cluster) ClientConfig(certName string, id Identity) (*rest.Config, error) {
	file := c.Layout.ComponentKubeconfig(certName)
	if err := c.WriteKubeconfig(file, certName, id); err != nil {
		return nil, err
	}
	return c.clientConfig(file)
}

func (c *Cluster) clientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	config.Dial = c.DialContext
	return config, nil
}

// WaitUsable returns when pods can be created and, with nodes, run.
func (c *Cluster) WaitUsable(ctx context.Context, nodes bool) error {
	config, err := c.clientConfig(c.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the administrator's client: %w", err)
	}
	for {
		err := usable(ctx, client, nodes)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster did not become usable (%w): %w", ctx.Err(), err)
		case <-time.After(usableEvery):
		}
	}
}

func usable(ctx context.Context, client kubernetes.Interface, nodes bool) error {
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("waiting for the default ServiceAccount: %w", err)
	}
	if !nodes {
		return nil
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	if len(list.Items) == 0 {
		return errors.New("there is no node")
	}
	for i := range list.Items {
		if node := &list.Items[i]; !nodeUsable(node) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
	}
	return nil
}

// nodeUsable wants the taints gone as well, without which the scheduler passes a node by.
func nodeUsable(node *corev1.Node) bool {
	if len(node.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Info is what others need to know of the cluster.
func (c *Cluster) Info(node string, supervisor int, ready bool) Info {
	info := Info{
		Name: c.Name, Kubeconfig: c.Layout.Kubeconfig(), Dir: c.Layout.Dir, Server: c.Server(), Node: node,
		BinDir: c.BinDir, SupervisorPID: supervisor, Ready: ready, Network: c.Network, Ports: c.Ports,
	}
	if c.Audit {
		info.AuditLog = c.Layout.AuditLog()
	}
	return info
}
