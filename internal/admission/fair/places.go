package fair

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Places are places of requests. Of those that wait for one, the address that has fewest is
// served first, then who came first. Where all are taken, a place that is not settled in
// time is asked back for an address that has fewer: the oldest of the address with most.
type Places struct {
	all, each, waiting int
	prompt             time.Duration

	mu    sync.Mutex
	of    map[netip.Addr]*address
	taken []*Place // the oldest first
	queue []*Place // that wait, the oldest first
	asked bool     // one of taken was asked back and is not left yet
}

// address is what one address has; it is known as long as it has a request.
type address struct {
	at               netip.Addr
	places, requests int
}

// Place is one that a request has, or waits for.
type Place struct {
	in      *Places
	of      *address
	ready   chan struct{} // closed once it is taken
	since   time.Time     // when it was taken
	give    func()        // nil once it was called, or the place is settled or left
	isAsked bool          // it was chosen to be asked back
}

// NewPlaces makes so many places, of which one address has at most each, and as many
// requests waiting. A place that is not settled after prompt may be asked back.
func NewPlaces(all, each, waiting int, prompt time.Duration) *Places {
	return &Places{all: all, each: each, waiting: waiting, prompt: prompt, of: map[netip.Addr]*address{}}
}

// Take waits for a place until the context ends; nil: there was none. It is left by Leave.
// Where it is asked back, give is called once, from another goroutine and before Settle and
// Leave return: it has the request end soon, waits for nothing and calls nothing of Place.
func (p *Places) Take(ctx context.Context, from netip.Addr, give func()) *Place {
	mine := p.enter(from, give)
	if mine == nil {
		return nil
	}
	select {
	case <-mine.ready:
		return mine
	case <-ctx.Done():
		mine.Leave()
		return nil
	}
}

// Settle keeps the place until Leave, whoever waits: how long that is no longer depends on
// who sent the request. False: the place was asked back before.
func (p *Place) Settle() bool {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if p.give == nil {
		return false
	}
	p.give = nil
	p.forget()
	return true
}

// forget has another place asked back, where this one was. The caller holds mu.
func (p *Place) forget() {
	if p.isAsked {
		p.isAsked, p.in.asked = false, false
		p.in.serve()
	}
}

// Leave gives the place back, once, or no longer waits for it.
func (p *Place) Leave() {
	in := p.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if p.since.IsZero() {
		in.queue = without(in.queue, p)
	} else {
		in.taken = without(in.taken, p)
		p.of.places--
	}
	p.give = nil
	if p.isAsked {
		p.isAsked, in.asked = false, false
	}
	if p.of.requests--; p.of.requests == 0 {
		delete(in.of, p.of.at)
	}
	in.serve()
}

func without(list []*Place, one *Place) []*Place {
	return slices.DeleteFunc(list, func(other *Place) bool { return other == one })
}

// enter counts a request of an address and lets it wait; nil: there are too many.
func (p *Places) enter(from netip.Addr, give func()) *Place {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.of[from]
	if a == nil {
		a = &address{at: from}
		p.of[from] = a
	}
	if a.requests >= p.waiting {
		return nil
	}
	a.requests++
	mine := &Place{in: p, of: a, give: give, ready: make(chan struct{})}
	p.queue = append(p.queue, mine)
	p.serve()
	return mine
}

// serve gives free places to those that wait, and asks one back where there is none. The
// caller holds mu.
func (p *Places) serve() {
	for {
		next := p.next()
		switch {
		case next == nil:
			return
		case len(p.taken) >= p.all:
			p.askBack(next.of.places)
			return
		}
		p.queue = without(p.queue, next)
		p.taken = append(p.taken, next)
		next.of.places++
		next.since = time.Now()
		close(next.ready)
	}
}

// next is whose turn it is; nil: nobody's.
func (p *Places) next() *Place {
	var next *Place
	for _, w := range p.queue {
		if w.of.places < p.each && (next == nil || w.of.places < next.of.places) {
			next = w
		}
	}
	return next
}

// askBack asks for one place for an address that has so many: now, or as soon as it is old
// enough. One is asked for at a time; who leaves it has the next looked for.
func (p *Places) askBack(has int) {
	if p.asked {
		return
	}
	var of *Place
	for _, t := range p.taken {
		if t.give != nil && t.of.places > has && (of == nil || t.of.places > of.of.places) {
			of = t
		}
	}
	if of == nil {
		return
	}
	of.isAsked, p.asked = true, true
	time.AfterFunc(time.Until(of.since.Add(p.prompt)), of.ask)
}

// ask has a place given back, unless it was settled or left meanwhile.
func (p *Place) ask() {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if p.give != nil {
		p.give()
		p.give = nil
	}
}
