package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Bounds of a revocation list that somebody hands us.
const (
	// MaxRevokedBytes is the largest pki/revoked.crl that is read.
	MaxRevokedBytes = 1 << 20
	// maxRevoked certificates in all lists of a file.
	maxRevoked = 20_000
	// aheadOfUs is how far the authority's clock may be ahead of ours.
	aheadOfUs = 10 * time.Minute
)

// Revoked answers whether a certificate was revoked. The zero value and nil
// know of none.
type Revoked struct {
	serials map[string]bool
	lists   map[string]*x509.RevocationList // by their authority's key
}

// ParseRevoked reads revocation lists as PEM, one for each authority, and
// checks that the authorities in caPEM signed them, that they are not from the
// future, and that they are of a size that an authority of ours can have. Empty
// data is an empty list. On an error keep what was known before: forgetting a
// revocation lets somebody in.
func ParseRevoked(data, caPEM []byte, now time.Time) (*Revoked, error) {
	r := &Revoked{serials: map[string]bool{}, lists: map[string]*x509.RevocationList{}}
	if len(data) > MaxRevokedBytes {
		return nil, fmt.Errorf("read revocation list: %d bytes, at most %d", len(data), MaxRevokedBytes)
	}
	for rest := bytes.TrimSpace(data); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var list *x509.RevocationList
		var err error
		if list, rest, err = parseCRL(rest); err != nil {
			return nil, fmt.Errorf("read revocation list: %w", err)
		}
		if err := r.add(list, caPEM, now); err != nil {
			return nil, fmt.Errorf("read revocation list: %w", err)
		}
	}
	return r, nil
}

func (r *Revoked) add(list *x509.RevocationList, caPEM []byte, now time.Time) error {
	ca, err := signer(list, caPEM)
	if err != nil {
		return err
	}
	key := string(ca.RawSubjectPublicKeyInfo) // a renewed authority has the same name
	switch {
	case r.lists[key] != nil:
		return fmt.Errorf("two lists of %s", list.Issuer)
	case list.Number == nil:
		return fmt.Errorf("the list of %s has no number", list.Issuer)
	case list.ThisUpdate.After(now.Add(aheadOfUs)):
		return fmt.Errorf("the list of %s was made at %s, which is in the future: check both clocks", list.Issuer, list.ThisUpdate.Format(time.RFC3339))
	case len(r.serials)+len(list.RevokedCertificateEntries) > maxRevoked:
		return fmt.Errorf("more than %d revoked certificates: begin a new authority", maxRevoked)
	}
	r.lists[key] = list
	for _, e := range list.RevokedCertificateEntries {
		r.serials[serialKey(list.RawIssuer, e.SerialNumber)] = true
	}
	return nil
}

// Follows is an error when the lists forget what former knows: an authority
// that is missing, or whose list is older.
func (r *Revoked) Follows(former *Revoked) error {
	if former == nil {
		return nil
	}
	for key, old := range former.lists {
		switch now := r.lists[key]; {
		case now == nil:
			return fmt.Errorf("the list of %s is gone", old.Issuer)
		case now.Number.Cmp(old.Number) < 0:
			return fmt.Errorf("the list of %s has number %s, and number %s was in force: commit the newest", old.Issuer, now.Number, old.Number)
		}
	}
	return nil
}

// Overdue says which list promised a newer one that has not come; "" when none
// did. Such a list stays in force.
func (r *Revoked) Overdue(now time.Time) string {
	if r == nil {
		return ""
	}
	for _, list := range r.lists {
		if !list.NextUpdate.IsZero() && now.After(list.NextUpdate) {
			return fmt.Sprintf("the list of %s was to be renewed by %s", list.Issuer, list.NextUpdate.Format(time.RFC3339))
		}
	}
	return ""
}

// Has reports whether a certificate was revoked by its issuer.
func (r *Revoked) Has(cert *x509.Certificate) bool {
	return r != nil && r.serials[serialKey(cert.RawIssuer, cert.SerialNumber)]
}

// Len is how many certificates are revoked.
func (r *Revoked) Len() int {
	if r == nil {
		return 0
	}
	return len(r.serials)
}

func serialKey(issuer []byte, serial *big.Int) string {
	return string(issuer) + "\x00" + serial.Text(16)
}

// parseCRL reads the first list of data and gives the rest.
func parseCRL(data []byte) (*x509.RevocationList, []byte, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "X509 CRL" {
		return nil, nil, errors.New("holds no PEM revocation list")
	}
	list, err := x509.ParseRevocationList(block.Bytes)
	return list, rest, err
}

// signer is the authority in caPEM that signed the list.
func signer(list *x509.RevocationList, caPEM []byte) (*x509.Certificate, error) {
	err := errors.New("there is no authority to check it against")
	for rest := caPEM; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, err
		}
		ca, parseErr := x509.ParseCertificate(block.Bytes)
		if parseErr != nil {
			return nil, parseErr
		}
		if err = list.CheckSignatureFrom(ca); err == nil {
			return ca, nil
		}
	}
}
