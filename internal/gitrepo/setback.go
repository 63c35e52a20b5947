package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

const (
	// mostEarly bounds what is read of a refused head's pack for its commits, in bytes.
	mostEarly = 16 << 20
	// setBackPause is how long a set-back that failed is not tried again.
	setBackPause = 5 * time.Minute
)

// errSeen ends a fetch of which enough was read.
var errSeen = errors.New("enough was read")

// SetBack puts the ledger back from a head that cannot be taken in: to the newest
// commit of ours below it, or to where the branch stood. A commit on top, as for
// other foreign edits, would bring the same objects. Only commits of others are
// dropped: all that lie in between are read first, without their files, and where
// one of them is missing, or ours is among them out of order, a person must do it.
// The branch moves by compare-and-swap, though not forward, so a server that
// forbids that refuses. may says whether this process writes the ledger. The commit
// is zero, and the error nil, where nothing is refused; a failure is not tried again
// for a while.
func (r *Repo) SetBack(ctx context.Context, may bool) (to tree.Hash, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.refused[r.ledgerRef]
	if !ok {
		return to, nil
	}
	if now := r.opts.Now(); h.failed == nil || !now.Before(h.until) {
		switch {
		case !may:
			err = errors.New("this daemon may not")
		case r.inputsRef == r.ledgerRef:
			err = errors.New("the branch is that of the inputs too, where people merge")
		default:
			to, err = r.setBack(ctx, h)
		}
		h.failed, h.until = err, now.Add(setBackPause)
		if !may {
			h.until = now
		}
	}
	if h.failed == nil {
		delete(r.refused, r.ledgerRef)
		return to, nil
	}
	r.refused[r.ledgerRef] = h
	branch := strings.TrimPrefix(r.ledgerRef, "refs/heads/")
	return tree.Hash{}, fmt.Errorf("%s is at %s, which cannot be taken in (%w), and was not set back: %w; nothing is written until it is: git push --force-with-lease=%s:%s origin %s:%s",
		branch, h.head.Short(), h.why, h.failed, branch, h.head, h.stood, branch)
}

func (r *Repo) setBack(ctx context.Context, h refusedHead) (tree.Hash, error) {
	early := gitobj.Set{}
	err := r.remote.Fetch(ctx, func(refs map[string]tree.Hash) (want, have []tree.Hash) {
		if refs[r.ledgerRef] != h.head {
			return nil, nil
		}
		return []tree.Hash{h.head}, r.haves()
	}, func(pack io.Reader) (err error) {
		if early, err = gitobj.EarlyCommits(pack, mostEarly); err == nil {
			err = errSeen
		}
		return err
	})
	if err != nil && !errors.Is(err, errSeen) {
		return tree.Hash{}, err
	}
	to, err := r.newestBelow(h, early)
	if err != nil {
		return to, err
	}
	pack, err := gitobj.Set{}.Pack()
	if err != nil {
		return to, err
	}
	perr := r.remote.Push(ctx, []Command{{Ref: r.ledgerRef, Old: h.head, New: to}}, pack)
	if perr == nil {
		return to, nil
	}
	refs, err := r.remote.Refs(ctx)
	if err == nil && refs[r.ledgerRef] == to {
		return to, nil
	}
	return to, errors.Join(perr, err)
}

// below is what a refused head, or a commit below it, stands on: commits that are
// not here, and those here that they begin on.
type below struct{ brought, here []tree.Hash }

// broughtBy walks the commits that a head brings. stop ends the walk below a commit.
func (r *Repo) broughtBy(head tree.Hash, brought gitobj.Set, stop func(tree.Hash) bool) (below, error) {
	var out below
	seen := map[tree.Hash]bool{head: true}
	for queue := []tree.Hash{head}; len(queue) > 0; queue = queue[1:] {
		h := queue[0]
		if r.store.has(h) {
			out.here = append(out.here, h)
			continue
		}
		o, ok := brought[h]
		if !ok {
			return out, fmt.Errorf("commit %s below it cannot be read", h.Short())
		}
		out.brought = append(out.brought, h)
		if stop(h) {
			continue
		}
		c, err := gitobj.ParseCommit(o.Data)
		if err != nil {
			return out, err
		}
		for _, p := range c.Parents {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return out, nil
}

// newestBelow is the commit that a refused head's foreign commits stand on: one of
// ours, or one that is here. It contains what stood and all others such.
func (r *Repo) newestBelow(h refusedHead, brought gitobj.Set) (tree.Hash, error) {
	id := *r.identity.Load()
	ours := func(c tree.Hash) bool { // also what has no number: a set-back drops nothing that we signed
		by, err := r.byUsRaw(id, c, brought[c].Data)
		return by && err == nil
	}
	if _, ok := brought[h.head]; ok && ours(h.head) {
		return tree.Hash{}, errors.New("a key of the ledger signed it")
	}
	all, err := r.broughtBy(h.head, brought, ours)
	if err != nil {
		return tree.Hash{}, err
	}
	tips := append(slices.DeleteFunc(all.brought, func(c tree.Hash) bool { return !ours(c) }), all.here...)
	for _, to := range tips {
		holds, err := r.broughtBy(to, brought, func(tree.Hash) bool { return false })
		if err != nil {
			return tree.Hash{}, err
		}
		in := func(c tree.Hash) (bool, error) {
			if slices.Contains(holds.brought, c) {
				return true, nil
			}
			for _, on := range holds.here {
				if ok, err := r.isAncestor(c, on); ok || err != nil {
					return ok, err
				}
			}
			return false, nil
		}
		newest := true
		for _, c := range append([]tree.Hash{h.stood}, tips...) {
			ok, err := in(c)
			if err != nil {
				return tree.Hash{}, err
			}
			newest = newest && ok
		}
		if newest {
			return to, nil
		}
	}
	return tree.Hash{}, fmt.Errorf("no commit below it contains %s, where the branch stood, and all that is ours", h.stood.Short())
}
