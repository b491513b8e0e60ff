package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of certificates: a development cluster does not live long.
const validity = 365 * 24 * time.Hour

// PKI is the two authorities of a cluster and the certificates that they signed, as PEM files in
// one folder: NAME.crt and NAME.key.
type PKI struct {
	dir        string
	ca         authority // signs what serves and what logs in
	frontProxy authority // signs only the API server as a proxy in front of aggregated APIs
}

type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// Identity is what a certificate says about its holder.
type Identity struct {
	// CommonName is the user name of a client.
	CommonName string
	// Organizations are the groups of a client.
	Organizations []string
	// Hosts are the names and addresses of a server; a certificate without any can't serve.
	Hosts []string
}

// NewPKI makes the authorities and the key that signs ServiceAccount tokens in dir.
func NewPKI(dir string) (*PKI, error) {
	p := &PKI{dir: dir}
	var err error
	if p.ca, err = p.newAuthority("ca", "devcluster"); err != nil {
		return nil, err
	}
	if p.frontProxy, err = p.newAuthority("front-proxy-ca", "devcluster-front-proxy"); err != nil {
		return nil, err
	}
	if err := p.newServiceAccountKey(); err != nil {
		return nil, err
	}
	return p, nil
}

// OpenPKI reads the authorities that NewPKI made.
func OpenPKI(dir string) (*PKI, error) {
	p := &PKI{dir: dir}
	var err error
	if p.ca, err = p.readAuthority("ca"); err != nil {
		return nil, err
	}
	if p.frontProxy, err = p.readAuthority("front-proxy-ca"); err != nil {
		return nil, err
	}
	return p, nil
}

// Cert is the path of a certificate.
func (p *PKI) Cert(name string) string { return filepath.Join(p.dir, name+".crt") }

// Key is the path of a private key.
func (p *PKI) Key(name string) string { return filepath.Join(p.dir, name+".key") }

// CA is the path of the certificate that signs everything of the cluster.
func (p *PKI) CA() string { return p.Cert("ca") }

// Sign makes NAME.crt and NAME.key for an identity, signed by the cluster's authority.
func (p *PKI) Sign(name string, id Identity) error { return p.sign(p.ca, name, id) }

func (p *PKI) sign(by authority, name string, id Identity) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key of %s: %w", name, err)
	}
	template, err := newTemplate(id)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(id.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		return fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	return p.write(name, der, key)
}

func (p *PKI) newAuthority(name, commonName string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template, err := newTemplate(Identity{CommonName: commonName})
	if err != nil {
		return authority{}, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("signing %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, fmt.Errorf("reading back %s: %w", name, err)
	}
	return authority{cert: cert, key: key}, p.write(name, der, key)
}

func newTemplate(id Identity) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.CommonName, Organization: id.Organizations},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validity),
	}
	for _, host := range id.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template, nil
}

// newServiceAccountKey makes an RSA key: its tokens (RS256) are what every verifier understands.
func (p *PKI) newServiceAccountKey() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("making the ServiceAccount key: %w", err)
	}
	return p.writeKey("service-account", key)
}

func (p *PKI) write(name string, der []byte, key crypto.Signer) error {
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(p.Cert(name), block, 0o600); err != nil {
		return fmt.Errorf("writing the certificate of %s: %w", name, err)
	}
	return p.writeKey(name, key)
}

func (p *PKI) writeKey(name string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the key of %s: %w", name, err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(p.Key(name), block, 0o600); err != nil {
		return fmt.Errorf("writing the key of %s: %w", name, err)
	}
	return nil
}

func (p *PKI) readAuthority(name string) (authority, error) {
	certDER, err := readPEM(p.Cert(name))
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return authority{}, fmt.Errorf("reading %s: %w", p.Cert(name), err)
	}
	keyDER, err := readPEM(p.Key(name))
	if err != nil {
		return authority{}, err
	}
	key, err := x509.ParsePKCS8PrivateKey(keyDER)
	if err != nil {
		return authority{}, fmt.Errorf("reading %s: %w", p.Key(name), err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return authority{}, fmt.Errorf("the key in %s can't sign", p.Key(name))
	}
	return authority{cert: cert, key: signer}, nil
}

func readPEM(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's certificates: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block", file)
	}
	return block.Bytes, nil
}
