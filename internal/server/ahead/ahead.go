package ahead

import (
	"sync"
	"time"
)

// How often agents that know of a newer ledger make the remote be asked: all together,
// and each.
const (
	every = 2 * time.Second
	// Each is how often an agent may make the remote be asked.
	Each = 30 * time.Second
)

const (
	// SetBack is for how long the remote must not have had a number before it counts no
	// more: as long as an agent waits before it takes a lower one.
	SetBack = 5 * time.Minute
	// forgotten is after what silence an agent's claim begins again: longer than a poll.
	forgotten = 2 * time.Minute
)

// Claims are what agents say. Make it with New.
type Claims struct {
	mu   sync.Mutex
	last time.Time
	of   map[string]time.Time // when the remote was asked, by cluster, within Each
	open map[string]claim     // by cluster
}

// claim is since when a number is claimed that was not read, and when it was last.
type claim struct{ since, last time.Time }

// New has heard of nothing.
func New() *Claims { return &Claims{of: map[string]time.Time{}, open: map[string]claim{}} }

// Take is 0 where the remote may be asked now for a cluster, which counts; otherwise
// how long it has to wait.
func (c *Claims) Take(cluster string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := max(c.last.Add(every).Sub(now), c.of[cluster].Add(Each).Sub(now))
	if wait > 0 {
		return min(wait, Each)
	}
	for other, at := range c.of {
		if now.Sub(at) >= Each {
			delete(c.of, other)
		}
	}
	c.last, c.of[cluster] = now, now
	return 0
}

// SetBack notes whether a cluster's agent claims a number above what was read, and reports
// whether it has done so for so long that the ledger must have been set back. It is for
// the caller to know that the remote has answered meanwhile.
func (c *Claims) SetBack(cluster string, claims bool, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.open[cluster]
	if !claims {
		delete(c.open, cluster)
		return false
	}
	if !known || now.Sub(was.last) > forgotten {
		was.since = now
		for other, o := range c.open {
			if now.Sub(o.last) > forgotten {
				delete(c.open, other)
			}
		}
	}
	was.last = now
	c.open[cluster] = was
	return now.Sub(was.since) >= SetBack
}
