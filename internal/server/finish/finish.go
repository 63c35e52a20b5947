package finish

import (
	"net/http"
	"net/url"
)

// Handler is next, after which requests of HTTP/2 hold nothing.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor >= 2 {
			defer strip(r)
		}
		next.ServeHTTP(w, r)
	})
}

// strip drops what a request holds; the server asks for its method and body alone now.
func strip(r *http.Request) {
	r.Header, r.RequestURI, r.Host, r.URL = nil, "", "", &url.URL{}
}

// Written waits until what was answered of a request of HTTP/2 is taken, or its stream ends,
// and drops its headers before. Whoever counts requests under way calls it, once the handler
// has returned, before it counts one less.
func Written(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor >= 2 {
		clear(r.Header)                           // which the request that the server keeps has too
		_ = http.NewResponseController(w).Flush() // a peer that has gone takes nothing more
	}
}

// Refusals bounds the refusals of one identity that it has not taken.
type Refusals chan struct{}

// maxRefusals is how many; one more ends its stream.
const maxRefusals = 1024

// NewRefusals are those of an identity.
func NewRefusals() Refusals { return make(Refusals, maxRefusals) }

// Answer refuses a request by a function, and waits until that is taken.
func (n Refusals) Answer(w http.ResponseWriter, r *http.Request, refuse func()) {
	select {
	case n <- struct{}{}:
		defer func() { <-n }()
	default:
		panic(http.ErrAbortHandler) // it takes none of them
	}
	refuse()
	Written(w, r)
}

// Room is how many connections a port has, unless it says otherwise, and how many requests
// each may have under way: fewer where nobody has to show a certificate, since who takes no
// answers has all of them held.
func Room(certified bool) (connections int, streams int) {
	if certified {
		return 20_000, 64
	}
	return 1024, 16
}
