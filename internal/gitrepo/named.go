package gitrepo

import (
	"context"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
)

// Follow has rewritten heads accepted as an operator's entries state, each once, by
// every process that follows them. Call it before the first Fetch.
func (r *Repo) Follow(word letgo.Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.letGo, r.unreached = word, map[letgo.Entry]bool{}
}

// reached are the operator's entries that count at a branch's head.
func (r *Repo) reached(branch string, head tree.Hash) ([]letgo.Entry, error) {
	if r.letGo == nil || head.IsZero() {
		return nil, nil
	}
	return letgo.Reached(r.letGo.Entries(), branch, head, r.within)
}

// isNamed reports whether an entry that counts at a branch's head names a commit.
func (r *Repo) isNamed(branch string, h tree.Hash) bool {
	entries, err := r.reached(branch, r.refs[branch])
	return err == nil && slices.ContainsFunc(entries, func(e letgo.Entry) bool { return e.Commit == h })
}

// isDropped reports whether entries that count at what is accepted of a branch already let
// go of a commit that is not in it.
func (r *Repo) isDropped(branch string, accepted, h tree.Hash) (bool, error) {
	entries, err := r.reached(branch, accepted)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	return letgo.Gone(entries, h, r.refs[branch], r.within)
}

// acceptNamed accepts the rewritten branches that the operator's entries name, and
// reports whether there are any. The caller holds mu.
func (r *Repo) acceptNamed(ctx context.Context) (bool, error) {
	if r.letGo == nil {
		return false, nil
	}
	gone := map[string][]tree.Hash{}
	if err := r.eachGone(ctx, func(ref string, head tree.Hash) error {
		gone[ref] = append(gone[ref], head)
		return nil
	}); err != nil {
		return false, err
	}
	to := map[string]tree.Hash{}
	for ref, list := range gone {
		entries, err := r.reached(ref, r.refs[ref])
		if err != nil {
			return false, err
		}
		at, err := letgo.Take(entries, list, r.within)
		if err != nil {
			return false, err
		}
		if !at.IsZero() {
			to[ref] = at
		}
	}
	if len(to) == 0 {
		return false, nil
	}
	if err := r.acceptAt(ctx, to); err != nil {
		return false, err
	}
	for ref, at := range to {
		r.letGo.Accepted(strings.TrimPrefix(ref, "refs/heads/"), at)
	}
	return true, nil
}

// lookForNamed reports the entries whose commit no branch contains, each once. The caller
// holds mu.
func (r *Repo) lookForNamed() error {
	if r.letGo == nil {
		return nil
	}
	for _, e := range r.letGo.Entries() {
		if r.unreached[e] {
			continue
		}
		found := false
		for _, ref := range []string{r.inputsRef, r.ledgerRef} {
			entries, err := letgo.Reached([]letgo.Entry{e}, ref, r.refs[ref], r.within)
			if err != nil {
				return err
			}
			found = found || len(entries) > 0
		}
		if r.unreached[e] = true; !found {
			r.letGo.Unreached(e)
		}
	}
	return nil
}

// anchorNamed is a commit of the ledger that an operator's entry names and that contains
// all of some; zero: none.
func (r *Repo) anchorNamed(head tree.Hash, all []tree.Hash) (at tree.Hash, err error) {
	entries, err := r.reached(r.ledgerRef, head)
	if err != nil {
		return at, err
	}
	for _, e := range entries {
		holds := true
		for _, h := range append([]tree.Hash{at}, all...) {
			in := h.IsZero()
			if !in {
				if in, err = r.isAncestor(h, e.Commit); err != nil {
					return at, err
				}
			}
			holds = holds && in
		}
		if holds {
			at = e.Commit
		}
	}
	return at, nil
}

// within is isAncestor for commits of which any may be missing here.
func (r *Repo) within(a, b tree.Hash) (bool, error) {
	if !r.store.has(b) {
		return false, nil
	}
	return r.isAncestor(a, b)
}

// isBetween reports whether a commit contains from and is contained in to.
func (r *Repo) isBetween(from, commit, to tree.Hash) (bool, error) {
	in, err := r.isAncestor(commit, to)
	if err != nil || !in {
		return false, err
	}
	return r.isAncestor(from, commit)
}

// Dropping reports whether an operator let go of heads that no commit of ours names yet.
func (r *Repo) Dropping() (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.accepted.Dropped == "" {
		return false, nil
	}
	named, err := r.droppedBy(r.refs[r.ledgerRef])
	if err != nil {
		return false, err
	}
	var open []string
	for line := range strings.SplitSeq(r.accepted.Dropped, ",") {
		branch, hash, _ := strings.Cut(line, " ")
		h, _ := tree.ParseHash(hash) // else it is kept
		known := false
		for _, n := range named {
			if !known && n.branch == branch {
				if known, err = r.within(h, n.head); err != nil {
					return false, err
				}
				known = known || h == n.head
			}
		}
		if !known {
			open = append(open, line)
		}
	}
	if list := strings.Join(open, ","); list != r.accepted.Dropped {
		r.accepted.Dropped, r.unsaved = list, true
		r.trySaveAccepted()
	}
	return len(open) > 0, nil
}

// droppedHead is a head of a branch that was let go of.
type droppedHead struct {
	branch string
	head   tree.Hash
}

// droppedBy is what commits of ours on the ledger's line say was let go of. What was read
// when it was last asked is not read again.
func (r *Repo) droppedBy(head tree.Hash) (out []droppedHead, err error) {
	for h, n := head, 0; !h.IsZero() && n < maxSeek; n++ {
		if h == r.named {
			out = append(out, r.namedThere...)
			break
		}
		c, err := r.info(h)
		if err != nil {
			return nil, err
		}
		if said := c.Trailers(DroppedTrailer); len(said) > 0 {
			ours, err := r.byUs(*r.identity.Load(), h)
			if err != nil {
				return nil, err
			}
			for _, line := range said {
				branch, hash, _ := strings.Cut(line, " ")
				if at, err := tree.ParseHash(hash); err == nil && ours {
					out = append(out, droppedHead{branch, at})
				}
			}
		}
		if len(c.Parents) == 0 {
			break
		}
		h = c.Parents[0]
	}
	r.named, r.namedThere = head, out
	return out, nil
}
