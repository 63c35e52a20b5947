package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Lifetimes of certificates. A leaf is renewed by issuing it again: the
// programs read their files again at every connection.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	// backdate lets a certificate be used by a machine whose clock is behind.
	backdate = 5 * time.Minute
)

// Names of files in an authority's directory and in what Bundle.WriteDir writes.
const (
	CAFile      = "ca.crt"
	caKeyFile   = "ca.key"
	RevokedFile = "revoked.crl"
	issuedDir   = "issued"
	CertFile    = "tls.crt"
	KeyFile     = "tls.key"
)

// Authority is the fleet's certificate authority, on disk.
type Authority struct {
	dir   string
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	caPEM []byte
	now   func() time.Time
}

// InitCA makes an authority in dir, which is created. An authority that is
// already there is an error: overwriting its key would lock every agent out.
func InitCA(dir, name string, now func() time.Time) (*Authority, error) {
	keyPath := filepath.Join(dir, caKeyFile)
	for _, path := range []string{keyPath, filepath.Join(dir, CAFile)} {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("init certificate authority: %s exists; issue from it, or choose another directory", path)
		}
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("init certificate authority: %w", err)
	}
	template, err := newTemplate(name, now(), authorityLife)
	if err != nil {
		return nil, fmt.Errorf("init certificate authority: %w", err)
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("init certificate authority: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, issuedDir), 0o700); err != nil {
		return nil, fmt.Errorf("init certificate authority: %w", err)
	}
	if err := createFile(keyPath, keyPEM, 0o600); err != nil {
		return nil, fmt.Errorf("init certificate authority: %w", err)
	}
	if err := createFile(filepath.Join(dir, CAFile), encode("CERTIFICATE", der), 0o644); err != nil {
		return nil, fmt.Errorf("init certificate authority: %w", err)
	}
	a, err := OpenCA(dir, now)
	if err != nil {
		return nil, err
	}
	return a, a.writeRevoked(nil, big.NewInt(1))
}

// OpenCA opens the authority that InitCA made in dir.
func OpenCA(dir string, now func() time.Time) (*Authority, error) {
	caPEM, err := os.ReadFile(filepath.Join(dir, CAFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open certificate authority: there is none in %s; make one with `fleetbroker pki init %s`", dir, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open certificate authority: %w", err)
	}
	cert, err := parseCert(caPEM)
	if err != nil {
		return nil, fmt.Errorf("open certificate authority: %s: %w", filepath.Join(dir, CAFile), err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, caKeyFile))
	if err != nil {
		return nil, fmt.Errorf("open certificate authority: %w", err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("open certificate authority: %s: %w", filepath.Join(dir, caKeyFile), err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("open certificate authority: %s and %s in %s do not belong together", CAFile, caKeyFile, dir)
	}
	return &Authority{dir: dir, cert: cert, key: key, caPEM: caPEM, now: now}, nil
}

// CA is the authority's certificate as PEM.
func (a *Authority) CA() []byte { return a.caPEM }

// Request is what Issue makes a certificate of.
type Request struct {
	// Name is the common name: for an agent, its cluster's id.
	Name string
	// Role is Agent when empty.
	Role Role
	// Hosts are DNS names and IP addresses under which the holder serves; none makes a client's certificate.
	Hosts []string
	// Fleet is the id of the fleet that a server's certificate is for, "" for any.
	Fleet string
}

// Bundle is an issued certificate with its key and authority, as PEM.
type Bundle struct {
	Cert, Key, CA []byte
	// Serial in hexadecimal, as `pki revoke` takes it.
	Serial string
	// NotAfter is when it must have been renewed.
	NotAfter time.Time
}

// Issue makes a certificate. The authority keeps a copy without the key, so
// that it can be revoked by name.
func (a *Authority) Issue(r Request) (*Bundle, error) {
	if r.Role == "" {
		r.Role = Agent
	}
	if !clusterID.MatchString(r.Name) {
		return nil, fmt.Errorf("issue a certificate to %q: common name is %w", r.Name, ErrName)
	}
	if !r.Role.valid() {
		return nil, fmt.Errorf("issue a certificate to %s: unknown role %q; there are %s, %s, %s and %s", r.Name, r.Role, Agent, Operator, Reader, Server)
	}
	if r.Fleet != "" && (r.Role != Server || !fleetID.MatchString(r.Fleet)) {
		return nil, fmt.Errorf("issue a certificate to %s: fleet %q: only a server's certificate names a fleet, by its id of ten digits and letters a to v", r.Name, r.Fleet)
	}
	if r.Role == Server && len(r.Hosts) == 0 {
		return nil, fmt.Errorf("issue a certificate to %s: a server's names its hosts; say which", r.Name)
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("issue a certificate to %s: %w", r.Name, err)
	}
	template, err := newTemplate(r.Name, a.now(), leafLife)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate to %s: %w", r.Name, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.URIs = append(r.Role.uri(), fleetURI(r.Fleet)...)
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(r.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate to %s: %w", r.Name, err)
	}
	b := &Bundle{Cert: encode("CERTIFICATE", der), Key: keyPEM, CA: a.caPEM, Serial: template.SerialNumber.Text(16), NotAfter: template.NotAfter}
	if err := createFile(filepath.Join(a.dir, issuedDir, b.Serial+".crt"), b.Cert, 0o644); err != nil {
		return nil, fmt.Errorf("issue a certificate to %s: %w", r.Name, err)
	}
	return b, nil
}

// WriteDir writes tls.crt, tls.key (0600) and ca.crt into dir, which is
// created: the form of --broker-cert-path. Files that exist are an error.
func (b *Bundle) WriteDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{{KeyFile, b.Key, 0o600}, {CertFile, b.Cert, 0o644}, {CAFile, b.CA, 0o644}} {
		if err := createFile(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			return fmt.Errorf("write certificate: %w", err)
		}
	}
	return nil
}

// newTemplate fills what all certificates share.
func newTemplate(name string, now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(life),
	}, nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, encode("PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func parseCert(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("holds no PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("holds no PEM private key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("holds a key that is not ECDSA")
	}
	return ec, nil
}

// createFile writes a file that must not exist yet.
func createFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
