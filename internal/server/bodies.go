package server

import (
	"errors"
	"sync"
)

// Bytes of bodies that requests under way hold in memory, as unpacked.
const (
	// maxBodies of all identities together, beyond what each has to itself.
	maxBodies = 128 << 20
	// ownBodies is what each identity has to itself, so that those who fill the
	// rest keep no honest agent from reporting: its report has some ten kilobytes.
	ownBodies = 256 << 10
)

// errBusy is returned while reading a body when the bodies of all take too much.
var errBusy = errors.New("the bodies of requests under way take all the memory that is meant for them")

// bodies counts what all identities' bodies take.
type bodies struct {
	mu     sync.Mutex
	shared int64
	held   map[*budget]int64
}

func newBodies() *bodies { return &bodies{held: map[*budget]int64{}} }

// grow adds n bytes to what an identity holds, unless there is no room.
func (b *bodies) grow(of *budget, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.held[of]
	more := max(before+n-ownBodies, 0) - max(before-ownBodies, 0)
	if more > 0 && b.shared+more > maxBodies {
		return false
	}
	b.shared += more
	b.held[of] = before + n
	return true
}

// shrink gives n bytes back.
func (b *bodies) shrink(of *budget, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.held[of]
	b.shared -= max(before-ownBodies, 0) - max(before-n-ownBodies, 0)
	if b.held[of] = before - n; b.held[of] <= 0 {
		delete(b.held, of)
	}
}

// body is what the bodies of one request take; its request alone uses it.
type body struct {
	all    *bodies
	budget *budget
	size   int64
}

func (b *body) grow(n int) bool {
	if !b.all.grow(b.budget, int64(n)) {
		return false
	}
	b.size += int64(n)
	return true
}

func (b *body) release() { b.all.shrink(b.budget, b.size) }
