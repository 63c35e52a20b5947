package sim

import (
	"context"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// judgeReplay makes every decision of the history again: each must come out as
// it was committed.
func (s *sim) judgeReplay() {
	r := replay.Replayer{History: s.remote.Objects(), Published: func(ctx context.Context, when time.Time) (gitrepo.Published, error) {
		return gitrepo.ReadPublished(ctx, s.remote, when)
	}}
	if s.rooted != nil {
		r.Root = s.rooted.root
	}
	for h := s.remote.Head(s.people.ledger); !h.IsZero() && s.failure == nil; {
		raw, err := r.History.Commit(h)
		if err != nil {
			s.fail("replay", "%v", err)
			return
		}
		c, err := gitobj.ParseCommit(raw)
		if err != nil {
			s.fail("replay", "%v", err)
			return
		}
		if len(gitobj.Trailers(c.Message, tracing.Trailer)) > 0 {
			s.counts.Traced++
		}
		if len(gitobj.Trailers(c.Message, replay.Trailer)) > 0 && s.signed(h) {
			s.counts.Replayed++
			res, err := r.Replay(context.Background(), h)
			switch {
			case err != nil:
				s.fail("replay", "%v", err)
			case !res.Same:
				s.fail("replay", "%s states %s, decided again it is %s: %+v", h.Short(), res.Plan, res.Replayed, res.Differences)
			}
		}
		if h = (tree.Hash{}); len(c.Parents) > 0 {
			h = c.Parents[0]
		}
	}
}
