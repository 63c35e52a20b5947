package env

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// certLife is long enough for any test or demonstration and no longer.
const certLife = 24 * time.Hour

// authority is a cluster's certificate authority, made anew for each cluster.
type authority struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	certPEM []byte
	keyPEM  []byte
}

// keyPair is a certificate with its key, as PEM.
type keyPair struct{ cert, key []byte }

func newAuthority(name string) (*authority, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	template := certTemplate(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	return &authority{cert: cert, key: key, certPEM: pemBlock("CERTIFICATE", der), keyPEM: keyPEM}, nil
}

// client issues a certificate by which Kubernetes knows a user and groups.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	template := certTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// server issues a certificate for a server on the loopback interface.
func (a *authority) server(names ...string) (keyPair, error) {
	template := certTemplate(pkix.Name{CommonName: names[0]})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = names
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return keyPair{}, fmt.Errorf("issue a certificate to %s: %w", template.Subject, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("issue a certificate to %s: %w", template.Subject, err)
	}
	return keyPair{cert: pemBlock("CERTIFICATE", der), key: keyPEM}, nil
}

// certTemplate fills what all certificates share. They are valid from an hour
// ago, so that a clock corrected during a run does no harm.
func certTemplate(subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // the system has no randomness left to give
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certLife),
	}
}

// newKey makes a P-256 key: made in microseconds, where RSA takes a tenth of a
// second each.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pemBlock("EC PRIVATE KEY", der), nil
}

func publicPEM(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	return pemBlock("PUBLIC KEY", der), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeFiles writes files only their owner may read.
func writeFiles(files map[string][]byte) error {
	for path, data := range files {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Certificate is a server's certificate with its key and its authority, as PEM.
type Certificate struct{ CA, Cert, Key []byte }

// NewCertificate makes an authority and has it issue a certificate for a server
// of these names on the loopback interface.
func NewCertificate(names ...string) (*Certificate, error) {
	a, err := newAuthority(names[0] + "-ca")
	if err != nil {
		return nil, err
	}
	pair, err := a.server(names...)
	if err != nil {
		return nil, err
	}
	return &Certificate{CA: a.certPEM, Cert: pair.cert, Key: pair.key}, nil
}
