// Package sshdial lets go-git dial its ssh connections as an operation does.
//
// go-git gives no way to them but the dialer of a proxy, which is looked up by the scheme of
// its URL: each operation has a URL of its own, by which its dialer is found.
//
// Invariant: a dialer is found as long as its operation lasts, and by its own URL alone.
//
// Callers: package gitrepo. All is safe for concurrent use.
package sshdial

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/net/proxy"
)

// Dial opens a connection.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

const scheme = "fleetbroker-watched"

var (
	dialers sync.Map // by number
	number  atomic.Uint64
	once    sync.Once
)

// Within is a proxy's URL by which go-git dials with dial, whose context is the operation's
// where go-git has none; forget must be called at the operation's end.
func Within(ctx context.Context, dial Dial) (proxyURL string, forget func()) {
	once.Do(func() {
		proxy.RegisterDialerType(scheme, func(u *url.URL, _ proxy.Dialer) (proxy.Dialer, error) {
			d, ok := dialers.Load(u.Host)
			if !ok {
				return nil, errors.New("connect: the operation has ended")
			}
			return d.(dialer), nil
		})
	})
	n := strconv.FormatUint(number.Add(1), 10)
	dialers.Store(n, dialer{ctx, dial})
	return scheme + "://" + n, func() { dialers.Delete(n) }
}

type dialer struct {
	operation context.Context //nolint:containedctx // it lasts as long as the operation, whose library takes none
	dial      Dial
}

// Dial implements proxy.Dialer.
func (d dialer) Dial(network, addr string) (net.Conn, error) {
	return d.dial(d.operation, network, addr)
}

// DialContext implements proxy.ContextDialer.
func (d dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr)
}
