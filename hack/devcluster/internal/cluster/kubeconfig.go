package cluster

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"os"
)

// WriteKubeconfig signs a client certificate for an identity and writes a kubeconfig that carries
// it, so the file can be copied anywhere.
func (c *Cluster) WriteKubeconfig(file, certName string, id Identity) error {
	if err := c.PKI.Sign(certName, id); err != nil {
		return err
	}
	var contents [3][]byte
	for i, path := range []string{c.PKI.CA(), c.PKI.Cert(certName), c.PKI.Key(certName)} {
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading what goes into the kubeconfig of %s: %w", id.CommonName, err)
		}
		contents[i] = content
	}
	name := "devcluster-" + c.Name
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Server(), CertificateAuthorityData: contents[0]}
	config.AuthInfos[id.CommonName] = &clientcmdapi.AuthInfo{ClientCertificateData: contents[1], ClientKeyData: contents[2]}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: id.CommonName}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", id.CommonName, err)
	}
	return nil
}
