package server

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// Connections that are given away gracefully: the next answer on such a one says that
// it is the last (GOAWAY of HTTP/2, else Connection: close), requests under way are answered,
// and its peer comes again by the balancer.

// connKey is a request's connection in its context.
type connKey struct{}

// withConn lets handlers know the connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	if conn, ok := c.(*watchedConn); ok {
		return context.WithValue(ctx, connKey{}, conn)
	}
	return ctx
}

// departing ends the connections that are to go with their next answer.
func departing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(*watchedConn); ok {
			w = &lastAnswer{ResponseWriter: w, leaves: &conn.leaves}
		}
		next.ServeHTTP(w, r)
	})
}

// lastAnswer is an answer that may be the last of its connection.
type lastAnswer struct {
	http.ResponseWriter
	leaves *atomic.Bool
	wrote  bool
}

// WriteHeader implements http.ResponseWriter.
func (a *lastAnswer) WriteHeader(status int) {
	if !a.wrote && a.leaves.Load() {
		a.Header().Set("Connection", "close")
	}
	a.wrote = a.wrote || status >= http.StatusOK
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *lastAnswer) Write(b []byte) (int, error) {
	if !a.wrote {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find what it controls.
func (a *lastAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Connections is how many connections the named port has whose peers have shown a
// certificate, or on a port without certificates all.
func (s *Servers) Connections(name string) int {
	n := 0
	for _, p := range s.ports {
		if p.Name == name {
			n += p.listener.admission.certified()
		}
	}
	return n
}

// certified is how many connections there are that are no strangers'.
func (a *admission) certified() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mostStranger == a.all { // nobody shows a certificate
		return a.open
	}
	return a.open - a.strangers.n - a.familiar.n
}

// Shed gives away at most so many connections of the named port, whichever, each with its
// next answer, and says how many: those that go already are not counted again.
func (s *Servers) Shed(name string, most int) int {
	n := 0
	for _, p := range s.ports {
		if p.Name != name {
			continue
		}
		p.listener.open.Range(func(key, _ any) bool {
			conn := key.(*watchedConn) //nolint:forcetypeassert // it has no other
			if n < most && conn.leaves.CompareAndSwap(false, true) {
				n++
			}
			return n < most
		})
	}
	return n
}
