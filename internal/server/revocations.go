package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// Revocations are the revoked certificates in force, and the connections that
// a new list cuts. The zero value has none.
type Revocations struct {
	// Authorities that must still be trusted at each request, as they were in the
	// connection's handshake; nil asks for none. Set before it is used.
	Authorities TLSSource

	mu      sync.Mutex // one Set at a time
	current atomic.Pointer[pki.Revoked]
	living  connections
}

// Set takes the content of pki/revoked.crl and the authorities that may have
// signed it, and cuts the connections of certificates that are revoked now;
// cut says how many. On an error what was in force stays: forgetting a
// revocation lets somebody in. An older list than the one in force is an error
// too, because it forgets.
func (r *Revocations) Set(crl, caPEM []byte, now time.Time) (cut int, err error) {
	revoked, err := pki.ParseRevoked(crl, caPEM, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	former := r.current.Load()
	if err == nil {
		err = revoked.Follows(former)
	}
	if err != nil {
		return 0, fmt.Errorf("pki/revoked.crl: %w; the former list stays in force (%d certificates)", err, former.Len())
	}
	r.current.Store(revoked)
	return r.living.cut(revoked), nil
}

// Has reports whether a certificate is revoked. Every transport asks it at
// every request.
func (r *Revocations) Has(cert *x509.Certificate) bool { return r.current.Load().Has(cert) }

// stand reports whether the authority that a connection's handshake trusted is
// trusted now.
func (r *Revocations) stand(state *tls.ConnectionState) bool {
	if r.Authorities == nil {
		return true
	}
	m, _ := r.Authorities.Load() // what could not be loaded leaves the former in force
	return m.Knows(state.VerifiedChains)
}

// admit takes up a connection whose handshake shows a certificate, or says why
// not. A list that comes into force meanwhile is looked at again after the
// connection is known to it.
func (r *Revocations) admit(conn net.Conn, cert *x509.Certificate) error {
	if _, err := pki.IdentityOf(cert); err != nil {
		return err
	}
	watched, ok := conn.(*watchedConn)
	if r == nil {
		if ok {
			watched.completed()
		}
		return nil
	}
	revoked := fmt.Errorf("the certificate of %s was revoked; issue a new one", cert.Subject.CommonName)
	if r.Has(cert) {
		return revoked
	}
	if !ok {
		return nil
	}
	if err := r.living.add(watched, cert); err != nil {
		return err
	}
	if r.Has(cert) {
		r.living.remove(watched)
		return revoked
	}
	watched.completed()
	return nil
}

// Len is how many certificates are revoked.
func (r *Revocations) Len() int { return r.current.Load().Len() }

// Overdue says which list promised a newer one that has not come, if any.
func (r *Revocations) Overdue(now time.Time) string { return r.current.Load().Overdue(now) }
