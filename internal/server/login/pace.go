package login

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fleetbroker/fleetbroker/internal/server/hosts"
)

// How often one address may begin a login or come back without one, and all addresses
// together; how often one login may come back; and how many of both are remembered.
const (
	perAddress, perAddressAtOnce = 10, 40
	together, togetherAtOnce     = 100, 400
	perLogin, perLoginAtOnce     = 0.1, 5
	maxRemembered                = 10_000
)

// pace limits who asks. Nobody is known yet but by an address, of IPv6 by the /64; who has
// begun a login is, and nobody who asks often keeps those from ending theirs. It is safe for
// concurrent use.
type pace struct {
	mu  sync.Mutex
	all *rate.Limiter
	of  map[string]*rate.Limiter // by address, or by the state of a login
}

func newPace() *pace {
	return &pace{all: rate.NewLimiter(together, togetherAtOnce), of: map[string]*rate.Limiter{}}
}

// allow reports whether a request may go on; login is the state of the one that it ends.
func (p *pace) allow(r *http.Request, login string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if login != "" {
		return p.one("login "+login, perLogin, perLoginAtOnce).AllowN(now, 1)
	}
	return p.one(addressOf(r), perAddress, perAddressAtOnce).AllowN(now, 1) && p.all.AllowN(now, 1)
}

func (p *pace) one(key string, limit rate.Limit, burst int) *rate.Limiter {
	l := p.of[key]
	if l == nil {
		if len(p.of) >= maxRemembered {
			clear(p.of)
		}
		l = rate.NewLimiter(limit, burst)
		p.of[key] = l
	}
	return l
}

func addressOf(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	address, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	return hosts.Of(address).String()
}
