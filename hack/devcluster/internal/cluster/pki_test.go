package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"testing"
)

func TestPKI(t *testing.T) {
	dir := t.TempDir()
	made, err := NewPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Sign("server", Identity{CommonName: "kube-apiserver", Hosts: []string{"kubernetes.default.svc", "127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	opened, err := OpenPKI(dir) // signs as if it had made the authority
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Sign("client", Identity{CommonName: "me", Organizations: []string{"system:masters"}}); err != nil {
		t.Fatal(err)
	}
	server, client := load(t, made, "server"), load(t, made, "client")
	roots := authorities(t, made.CA())
	verify := func(cert *x509.Certificate, host string, roots *x509.CertPool, usage x509.ExtKeyUsage) error {
		_, err := cert.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	for _, host := range []string{"kubernetes.default.svc", "127.0.0.1"} {
		if err := verify(server, host, roots, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("the server's certificate does not hold for %s: %v", host, err)
		}
	}
	if verify(server, "elsewhere", roots, x509.ExtKeyUsageServerAuth) == nil {
		t.Error("the server's certificate holds for a name it was not given")
	}
	if err := verify(client, "", roots, x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("the client's certificate can't log in: %v", err)
	}
	if verify(client, "", roots, x509.ExtKeyUsageServerAuth) == nil {
		t.Error("the client's certificate can serve")
	}
	if verify(client, "", authorities(t, made.Cert("front-proxy-ca")), x509.ExtKeyUsageClientAuth) == nil {
		t.Error("the front proxy's authority vouches for an ordinary client")
	}
	if client.Subject.CommonName != "me" || !slices.Equal(client.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("the client is %v", client.Subject)
	}
	info, err := os.Stat(made.Key("client"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("a private key has mode %v", info.Mode())
	}
}

func load(t *testing.T, p *PKI, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(p.Cert(name), p.Key(name))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func authorities(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		t.Fatalf("no certificate in %s", file)
	}
	return pool
}
