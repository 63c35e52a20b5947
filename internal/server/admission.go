package server

import (
	"net"
	"net/netip"
	"sync"
	"time"
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
// known of a peer but its address. Half of the places are kept for peers that
// have shown a certificate, now or from the same address within the last hour:
// those who have none cannot take the places of the others. It is safe for
// concurrent use.
type admission struct {
	all        int
	strangers  int // most connections of unknown addresses before their handshake
	perAddress int // 0: no limit
	now        func() time.Time

	mu        sync.Mutex
	open      int
	strange   int
	byAddress map[netip.Addr]int
	known     map[netip.Addr]time.Time
}

// newAdmission limits a port to some connections; keepHalf where peers show
// certificates.
func newAdmission(all, perAddress int, keepHalf bool, now func() time.Time) *admission {
	if all <= 0 {
		all = defaultConnections
	}
	a := &admission{all: all, strangers: all, perAddress: perAddress, now: now, byAddress: map[netip.Addr]int{}, known: map[netip.Addr]time.Time{}}
	if keepHalf {
		a.strangers = max(all/2, 1)
	}
	return a
}

// place is what a connection takes of its port. The zero value takes nothing.
type place struct {
	at       *admission
	address  netip.Addr
	stranger bool
}

// enter gives a new connection a place, if there is one.
func (a *admission) enter(remote net.Addr) (place, bool) {
	p := place{at: a, address: addressOf(remote)}
	a.mu.Lock()
	defer a.mu.Unlock()
	at, known := a.known[p.address]
	p.stranger = !known || a.now().Sub(at) > knownFor
	switch {
	case a.open >= a.all, p.stranger && a.strange >= a.strangers, a.perAddress > 0 && a.byAddress[p.address] >= a.perAddress:
		return place{}, false
	}
	a.open++
	if p.stranger {
		a.strange++
	}
	if a.perAddress > 0 {
		a.byAddress[p.address]++
	}
	return p, true
}

// completed notes that the peer has shown a certificate in force.
func (p *place) completed() {
	a := p.at
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.stranger {
		p.stranger = false
		a.strange--
	}
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
	p.at = nil
	a.open--
	if p.stranger {
		a.strange--
	}
	if a.perAddress > 0 {
		if a.byAddress[p.address]--; a.byAddress[p.address] <= 0 {
			delete(a.byAddress, p.address)
		}
	}
}

// addressOf is a peer's address without its port; of IPv6 the /64, which one
// host has to itself.
func addressOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if address.Is6() {
		if prefix, err := address.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return address
}
