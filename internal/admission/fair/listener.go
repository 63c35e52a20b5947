package fair

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/server/hosts"
)

// Listen gives a listener that has at most so many connections open; the oldest of the
// address with most gives way to a new one.
func Listen(line net.Listener, most int) net.Listener {
	return &listener{Listener: line, most: most, by: map[netip.Addr]*list.List{}}
}

type listener struct {
	net.Listener
	most int

	mu   sync.Mutex
	open int
	by   map[netip.Addr]*list.List // of *conn, the oldest first
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	plain, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: plain, of: l, address: AddressOf(plain.RemoteAddr().String())}
	if displaced := l.enter(c); displaced != nil {
		_ = displaced.Close()
	}
	return c, nil
}

// enter gives a connection a place, and returns the one that is to be closed for it.
func (l *listener) enter(c *conn) (displaced *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		var fullest *list.List
		for _, conns := range l.by {
			if fullest == nil || conns.Len() > fullest.Len() {
				fullest = conns
			}
		}
		displaced, _ = fullest.Front().Value.(*conn)
		l.leave(displaced)
	}
	conns := l.by[c.address]
	if conns == nil {
		conns = list.New()
		l.by[c.address] = conns
	}
	c.place = conns.PushBack(c)
	l.open++
	return displaced
}

// leave gives a place back, once. The caller holds mu.
func (l *listener) leave(c *conn) {
	if c.place == nil {
		return
	}
	conns := l.by[c.address]
	conns.Remove(c.place)
	c.place = nil
	l.open--
	if conns.Len() == 0 {
		delete(l.by, c.address)
	}
}

type conn struct {
	net.Conn
	of      *listener
	address netip.Addr
	place   *list.Element
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	c.of.leave(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// AddressOf is whom a remote address ("<host>:<port>") counts as; the zero Addr where it
// cannot be read.
func AddressOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return hosts.Of(at.Addr())
}
