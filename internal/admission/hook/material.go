package hook

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// How long certificates are valid, and how long before their end the next one is made.
const (
	authorityLife  = 10 * 365 * 24 * time.Hour
	authorityRenew = 2 * 365 * 24 * time.Hour
	leafLife       = 90 * 24 * time.Hour
	leafRenew      = 30 * 24 * time.Hour
	// skew is how far the API server's clock may be behind.
	skew = time.Hour
)

// Keys of the Secret.
const (
	keyAuthorities  = "ca.crt" // the newest first
	keyAuthorityKey = "ca.key" // of the newest
	keyLeaf         = "tls.crt"
	keyLeafKey      = "tls.key"
)

// material is what the Secret holds, read.
type material struct {
	authorities []*x509.Certificate // the newest first
	signer      crypto.Signer       // of the newest
	leaf        *tls.Certificate    // with Leaf; nil: there is none
}

// readMaterial reads a Secret's data. What cannot be used is left out, as if it had not
// been there.
func readMaterial(data map[string][]byte) material {
	var m material
	pair, err := tls.X509KeyPair(data[keyAuthorities], data[keyAuthorityKey])
	if err != nil {
		return m
	}
	for _, der := range pair.Certificate {
		if c, err := x509.ParseCertificate(der); err == nil && c.IsCA {
			m.authorities = append(m.authorities, c)
		}
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if len(m.authorities) == 0 || !ok || !bytes.Equal(m.authorities[0].Raw, pair.Certificate[0]) {
		return material{}
	}
	m.signer = signer
	if leaf, err := tls.X509KeyPair(data[keyLeaf], data[keyLeafKey]); err == nil && leaf.Leaf != nil {
		m.leaf = &leaf
	}
	return m
}

// data is the Secret's content.
func (m material) data() (map[string][]byte, error) {
	key, err := keyPEM(m.signer)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{keyAuthorities: m.bundle(), keyAuthorityKey: key}
	if m.leaf == nil {
		return out, nil
	}
	signer, ok := m.leaf.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the certificate's key cannot sign")
	}
	if out[keyLeafKey], err = keyPEM(signer); err != nil {
		return nil, err
	}
	out[keyLeaf] = certPEM(m.leaf.Leaf)
	return out, nil
}

// bundle is all authorities as PEM.
func (m material) bundle() []byte {
	var out []byte
	for _, c := range m.authorities {
		out = append(out, certPEM(c)...)
	}
	return out
}

// renew is what the Secret should hold, and whether that is other than before: at most
// one step of a rotation. trusted is the bundle that API servers go by now.
func (m material) renew(now time.Time, hosts []string, trusted []byte) (material, bool, error) {
	kept := slices.DeleteFunc(slices.Clone(m.authorities), func(c *x509.Certificate) bool { return !now.Before(c.NotAfter) })
	if len(kept) == 0 || kept[0] != m.authorities[0] || kept[0].NotAfter.Sub(now) < authorityRenew {
		authority, signer, err := newAuthority(now)
		if err != nil {
			return m, false, err
		}
		next := material{authorities: append([]*x509.Certificate{authority}, kept...), signer: signer, leaf: m.leaf}
		if next.usable(now, hosts) {
			return next, true, nil // its certificate waits until the authority is trusted
		}
		next.leaf, err = next.issue(now, hosts)
		return next, true, err
	}
	if m.usable(now, hosts) {
		due := m.leaf.Leaf.CheckSignatureFrom(m.authorities[0]) != nil || m.leaf.Leaf.NotAfter.Sub(now) < leafRenew
		if !due || !bytes.Contains(trusted, certPEM(m.authorities[0])) {
			return m, false, nil
		}
	}
	leaf, err := m.issue(now, hosts)
	if err != nil {
		return m, false, err
	}
	return material{authorities: m.authorities, signer: m.signer, leaf: leaf}, true, nil
}

// usable reports whether the certificate can be shown: of a known authority, now, for
// exactly these hosts.
func (m material) usable(now time.Time, hosts []string) bool {
	if m.leaf == nil || !slices.Equal(hostsOf(m.leaf.Leaf), slices.Sorted(slices.Values(hosts))) {
		return false
	}
	return trusts(m.bundle(), m.leaf, now)
}

// trusts reports whether a certificate is of one of a bundle's authorities, at a time.
func trusts(bundle []byte, leaf *tls.Certificate, now time.Time) bool {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return false
	}
	_, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err == nil
}

func hostsOf(c *x509.Certificate) []string {
	out := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		out = append(out, ip.String())
	}
	slices.Sort(out)
	return out
}

func newAuthority(now time.Time) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make an authority for the webhook: %w", err)
	}
	template, err := certificate("fleet-agent webhook authority", now, authorityLife)
	if err != nil {
		return nil, nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	c, err := signed(template, template, key.Public(), key)
	return c, key, err
}

func (m material) issue(now time.Time, hosts []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the webhook: %w", err)
	}
	template, err := certificate("fleet-agent webhook", now, leafLife)
	if err != nil {
		return nil, err
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	c, err := signed(template, m.authorities[0], key.Public(), m.signer)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key, Leaf: c}, nil
}

func certificate(name string, now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.Add(life)}, nil
}

func signed(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for the webhook: %w", err)
	}
	return x509.ParseCertificate(der)
}

func certPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write the webhook's key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
