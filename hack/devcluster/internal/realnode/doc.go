// Package realnode runs a real Kubernetes node, containers and all, on this machine without letting
// anything out of it. It needs root and Linux.
//
// A cluster with a real node lives in two namespaces of the kernel:
//
//   - a network namespace: the control plane, the kubelet, the pods and their Services are in it. One
//     virtual cable (a veth pair) joins it to the host, which so reaches the API server, the pods
//     and the Services, and which the pods can reach. There is no default route on the inside and
//     no NAT on the outside, so no packet goes further. Several clusters run side by side, each on
//     a network of its own (network.go).
//   - a mount namespace, for containerd and the kubelet: /run, /var/log and /var/lib are private in
//     it, so two nodes never meet in a folder whose name is fixed in a program, and every mount that
//     they make is gone with them (mounts.sh).
//
// Both are held by files in the cluster's folder, so any process that knows the folder can enter
// them, and can take the node down even when the supervisor that started it was killed (clean.go).
//
// On the node run, as processes of the cluster: containerd, kubelet, kube-proxy, CoreDNS as the
// cluster's DNS, and a provisioner that gives out folders as volumes (components/volumes).
package realnode
