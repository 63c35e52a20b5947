package server

import (
	"sync"
	"time"
)

// How often agents that know of a newer ledger make the remote be asked: all together,
// and each. What they say of it is not to be believed: each has a certificate, and what
// the remote is asked too often it refuses to all.
const (
	rereadEvery = 2 * time.Second
	rereadOf    = 30 * time.Second
)

// rereads keeps these times. It is safe for concurrent use.
type rereads struct {
	mu   sync.Mutex
	last time.Time
	of   map[string]time.Time // by cluster, of those within rereadOf
}

func newRereads() *rereads { return &rereads{of: map[string]time.Time{}} }

// take is 0 where the remote may be asked now for a cluster, which counts; otherwise
// how long it has to wait.
func (r *rereads) take(cluster string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := max(r.last.Add(rereadEvery).Sub(now), r.of[cluster].Add(rereadOf).Sub(now))
	if wait > 0 {
		return min(wait, rereadOf)
	}
	for other, at := range r.of {
		if now.Sub(at) >= rereadOf {
			delete(r.of, other)
		}
	}
	r.last, r.of[cluster] = now, now
	return 0
}
