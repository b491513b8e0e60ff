package cluster

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// auditPolicy records every request once, when it is answered, without bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

func (c *Cluster) auditPolicyFile() string { return filepath.Join(c.Layout.Dir, "audit-policy.yaml") }

func (c *Cluster) etcdArgs() []string {
	client := fmt.Sprintf("https://127.0.0.1:%d", c.Ports.Etcd)
	peer := fmt.Sprintf("https://127.0.0.1:%d", c.Ports.EtcdPeer)
	return []string{
		"--name=devcluster",
		"--data-dir=" + c.Layout.EtcdData(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=devcluster=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + c.PKI.CA(),
		"--cert-file=" + c.PKI.Cert("etcd"), "--key-file=" + c.PKI.Key("etcd"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + c.PKI.CA(),
		"--peer-cert-file=" + c.PKI.Cert("etcd"), "--peer-key-file=" + c.PKI.Key("etcd"),
		// The data does not outlive the cluster, so nothing is gained by waiting for the disk.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerArgs() []string {
	serviceAccountIssuer := "https://kubernetes.default.svc.cluster.local"
	args := []string{
		"--etcd-servers=https://127.0.0.1:" + strconv.Itoa(c.Ports.Etcd),
		"--etcd-cafile=" + c.PKI.CA(),
		"--etcd-certfile=" + c.PKI.Cert("kube-apiserver-etcd-client"),
		"--etcd-keyfile=" + c.PKI.Key("kube-apiserver-etcd-client"),
		"--bind-address=" + c.Network.Address,
		"--advertise-address=" + c.Network.Address,
		"--secure-port=" + strconv.Itoa(c.Ports.APIServer),
		"--tls-cert-file=" + c.PKI.Cert("kube-apiserver"),
		"--tls-private-key-file=" + c.PKI.Key("kube-apiserver"),
		"--client-ca-file=" + c.PKI.CA(),
		"--service-cluster-ip-range=" + c.Network.ServiceCIDR,
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=" + serviceAccountIssuer,
		"--api-audiences=" + serviceAccountIssuer,
		"--service-account-key-file=" + c.PKI.Key("service-account"),
		"--service-account-signing-key-file=" + c.PKI.Key("service-account"),
		// On top of those that are on by default; OpenShift has it on.
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--kubelet-client-certificate=" + c.PKI.Cert("kube-apiserver-kubelet-client"),
		"--kubelet-client-key=" + c.PKI.Key("kube-apiserver-kubelet-client"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + c.PKI.Cert("front-proxy-ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + c.PKI.Cert("front-proxy-client"),
		"--proxy-client-key-file=" + c.PKI.Key("front-proxy-client"),
		// One server with a fixed address: nobody else would renew the endpoint.
		"--endpoint-reconciler-type=" + c.endpointReconciler(),
		"--shutdown-delay-duration=0",
	}
	if c.Audit {
		args = append(args, "--audit-policy-file="+c.auditPolicyFile(), "--audit-log-path="+c.Layout.AuditLog(),
			"--audit-log-format=json", "--audit-log-mode=blocking", "--audit-log-maxsize=4096")
	}
	return args
}

// endpointReconciler writes the endpoints of Service kubernetes only where pods could use them; the
// server refuses to do so for a loopback address.
func (c *Cluster) endpointReconciler() string {
	if c.Network.NetNS == "" {
		return "none"
	}
	return "lease"
}

// controllerManagerArgs let the controllers work as fast as the API server answers: a burst of some
// hundred Jobs is to be limited by the server and not by a client's politeness.
func (c *Cluster) controllerManagerArgs() []string {
	kubeconfig := c.Layout.ComponentKubeconfig("kube-controller-manager")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.Ports.ControllerManager),
		"--tls-cert-file=" + c.PKI.Cert("kube-controller-manager-server"),
		"--tls-private-key-file=" + c.PKI.Key("kube-controller-manager-server"),
		"--client-ca-file=" + c.PKI.CA(),
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.PKI.Key("service-account"),
		"--root-ca-file=" + c.PKI.CA(),
		"--cluster-signing-cert-file=" + c.PKI.CA(),
		"--cluster-signing-key-file=" + c.PKI.Key("ca"),
		"--service-cluster-ip-range=" + c.Network.ServiceCIDR,
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--concurrent-job-syncs=50",
		"--concurrent-gc-syncs=50",
		"--concurrent-namespace-syncs=20",
		"--concurrent-resource-quota-syncs=20",
		"--concurrent-endpoint-syncs=20",
		"--concurrent-service-endpoint-syncs=20",
	}
}

func (c *Cluster) schedulerArgs() []string {
	kubeconfig := c.Layout.ComponentKubeconfig("kube-scheduler")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.Ports.Scheduler),
		"--tls-cert-file=" + c.PKI.Cert("kube-scheduler-server"),
		"--tls-private-key-file=" + c.PKI.Key("kube-scheduler-server"),
		"--client-ca-file=" + c.PKI.CA(),
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}
