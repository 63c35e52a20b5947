package fair

import (
	"context"
	"net/netip"
	"sync"
)

// Places are places of requests.
type Places struct {
	all     chan struct{}
	each    int // places of one address
	waiting int // requests of one address that have a place or wait for one

	mu sync.Mutex
	of map[netip.Addr]*address
}

type address struct {
	places   chan struct{}
	requests int
}

// NewPlaces makes so many places, of which one address has at most each, and as many
// requests waiting.
func NewPlaces(all, each, waiting int) *Places {
	return &Places{all: make(chan struct{}, all), each: each, waiting: waiting, of: map[netip.Addr]*address{}}
}

// Take waits for a place until the context ends, and reports whether there was one. leave
// gives it back, and is called once where there was.
func (p *Places) Take(ctx context.Context, from netip.Addr) (leave func(), ok bool) {
	a := p.enter(from)
	if a == nil {
		return nil, false
	}
	if !take(ctx, a.places) {
		p.exit(from, a)
		return nil, false
	}
	if !take(ctx, p.all) {
		<-a.places
		p.exit(from, a)
		return nil, false
	}
	return func() {
		<-p.all
		<-a.places
		p.exit(from, a)
	}, true
}

// enter counts a request of an address; nil: there are too many.
func (p *Places) enter(from netip.Addr) *address {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.of[from]
	if a == nil {
		a = &address{places: make(chan struct{}, p.each)}
		p.of[from] = a
	}
	if a.requests >= p.waiting {
		return nil
	}
	a.requests++
	return a
}

func (p *Places) exit(from netip.Addr, a *address) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.requests--; a.requests == 0 {
		delete(p.of, from)
	}
}

func take(ctx context.Context, of chan struct{}) bool {
	select {
	case of <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
