package gitrepo

import (
	"context"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// brought says of commits of ours, met on a walk that has each before its
// ancestors, whether they count on the ledger. One with a number was pushed there,
// onto what is accepted: one that stands elsewhere was let go of by an operator, and
// merged back by people. One without is an offer, signed by us and good on the ground that it was made
// on, and nowhere else: it counts where one of ours on the ledger stands on it, or
// where people brought it to just what it was made on while it stood. An old offer
// that somebody merges later would sell again what was sold since.
type brought struct {
	ctx context.Context //nolint:containedctx // of one walk
	r   *Repo
	id  Identity
	// offers are those that people may bring now.
	offers []tree.Hash
	// counts are commits that count if they are ours.
	counts map[tree.Hash]standing
	// onto are the commits that have the accepted one below them; nil: all.
	onto map[tree.Hash]bool
}

// standing is why a commit without a number may count.
type standing int

const (
	people standing = iota + 1 // brought it to where it was made
	ledger                     // went over it: one of ours stands on it
)

// broughtTo begins a walk over what was added to an accepted commit, from the head
// that it lists first.
func (r *Repo) broughtTo(ctx context.Context, id Identity, from, to tree.Hash, added []Commit, offers []tree.Hash) *brought {
	b := &brought{ctx, r, id, offers, map[tree.Hash]standing{to: people}, map[tree.Hash]bool{from: true}}
	for _, c := range slices.Backward(added) {
		b.onto[c.Hash] = slices.ContainsFunc(c.Parents, func(p tree.Hash) bool { return b.onto[p] })
	}
	if !b.onto[to] {
		b.onto = nil
	}
	return b
}

// own reports whether a commit is ours and counts, and notes which of its parents
// do so with it.
func (b *brought) own(c Commit) (bool, error) {
	own, err := b.r.byUs(b.id, c.Hash)
	if err != nil {
		return false, err
	}
	why := b.counts[c.Hash]
	if own && why != ledger {
		if own, err = b.r.hasNumber(c, why == people); err != nil {
			return false, err
		}
		own = own && (b.onto == nil || b.onto[c.Hash])
		// In an unsigned fleet anybody can write what looks like an offer that stands.
		signed := b.id.Signed || !b.id.Trusted.Empty()
		own = own || why == people && (!signed || slices.Contains(b.offers, c.Hash))
	}
	if own {
		why = ledger
	}
	if goesOn, err := b.goesOn(c, own); err != nil {
		return false, err
	} else if goesOn {
		b.counts[c.Parents[0]] = max(b.counts[c.Parents[0]], why)
	}
	if own || why == 0 || len(c.Parents) < 2 || len(c.Parents) > tree.MaxParents {
		return own, nil
	}
	for _, offer := range c.Parents {
		for _, into := range c.Parents {
			if offer == into || b.counts[offer] != 0 {
				continue
			}
			if on, err := b.r.onItsGround(c.Hash, offer, into); err != nil {
				return false, err
			} else if on {
				b.counts[offer] = people
			}
		}
	}
	return false, nil
}

// stands reports whether a commit that own was asked of is on the ledger's own way, and not
// on a branch that was merged into it.
func (b *brought) stands(c Commit) bool { return b.counts[c.Hash] != 0 }

// goesOn reports whether the ledger's way goes on from a commit to its first parent: from a
// merge of people's only where the others have decided nothing since they parted from it, or
// the first may be what was brought, and another one the ledger.
func (b *brought) goesOn(c Commit, own bool) (bool, error) {
	if len(c.Parents) < 2 || own {
		return len(c.Parents) > 0, nil
	}
	if len(c.Parents) > tree.MaxParents {
		return false, nil
	}
	for _, other := range c.Parents[1:] {
		bases, err := b.r.graph.Bases(b.ctx, c.Parents[0], other)
		if err != nil {
			return false, err
		}
		for _, base := range bases {
			if same, err := b.r.sameGenerated(other, base); err != nil || !same {
				return false, err
			}
		}
	}
	return true, nil
}

// onItsGround reports whether a merge of a commit into another has all generated
// paths as the former has them, and the latter as that one's parent had.
func (r *Repo) onItsGround(merge, offer, into tree.Hash) (bool, error) {
	o, err := r.info(offer)
	if err != nil || len(o.Parents) != 1 {
		return false, err
	}
	same, err := r.sameGenerated(merge, offer)
	if err != nil || !same {
		return false, err
	}
	return r.sameGenerated(into, o.Parents[0])
}

// hasNumber reports whether a commit of ours has its number on the ledger; with
// old, whether it may be from before there were any: it and all below have none.
func (r *Repo) hasNumber(c Commit, old bool) (bool, error) {
	if seq, err := r.sequenceOf(c); err != nil || seq > 0 || !old {
		return seq > 0, err
	}
	seen := map[tree.Hash]bool{}
	for queue := slices.Clone(c.Parents); len(queue) > 0; queue = queue[1:] {
		if seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		c, err := r.info(queue[0])
		if err != nil {
			return false, err
		}
		if seq, err := r.sequenceOf(c); err != nil || seq > 0 {
			return false, err
		}
		queue = append(queue, c.Parents...)
	}
	return true, nil
}
