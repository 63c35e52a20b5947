package server

import (
	"container/heap"
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/server/hosts"
)

// Connections of one port at a time, unless the Port says otherwise. One of an
// agent costs some 40 KiB; an agent keeps two or three.
const (
	defaultConnections = 20_000
	// knownFor is how long an address counts as known after a handshake that was
	// completed with a certificate in force, and maxKnown how many are remembered.
	knownFor = time.Hour
	maxKnown = 65_536
)

// admission limits a port's connections before their handshake, when nothing is
// known of a peer but its address. A connection is silent until its own peer has shown a
// certificate; a stranger is a silent one of an address of which none was shown within the
// last hour. Where peers show certificates, strangers have half of the places. Whoever
// comes while silent connections fill the port gets a place: the oldest stranger is closed,
// and where there is none the oldest silent one, of the address that has most of them. So
// nobody who opens connections and says nothing keeps others out, such as a kubelet's
// probe, which shows no certificate, or an agent behind a balancer that gives all peers
// its own address. It is safe for concurrent use.
type admission struct {
	all          int
	mostStranger int // strangers at a time
	perAddress   int // 0: no limit
	now          func() time.Time

	mu        sync.Mutex
	open      int
	byAddress map[netip.Addr]int
	known     map[netip.Addr]time.Time
	// strangers and familiar are the silent connections, of addresses that are not known
	// and of those that are.
	strangers, familiar crowd
}

// crowd are connections by address, the oldest first. All of it costs at most the logarithm
// of the addresses: a flood comes from many.
type crowd struct {
	by    map[netip.Addr]*member
	first members
	n     int
}

// member is an address with connections.
type member struct {
	conns *list.List // of *watchedConn
	at    int        // in members
}

func (m *member) oldest() *watchedConn {
	conn, _ := m.conns.Front().Value.(*watchedConn)
	return conn
}

// members are a heap: the address with most connections first, of several such the one
// with the oldest of all.
type members []*member

func (m members) Len() int { return len(m) }
func (m members) Less(a, b int) bool {
	if x, y := m[a].conns.Len(), m[b].conns.Len(); x != y {
		return x > y
	}
	return m[a].oldest().began.Before(m[b].oldest().began)
}
func (m members) Swap(a, b int) {
	m[a], m[b] = m[b], m[a]
	m[a].at, m[b].at = a, b
}
func (m *members) Push(x any) {
	one, _ := x.(*member)
	one.at = len(*m)
	*m = append(*m, one)
}
func (m *members) Pop() any {
	last := len(*m) - 1
	one := (*m)[last]
	(*m)[last] = nil
	*m = (*m)[:last]
	return one
}

func (c *crowd) add(address netip.Addr, conn *watchedConn) *list.Element {
	c.n++
	m := c.by[address]
	if m != nil {
		e := m.conns.PushBack(conn)
		heap.Fix(&c.first, m.at)
		return e
	}
	m = &member{conns: list.New()}
	e := m.conns.PushBack(conn)
	c.by[address] = m
	heap.Push(&c.first, m)
	return e
}

func (c *crowd) remove(address netip.Addr, e *list.Element) {
	m := c.by[address]
	c.n--
	if m.conns.Len() == 1 { // before it goes: the heap compares by it
		heap.Remove(&c.first, m.at)
		delete(c.by, address)
		return
	}
	m.conns.Remove(e)
	heap.Fix(&c.first, m.at)
}

// oldest is the oldest connection of the address that has most; of several such
// addresses the oldest of all. Nil: there is none.
func (c *crowd) oldest() *watchedConn {
	if len(c.first) == 0 {
		return nil
	}
	return c.first[0].oldest()
}

// newAdmission limits a port to some connections; keepHalf where peers show
// certificates.
func newAdmission(all, perAddress int, keepHalf bool, now func() time.Time) *admission {
	if all <= 0 {
		all = defaultConnections
	}
	a := &admission{
		all: all, mostStranger: all, perAddress: perAddress, now: now,
		byAddress: map[netip.Addr]int{}, known: map[netip.Addr]time.Time{},
		strangers: crowd{by: map[netip.Addr]*member{}}, familiar: crowd{by: map[netip.Addr]*member{}},
	}
	if keepHalf {
		a.mostStranger = max(all/2, 1)
	}
	return a
}

// place is what a connection takes of its port. Its fields are under the lock of the
// admission. The zero value takes nothing.
type place struct {
	at      *admission // set once, before the connection is used
	address netip.Addr
	silent  *list.Element // in crowd; nil: its peer has shown a certificate
	crowd   *crowd
	left    bool
}

// enter gives a new connection a place, if there is one. The caller closes displaced,
// the connection that had to give way; nil: none.
func (a *admission) enter(conn *watchedConn) (displaced *watchedConn, ok bool) {
	address := addressOf(conn.RemoteAddr())
	a.mu.Lock()
	defer a.mu.Unlock()
	at, known := a.known[address]
	stranger := !known || a.now().Sub(at) > knownFor
	if a.perAddress > 0 && a.byAddress[address] >= a.perAddress {
		return nil, false
	}
	if a.open >= a.all || stranger && a.strangers.n >= a.mostStranger {
		if displaced = a.strangers.oldest(); displaced == nil {
			displaced = a.familiar.oldest()
		}
		if displaced == nil {
			return nil, false
		}
		a.leave(&displaced.place)
	}
	p := &conn.place
	*p = place{at: a, address: address, crowd: &a.familiar}
	if stranger {
		p.crowd = &a.strangers
	}
	p.silent = p.crowd.add(address, conn)
	a.open++
	if a.perAddress > 0 {
		a.byAddress[address]++
	}
	return displaced, true
}

// settle makes a silent connection one that is not. The caller holds mu.
func (a *admission) settle(p *place) {
	if p.silent != nil {
		p.crowd.remove(p.address, p.silent)
		p.silent = nil
	}
}

// completed notes that the peer has shown a certificate in force.
func (p *place) completed() {
	a := p.at
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.left {
		return
	}
	a.settle(p)
	now := a.now()
	if _, known := a.known[p.address]; !known && len(a.known) >= maxKnown {
		for address, at := range a.known {
			if now.Sub(at) > knownFor {
				delete(a.known, address)
			}
		}
		for address := range a.known { // none is old: any one goes
			if len(a.known) < maxKnown {
				break
			}
			delete(a.known, address)
		}
	}
	a.known[p.address] = now
}

// leave gives the place back, once.
func (p *place) leave() {
	a := p.at
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leave(p)
}

// leave gives a place back, once. The caller holds mu.
func (a *admission) leave(p *place) {
	if p.left {
		return
	}
	p.left = true
	a.open--
	a.settle(p)
	if a.perAddress > 0 {
		if a.byAddress[p.address]--; a.byAddress[p.address] <= 0 {
			delete(a.byAddress, p.address)
		}
	}
}

// addressOf is the host of a peer's address without its port.
func addressOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return hosts.Of(tcp.AddrPort().Addr())
}
