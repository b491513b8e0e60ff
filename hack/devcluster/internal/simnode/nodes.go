package simnode

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	leaseNamespace = "kube-node-lease"
	leaseSeconds   = 40
	renewEvery     = 10 * time.Second
)

func nodeName(i int) string { return "simulated-" + strconv.Itoa(i+1) }

// startNodes makes the Node objects and keeps their leases, which is all that the node lifecycle
// controller wants of a node that stays ready.
func (k *Kubelet) startNodes(ctx context.Context) error {
	for name := range k.nodes {
		if err := k.createNode(ctx, name); err != nil {
			return err
		}
		if err := k.createLease(ctx, name); err != nil {
			return err
		}
	}
	k.running.Go(func() {
		ticker := time.NewTicker(renewEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			for name := range k.nodes {
				if err := k.renewLease(ctx, name); err != nil && ctx.Err() == nil {
					log.Printf("simulated node: %v", err)
				}
			}
		}
	})
	return nil
}

func (k *Kubelet) createNode(ctx context.Context, name string) error {
	nodes := k.client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			"node.kubernetes.io/simulated": "true",
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making node %s: %w", name, err)
	}
	now := metav1.Now()
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("10000"),
		corev1.ResourceMemory:           resource.MustParse("100Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Ti"),
		corev1.ResourcePods:             resource.MustParse("10000"),
	}
	node.Status = corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: k.hostIP}, {Type: corev1.NodeHostName, Address: name}},
		NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64", OSImage: "simulated"},
		Conditions: []corev1.NodeCondition{
			nodeCondition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", now),
			nodeCondition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", now),
			nodeCondition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", now),
			nodeCondition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", now),
		},
	}
	// The control plane taints and labels a node as soon as it is there; nobody else writes its status.
	node.ResourceVersion = ""
	if _, err := nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("making node %s ready: %w", name, err)
	}
	return nil
}

func nodeCondition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string, now metav1.Time) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
}

func (k *Kubelet) createLease(ctx context.Context, name string) error {
	_, err := k.client.CoordinationV1().Leases(leaseNamespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: leaseNamespace},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &name,
			LeaseDurationSeconds: ptr.To(int32(leaseSeconds)),
			RenewTime:            ptr.To(metav1.NowMicro()),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the lease of node %s: %w", name, err)
	}
	return nil
}

func (k *Kubelet) renewLease(ctx context.Context, name string) error {
	leases := k.client.CoordinationV1().Leases(leaseNamespace)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the lease of node %s: %w", name, err)
	}
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("renewing the lease of node %s: %w", name, err)
	}
	return nil
}
