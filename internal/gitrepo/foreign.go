package gitrepo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// ForeignEdit is a generated path whose content is somebody else's.
type ForeignEdit struct {
	Path string
	// Commit is the newest foreign commit that changed it.
	Commit Commit
	// Was is what stood there before the foreign hands (a zero entry: nothing),
	// to put back.
	Was tree.Entry
}

// Ours tells whether a commit was made by one of us: in a signed fleet by the
// signature over its bytes as stored, in an unsigned one by our committer and
// a Plan trailer.
func (r *Repo) Ours(h tree.Hash) (bool, error) {
	return r.ours(*r.identity.Load(), h)
}

func (r *Repo) ours(id Identity, h tree.Hash) (bool, error) {
	if !id.Trusted.Empty() {
		return r.SignedBy(h, id.Trusted)
	}
	c, err := r.info(h)
	if err != nil {
		return false, err
	}
	return strings.EqualFold(c.Committer.Email, id.Email) && c.Trailer("Plan") != "", nil
}

// SignedBy tells whether a commit carries a signature by one of the keys, over
// its bytes as they are stored.
func (r *Repo) SignedBy(h tree.Hash, keys Keys) (bool, error) {
	raw, err := r.store.rawCommit(h)
	if err != nil {
		return false, err
	}
	signed, err := keys.Signed(raw)
	if err != nil {
		return false, fmt.Errorf("commit %s: %w", h, err)
	}
	return signed, nil
}

// Foreign lists the generated paths whose content comes from commits other
// than ours, among the commits reachable from to and not from from, by newest
// commit. Give it the accepted ledger head and the present one. What one of us
// wrote over since, or what is back to what it was, is not listed. Nil
// prefixes: the generated ones of the options. A zero from finds nothing: on a
// first start there is no state to hold others to.
func (r *Repo) Foreign(ctx context.Context, from, to tree.Hash, prefixes []string) ([]ForeignEdit, error) {
	r.mu.Lock()
	offers := r.offered()
	r.mu.Unlock()
	return r.foreign(ctx, *r.identity.Load(), from, to, prefixes, offers)
}

func (r *Repo) foreign(ctx context.Context, id Identity, from, to tree.Hash, prefixes []string, offers []tree.Hash) ([]ForeignEdit, error) {
	if from.IsZero() {
		return nil, nil
	}
	if prefixes == nil {
		prefixes = r.opts.Generated
	}
	commits, err := r.between(ctx, from, to)
	if err != nil {
		return nil, err
	}
	edits := map[string]*ForeignEdit{}
	ours := map[string]bool{} // paths below whose newest own change we are
	var order []string
	for _, c := range commits {
		paths, err := r.touched(c, prefixes)
		if err != nil {
			return nil, err
		}
		dropped, err := r.dropped(ctx, c, prefixes)
		if err != nil {
			return nil, err
		}
		paths = slices.AppendSeq(paths, maps.Keys(dropped))
		slices.Sort(paths)
		if len(paths) == 0 {
			continue
		}
		own, err := r.ours(id, c.Hash)
		if err == nil && !own {
			own, err = r.isOffer(id, c, offers)
		}
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			switch {
			case ours[p]:
			case own:
				ours[p] = true
			default:
				if edits[p] == nil {
					edits[p] = &ForeignEdit{Path: p, Commit: c}
					order = append(order, p)
				}
				if was, is := dropped[p]; is {
					edits[p].Was = was
				} else if edits[p].Was, err = r.before(c, p); err != nil {
					return nil, err
				}
			}
		}
	}
	return r.standing(edits, order, to)
}

// dropped are the paths under any of the prefixes that a merge has as one of
// its parents has them, though another had changed them since the two parted,
// with what that one has: what a merge rolls back that takes an old commit's
// tree. A branch that was cut before our last commits, and knows nothing of
// them, drops nothing.
func (r *Repo) dropped(ctx context.Context, c Commit, prefixes []string) (map[string]tree.Entry, error) {
	if len(c.Parents) < 2 {
		return nil, nil
	}
	out := map[string]tree.Entry{}
	for _, left := range c.Parents {
		lost, err := r.differing(left, c.Hash, prefixes)
		if err != nil {
			return nil, err
		}
		for _, kept := range c.Parents {
			if kept == left || len(lost) == 0 {
				continue
			}
			if err := r.droppedFor(ctx, left, kept, lost, out, prefixes); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// difference is what two commits have at a path.
type difference struct{ was, is tree.Entry }

// differing are the paths under any of the prefixes in which two commits differ.
func (r *Repo) differing(a, b tree.Hash, prefixes []string) (map[string]difference, error) {
	at, err := r.Tree(a)
	if err != nil {
		return nil, err
	}
	bt, err := r.Tree(b)
	if err != nil {
		return nil, err
	}
	out := map[string]difference{}
	for _, prefix := range prefixes {
		if err := diffUnder(at, bt, prefix, func(p string, was, is tree.Entry) error {
			out[p] = difference{was, is}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// droppedFor adds to out those of the lost paths that the merge has as its
// parent kept has them, and that its parent left changed since the two parted.
func (r *Repo) droppedFor(ctx context.Context, left, kept tree.Hash, lost map[string]difference, out map[string]tree.Entry, prefixes []string) error {
	kt, err := r.Tree(kept)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for p, d := range lost {
		e, err := find(kt, p)
		if err != nil {
			return err
		}
		if e == d.is {
			open[p] = true
		}
	}
	if len(open) == 0 {
		return nil
	}
	commits, err := r.between(ctx, kept, left)
	if err != nil {
		return err
	}
	for _, c := range commits {
		paths, err := r.touched(c, prefixes)
		if err != nil {
			return err
		}
		for _, p := range paths {
			if open[p] {
				out[p] = lost[p].was
				delete(open, p)
			}
		}
	}
	return nil
}

// before is what stood at a path before a commit.
func (r *Repo) before(c Commit, p string) (tree.Entry, error) {
	if len(c.Parents) == 0 {
		return tree.Entry{}, nil
	}
	t, err := r.Tree(c.Parents[0])
	if err != nil {
		return tree.Entry{}, err
	}
	return find(t, p)
}

// standing leaves out the edits of which nothing is left at a commit.
func (r *Repo) standing(edits map[string]*ForeignEdit, order []string, at tree.Hash) ([]ForeignEdit, error) {
	t, err := r.Tree(at)
	if err != nil {
		return nil, err
	}
	var out []ForeignEdit
	for _, p := range order {
		is, err := find(t, p)
		if err != nil {
			return nil, err
		}
		if is != edits[p].Was {
			out = append(out, *edits[p])
		}
	}
	return out, nil
}
