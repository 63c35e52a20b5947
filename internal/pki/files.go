package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Files is a directory with tls.crt, tls.key and ca.crt that may be replaced
// at any time, as a mounted Secret is. Load reads them again when their size,
// time or inode has changed; a state caught between two writes, or one that does
// not parse, leaves the last good one in force.
type Files struct {
	dir string

	mu    sync.Mutex
	last  *Material
	seen  [3]os.FileInfo // of what was last read, nil where it may have changed since
	reads int            // how often content was read, for the test
}

// settled is how old a file must be for its time to show the next change: within
// one tick of a file system's clock two writes have the same time.
const settled = 2 * time.Second

// Material is one consistent state of Files. It is never modified.
type Material struct {
	// Pair is the certificate with its key.
	Pair tls.Certificate
	// Authorities may have issued the other side's certificate.
	Authorities *x509.CertPool
	// CA is the same as PEM.
	CA []byte
	// Ends is when the first certificate of the pair's chain ends, AuthoritiesEnd when the
	// first of the authorities does.
	Ends, AuthoritiesEnd time.Time

	raw   [3][]byte
	roots map[string]bool // the authorities, by name and key
}

// authority is what stays the same when an authority's certificate is renewed.
func authority(cert *x509.Certificate) string {
	return string(cert.RawSubject) + "\x00" + string(cert.RawSubjectPublicKeyInfo)
}

// Knows reports whether one of the chains by which a certificate was verified ends
// at an authority in force.
func (m *Material) Knows(chains [][]*x509.Certificate) bool {
	return slices.ContainsFunc(chains, func(c []*x509.Certificate) bool {
		return len(c) > 0 && m.roots[authority(c[len(c)-1])]
	})
}

// OpenFiles reads the directory a first time; here an error is an error.
func OpenFiles(dir string) (*Files, error) {
	f := &Files{dir: dir}
	m, err := f.read()
	if err != nil {
		return nil, err
	}
	f.last = m
	return f, nil
}

// Load is the newest good state. The error says why a newer one could not be
// used and does not affect the Material, which is always usable. An unchanged
// directory gives the same pointer again.
func (f *Files) Load() (*Material, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unchanged() {
		return f.last, nil
	}
	m, err := f.read()
	if err != nil {
		return f.last, err
	}
	f.last = m
	return m, nil
}

// unchanged reports whether the files are surely those that were last read.
func (f *Files) unchanged() bool {
	for i, name := range names {
		is, err := os.Stat(filepath.Join(f.dir, name))
		was := f.seen[i]
		if err != nil || was == nil || !os.SameFile(is, was) || !is.ModTime().Equal(was.ModTime()) || is.Size() != was.Size() {
			return false
		}
	}
	return true
}

// names are the files of a directory.
var names = [3]string{CertFile, KeyFile, CAFile}

func (f *Files) read() (*Material, error) {
	m := &Material{}
	f.reads++
	f.seen = [3]os.FileInfo{}
	var seen [3]os.FileInfo
	for i, name := range names {
		is, err := os.Stat(filepath.Join(f.dir, name)) // before it is read
		if err == nil && time.Since(is.ModTime()) > settled {
			seen[i] = is
		}
		data, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			return nil, fmt.Errorf("load certificates: %w; issue them with `fleetbroker pki issue`", err)
		}
		m.raw[i] = data
	}
	if f.last != nil && bytes.Equal(m.raw[0], f.last.raw[0]) && bytes.Equal(m.raw[1], f.last.raw[1]) && bytes.Equal(m.raw[2], f.last.raw[2]) {
		f.seen = seen
		return f.last, nil
	}
	var err error
	if m.Pair, err = tls.X509KeyPair(m.raw[0], m.raw[1]); err != nil {
		return nil, fmt.Errorf("load certificates: %s and %s in %s: %w", CertFile, KeyFile, f.dir, err)
	}
	for _, der := range m.Pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("load certificates: %s in %s: %w", CertFile, f.dir, err)
		}
		m.Ends = first(m.Ends, cert.NotAfter)
	}
	m.CA, m.Authorities, m.roots = m.raw[2], x509.NewCertPool(), map[string]bool{}
	for block, rest := pem.Decode(m.CA); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			m.Authorities.AddCert(cert)
			m.roots[authority(cert)] = true
			m.AuthoritiesEnd = first(m.AuthoritiesEnd, cert.NotAfter)
		}
	}
	if len(m.roots) == 0 {
		return nil, fmt.Errorf("load certificates: %s holds no certificate", filepath.Join(f.dir, CAFile))
	}
	f.seen = seen
	return m, nil
}

// first is the earlier of two times, of which zero is none.
func first(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
