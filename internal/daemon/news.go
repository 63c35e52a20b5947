package daemon

import (
	"context"
	"sync/atomic"
	"time"
)

// How the rounds that only reports ask for are kept apart: the loop rests several times as
// long as its newest plan took, so that a fleet whose clusters report all the time uses a fifth of a
// processor for that, on each replica. It does not rest long, lest what is reported wait: plans
// that take longer than a quarter of a second use more of one.
const (
	restPerPlan = 4
	restAtMost  = time.Second
)

// News wakes the loop when the market or a cluster has news. News of a cluster, and whatever
// else wakes the loop, never waits. The zero value is ready. Planned is safe for any goroutine.
type News struct {
	planned atomic.Int64 // nanoseconds that the newest plan took
}

// Planned notes how long a plan took.
func (n *News) Planned(took time.Duration) { n.planned.Store(int64(took)) }

// rest is how long after a wake the market may wake again.
func (n *News) rest() time.Duration {
	took := time.Duration(n.planned.Load())
	return took + min(restPerPlan*took, restAtMost)
}

// Follow wakes when market or cluster receives, the market's news after a rest, until the
// context ends. One receive of market may stand for many changes: it holds what comes
// meanwhile.
func (n *News) Follow(ctx context.Context, market, cluster <-chan struct{}, wake func()) error {
	var rests <-chan time.Time
	for {
		heard := market
		if rests != nil {
			heard = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-rests:
			rests = nil
			continue
		case <-heard:
			rests = nil
			if d := n.rest(); d > 0 {
				rests = time.After(d)
			}
		case <-cluster:
		}
		wake()
	}
}
