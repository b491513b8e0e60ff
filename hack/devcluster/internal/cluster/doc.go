// Package cluster knows one local Kubernetes: its folder, certificates, kubeconfigs, ports and how
// its control plane is started.
//
// Everything of a cluster lies in one folder of its own (Layout), so several clusters run side by
// side and removing the folder removes the cluster:
//
//	cluster.json        what `status` prints (Info)
//	supervisor.lock     held by the supervisor for as long as it lives
//	kubeconfig          the administrator's
//	pki/                authorities, certificates and keys (PKI)
//	kubeconfigs/        those of the components
//	logs/               one file a process
//	audit.log           with --audit
//	etcd/               the data
//	node/               belongs to the real node: containerd, kubelet, volumes, images
//
// The control plane listens on a loopback address, or, when a real node prepared a network, inside
// that node's network namespace on the node's address (Network). The order on the way up is: the
// node's Prepare (makes the Network), StartControlPlane, the node's Start; and back on the way
// down: the node's Stop, the Group's Stop, removal of the folder. Package supervisor does that.
package cluster
