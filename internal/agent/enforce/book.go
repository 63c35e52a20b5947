package enforce

import (
	"sync"
	"time"
)

// Book is what the ledger promises of this cluster, as far as it was heard. The
// zero Book has heard nobody.
type Book struct {
	mu       sync.Mutex
	fleet    string
	all      []Promise
	promises map[key]*Promise
	heard    time.Time
	// seq of the promises on the ledger, ending that of the newest with one that stands
	// no longer.
	seq, ending uint64
}

// key identifies a promise: names of slices are only unique on their consumer.
type key struct{ consumerID, slice string }

// Tell replaces all promises of a fleet, whose id is "" where it has none; seq is their
// number on the ledger, 0 for none.
func (b *Book) Tell(fleet string, promises []Promise, seq uint64) {
	index, ends := make(map[key]*Promise, len(promises)), false
	for i := range promises {
		p := &promises[i]
		index[key{p.ConsumerID, p.Slice}] = p
		ends = ends || !p.Standing
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fleet, b.all, b.promises = fleet, promises, index
	if seq < b.seq { // the ledger was set back
		b.ending = 0
	}
	if b.seq = seq; ends {
		b.ending = seq
	}
}

// Ending is the number on the ledger of the newest promises of which one stands no
// longer, 0 for none. Others leave it as it is, so that not each change of promises
// makes another report.
func (b *Book) Ending() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ending
}

// Hear notes that the promises held at an instant.
func (b *Book) Hear(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.After(b.heard) {
		b.heard = now
	}
}

// Heard is until when the promises are known to hold, the zero time for never.
func (b *Book) Heard() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard
}

// Promise is what the ledger says about a consumer's slice, nil for nothing.
func (b *Book) Promise(consumerID, slice string) *Promise {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.promises[key{consumerID, slice}]
}

// Fleet is the id of the fleet whose promises these are.
func (b *Book) Fleet() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fleet
}

// All is every promise; not to be modified.
func (b *Book) All() []Promise {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}
