package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Files is a directory with tls.crt, tls.key and ca.crt that may be replaced
// at any time, as a mounted Secret is. Each Load reads them anew; a state
// caught between two writes, or one that does not parse, leaves the last good
// one in force.
type Files struct {
	dir string

	mu   sync.Mutex
	last *Material
}

// Material is one consistent state of Files. It is never modified.
type Material struct {
	// Pair is the certificate with its key.
	Pair tls.Certificate
	// Authorities may have issued the other side's certificate.
	Authorities *x509.CertPool
	// CA is the same as PEM.
	CA []byte

	raw [3][]byte
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
	m, err := f.read()
	if err != nil {
		return f.last, err
	}
	f.last = m
	return m, nil
}

func (f *Files) read() (*Material, error) {
	m := &Material{}
	for i, name := range []string{CertFile, KeyFile, CAFile} {
		data, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			return nil, fmt.Errorf("load certificates: %w; issue them with `fleetbroker pki issue`", err)
		}
		m.raw[i] = data
	}
	if f.last != nil && bytes.Equal(m.raw[0], f.last.raw[0]) && bytes.Equal(m.raw[1], f.last.raw[1]) && bytes.Equal(m.raw[2], f.last.raw[2]) {
		return f.last, nil
	}
	var err error
	if m.Pair, err = tls.X509KeyPair(m.raw[0], m.raw[1]); err != nil {
		return nil, fmt.Errorf("load certificates: %s and %s in %s: %w", CertFile, KeyFile, f.dir, err)
	}
	m.CA, m.Authorities = m.raw[2], x509.NewCertPool()
	if !m.Authorities.AppendCertsFromPEM(m.CA) {
		return nil, fmt.Errorf("load certificates: %s holds no certificate", filepath.Join(f.dir, CAFile))
	}
	return m, nil
}
