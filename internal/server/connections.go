package server

import (
	"crypto/x509"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// maxConnections bounds the connections of one certificate. An agent needs two
// or three; the rest is for programs that ask for reservations in parallel.
const maxConnections = 128

// connections are those of the agents' port whose handshake is done, so that
// one can be cut the moment its certificate is revoked: a long poll would live
// on otherwise. The zero value is ready.
type connections struct {
	mu    sync.Mutex
	open  map[*watchedConn]*x509.Certificate
	count map[string]int // by certificate
}

// add takes up a connection, and refuses one too many of a certificate.
func (c *connections) add(conn *watchedConn, cert *x509.Certificate) error {
	key := certKey(cert)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open, c.count = map[*watchedConn]*x509.Certificate{}, map[string]int{}
	}
	if c.count[key] >= maxConnections {
		return fmt.Errorf("%s has %d connections, at most %d", cert.Subject.CommonName, c.count[key], maxConnections)
	}
	if !conn.onClose(func() { c.remove(conn) }) {
		return net.ErrClosed
	}
	c.open[conn] = cert
	c.count[key]++
	return nil
}

func (c *connections) remove(conn *watchedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cert, ok := c.open[conn]
	if !ok {
		return
	}
	delete(c.open, conn)
	key := certKey(cert)
	if c.count[key]--; c.count[key] == 0 {
		delete(c.count, key)
	}
}

// cut closes the connections of revoked certificates and returns how many.
func (c *connections) cut(revoked *pki.Revoked) int {
	c.mu.Lock()
	var found []*watchedConn
	for conn, cert := range c.open {
		if revoked.Has(cert) {
			found = append(found, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range found {
		_ = conn.Close() // it removes itself; that it was closed already is as good
	}
	return len(found)
}

func certKey(cert *x509.Certificate) string {
	return string(cert.RawIssuer) + "\x00" + cert.SerialNumber.Text(16)
}

// watchedListener gives connections that tell when they are closed, and closes
// those for which the port has no place, and those that have to give way.
type watchedListener struct {
	net.Listener
	admission *admission
	open      *sync.Map // of *watchedConn
}

// drop closes all connections there are, and says how many.
func (l watchedListener) drop() int {
	n := 0
	l.open.Range(func(conn, _ any) bool {
		_ = conn.(*watchedConn).Close() //nolint:forcetypeassert // it has no other
		n++
		return true
	})
	return n
}

// Accept implements net.Listener.
func (l watchedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		watched := &watchedConn{Conn: conn, began: l.admission.now(), open: l.open}
		displaced, ok := l.admission.enter(watched)
		if displaced != nil {
			_ = displaced.Close() // its peer finds out
		}
		if ok {
			l.open.Store(watched, nil)
			return watched, nil
		}
		_ = conn.Close() // nothing was said on it
	}
}

// watchedConn is a connection that tells once when it is closed.
type watchedConn struct {
	net.Conn

	began  time.Time
	place  place
	open   *sync.Map // that it is one of; nil: of none
	mu     sync.Mutex
	closed bool
	tell   func()
	leaves atomic.Bool // its next answer is its last
}

// completed notes that the peer has shown a certificate in force.
func (c *watchedConn) completed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.place.completed()
	}
}

// onClose sets whom to tell; false: it is closed already.
func (c *watchedConn) onClose(tell func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tell = tell
	return true
}

// Close implements net.Conn.
func (c *watchedConn) Close() error {
	c.mu.Lock()
	tell := c.tell
	c.closed, c.tell = true, nil
	c.place.leave()
	c.mu.Unlock()
	if c.open != nil {
		c.open.Delete(c)
	}
	err := c.Conn.Close()
	if tell != nil {
		tell()
	}
	return err
}
