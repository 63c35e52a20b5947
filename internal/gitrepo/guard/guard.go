// Package guard keeps connections to repositories that tenants name where they may go:
// a name may resolve to another address each time, and a server may redirect; and it
// keeps credentials out of messages.
//
// gitrepo puts it between go-git and the network. All is safe for concurrent use.
package guard

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
)

// Control asks a guard about each address as it was resolved, before it is connected
// to; nil asks nobody.
func Control(guard func(netip.Addr) error) func(network, address string, _ syscall.RawConn) error {
	if guard == nil {
		return nil
	}
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", address, err)
		}
		return guard(at.Addr())
	}
}

// OnHost refuses requests that a redirect sends to another host.
type OnHost struct {
	// Next makes the others.
	Next http.RoundTripper
	// Scheme and Host of the repository.
	Scheme, Host string
}

// RoundTrip implements http.RoundTripper.
func (o OnHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != o.Scheme || !strings.EqualFold(r.URL.Hostname(), strings.Trim(o.Host, "[]")) {
		return nil, fmt.Errorf("redirected to %s://%s, which is not the host of the URL: name the repository by its own URL", r.URL.Scheme, r.URL.Host)
	}
	return o.Next.RoundTrip(r)
}
