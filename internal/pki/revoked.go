package pki

import (
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
)

// Revoke adds to revoked.crl every certificate that was issued to a name, or
// the one with that serial number, and returns how many are new in it. The
// file then belongs into the fleet repo, as pki/revoked.crl.
func (a *Authority) Revoke(nameOrSerial string) (int, error) {
	found, err := a.issued(nameOrSerial)
	if err != nil {
		return 0, fmt.Errorf("revoke %s: %w", nameOrSerial, err)
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("revoke %s: %s has issued no certificate of that name or serial number", nameOrSerial, a.dir)
	}
	old, err := a.readRevoked()
	if err != nil {
		return 0, fmt.Errorf("revoke %s: %w", nameOrSerial, err)
	}
	entries, known := old.RevokedCertificateEntries, map[string]bool{}
	for _, e := range entries {
		known[e.SerialNumber.Text(16)] = true
	}
	added := 0
	for _, cert := range found {
		if known[cert.SerialNumber.Text(16)] {
			continue
		}
		entries = append(entries, x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: a.now().UTC()})
		added++
	}
	if added == 0 {
		return 0, nil
	}
	if err := a.writeRevoked(entries, new(big.Int).Add(old.Number, big.NewInt(1))); err != nil {
		return 0, fmt.Errorf("revoke %s: %w", nameOrSerial, err)
	}
	return added, nil
}

func (a *Authority) issued(nameOrSerial string) ([]*x509.Certificate, error) {
	paths, err := filepath.Glob(filepath.Join(a.dir, issuedDir, "*.crt"))
	if err != nil {
		return nil, err
	}
	var found []*x509.Certificate
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		cert, err := parseCert(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if cert.Subject.CommonName == nameOrSerial || cert.SerialNumber.Text(16) == strings.ToLower(nameOrSerial) {
			found = append(found, cert)
		}
	}
	return found, nil
}

// CRL is the authority's revocation list as PEM.
func (a *Authority) CRL() ([]byte, error) { return os.ReadFile(filepath.Join(a.dir, RevokedFile)) }

// WriteCRL puts a copy of the list at path, whose directory is created.
func (a *Authority) WriteCRL(path string) error {
	data, err := a.CRL()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = statefile.ReplaceBy(path, 0o644, data)
	}
	if err != nil {
		return fmt.Errorf("write the revocation list: %w", err)
	}
	return nil
}

func (a *Authority) readRevoked() (*x509.RevocationList, error) {
	data, err := a.CRL()
	if err != nil {
		return nil, err
	}
	list, _, err := parseCRL(data)
	if err != nil {
		return nil, err
	}
	return list, list.CheckSignatureFrom(a.cert)
}

// writeRevoked replaces the list by a rename. It is valid as long as the
// authority: it comes with the repo, and age alone says nothing there.
func (a *Authority) writeRevoked(entries []x509.RevocationListEntry, number *big.Int) error {
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number:                    number,
		ThisUpdate:                a.now().UTC(),
		NextUpdate:                a.cert.NotAfter,
		RevokedCertificateEntries: entries,
	}, a.cert, a.key)
	if err != nil {
		return fmt.Errorf("write %s: %w", RevokedFile, err)
	}
	return statefile.ReplaceBy(filepath.Join(a.dir, RevokedFile), 0o644, encode("X509 CRL", der))
}
