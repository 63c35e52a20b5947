// Package watches says whether the caches of a connection hold what the cluster holds: whether
// all that is there was read, and whether a watch that broke has been away for too long.
//
// Invariants: a cluster that is only slow is not called broken before patience is over; one
// that never sends the end of a list is named after minutes, as a list has no other end than
// its server's. A watch that comes back is forgotten by the version that it shows.
//
// Callers: delivery, one State a connection. Its methods are safe for concurrent use.
package watches

import (
	"fmt"
	"sync"
	"time"
)

// Reading is why a cluster is not served that has only just been connected to. It passes.
const Reading = "reading what is there"

const (
	// Patience is how long a broken watch may take to come back before what it showed counts
	// as stale: longer than a watch takes to notice a restart.
	Patience = 30 * time.Second
	// readPatience is for how long a cluster may send what is there before that is worth a word.
	readPatience = 3 * time.Minute
)

// State is what is known of the watches of a connection. The zero value is ready.
type State struct {
	mu      sync.Mutex
	broken  map[string]broken // by resource
	reading time.Time         // since when what is there is being read
}

// broken is a watch that broke.
type broken struct {
	err error
	// since is when it broke first without coming back; at is the version it had seen by then.
	since time.Time
	at    string
}

// Broke notes that the watch of a resource broke, which had seen a version by then.
func (s *State) Broke(resource, version string, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := broken{err, now, version}
	if was, ok := s.broken[resource]; ok && was.at == version {
		is.since = was.since
	}
	if s.broken == nil {
		s.broken = map[string]broken{}
	}
	s.broken[resource] = is
}

// Cache is one resource's, as informers are.
type Cache interface {
	HasSynced() bool
	LastSyncResourceVersion() string
}

// Stale is why a cache does not hold what the cluster holds of a resource, "" where it does.
func (s *State) Stale(resource string, c Cache, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	synced := c.HasSynced()
	if is, ok := s.broken[resource]; ok && is.at == c.LastSyncResourceVersion() && (!synced || now.Sub(is.since) > Patience) {
		return fmt.Sprintf("list and watch %s: %v", resource, is.err)
	}
	if synced {
		return ""
	}
	if s.reading.IsZero() {
		s.reading = now
	}
	if now.Sub(s.reading) < readPatience {
		return Reading
	}
	return fmt.Sprintf("the cluster has not sent all that is there since %s, and is not served until it has: look at what lists and watches of its API server wait for", s.reading.UTC().Format(time.RFC3339))
}
