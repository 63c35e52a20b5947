// Package bulletin keeps what clusters are told beside contracts, to be shown as Events.
// It is only in memory: who restarts tells what comes from then on.
//
// Caller: reconciler. A Board is safe for concurrent use.
package bulletin

import (
	"slices"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Bounds of what is kept: Kubernetes itself keeps an Event for an hour.
const (
	Age  = time.Hour
	Each = 50 // of a cluster; the oldest go first
)

// Board is the news by cluster. The zero value has none.
type Board struct {
	mu sync.Mutex
	by map[string][]wire.News
}

// Of is what a cluster is told now, oldest first.
func (b *Board) Of(cluster string, now time.Time) []wire.News {
	b.mu.Lock()
	defer b.mu.Unlock()
	young := func(n wire.News) bool { return now.Sub(n.At.Time) < Age }
	list := b.by[cluster]
	if i := slices.IndexFunc(list, young); i < 0 {
		delete(b.by, cluster)
	} else if i > 0 {
		b.by[cluster] = slices.Clone(list[i:])
	}
	return b.by[cluster]
}

// Add adds news of a cluster unless they are known.
func (b *Board) Add(cluster string, n wire.News) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.by[cluster]
	if slices.ContainsFunc(list, func(o wire.News) bool { return o.ID == n.ID }) {
		return
	}
	if b.by == nil {
		b.by = map[string][]wire.News{}
	}
	list = append(slices.Clone(list), n) // who was told the former list may still read it
	b.by[cluster] = list[max(0, len(list)-Each):]
}
