package gitrepo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// ForeignEdit is a generated path whose content is not the daemon's.
type ForeignEdit struct {
	// Path; of a commit that says nothing the directory that is broken, "" for
	// the whole tree.
	Path string
	// Broken is why the commit says nothing, "" when it does: git refuses its
	// tree, or it is too large. There is nothing to put back: the next commit of
	// ours stands on what was before.
	Broken string
	// Commit is the newest foreign commit that changed it.
	Commit Commit
	// Was is what stood there before the foreign hands, to put back. A zero entry:
	// nothing, or a directory, of which each file has an edit of its own.
	Was tree.Entry
}

// MadeByUs tells whether one of us made a commit, wherever it stands: in a signed
// fleet by the signature over its bytes as stored, in an unsigned one by our
// committer and a Plan trailer.
func (r *Repo) MadeByUs(h tree.Hash) (bool, error) { return r.byUs(*r.identity.Load(), h) }

func (r *Repo) byUs(id Identity, h tree.Hash) (bool, error) {
	raw, err := r.store.rawCommit(h)
	if err != nil {
		return false, fmt.Errorf("read commit %s: %w", h.Short(), err)
	}
	return r.byUsRaw(id, h, raw)
}

func (r *Repo) byUsRaw(id Identity, h tree.Hash, raw []byte) (bool, error) {
	c, err := gitobj.ParseCommit(raw)
	if err != nil {
		return false, fmt.Errorf("commit %s: %w", h, err)
	}
	trailer := func(key string) string { return append(gitobj.Trailers(c.Message, key), "")[0] }
	if fleet := trailer(FleetTrailer); fleet != "" && id.Fleet != "" && fleet != id.Fleet || gitobj.Repeated(c.Message) != "" {
		return false, nil // a commit of another fleet that shares our key, or of two readings
	}
	if id.Signed || !id.Trusted.Empty() {
		_, err := id.Trusted.SignedCommit(h, raw, time.Now(), r.isAncestor)
		return err == nil, nil
	}
	return strings.EqualFold(c.Committer.Email, id.Email) && trailer("Plan") != "", nil
}

// SignedBy tells whether a commit carries a signature by one of the keys, over
// its bytes as they are stored.
func (r *Repo) SignedBy(h tree.Hash, keys Keys) (bool, error) {
	raw, err := r.store.rawCommit(h)
	if err != nil {
		return false, err
	}
	if _, known := proven.Key(raw); !known {
		if _, err := gitobj.ParseCommit(raw); err != nil {
			return false, fmt.Errorf("commit %s: %w", h, err)
		}
	}
	_, err = keys.SignedCommit(h, raw, time.Now(), r.isAncestor)
	return err == nil, nil
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
	v := r.ledger(from)
	_, brokens, err := v.said(to)
	if err != nil {
		return nil, err
	}
	var out []ForeignEdit
	for _, b := range brokens {
		out = append(out, ForeignEdit{Path: b.Path, Broken: b.Why, Commit: b.Commit})
	}
	if from.IsZero() {
		return out, nil
	}
	if prefixes == nil {
		prefixes = r.opts.Generated
	}
	commits, err := r.between(ctx, from, to)
	if err != nil {
		return nil, err
	}
	edits := map[string]*ForeignEdit{}
	brought := r.broughtTo(ctx, id, from, to, commits, offers)
	ours := map[string]bool{} // paths below whose newest own change we are
	var order []string
	for _, c := range commits {
		own, err := brought.own(c)
		if err != nil {
			return nil, err
		}
		paths, err := v.touched(c, prefixes)
		if err != nil {
			return nil, err
		}
		dropped, err := v.dropped(ctx, c, prefixes)
		if err != nil {
			return nil, err
		}
		paths = slices.AppendSeq(paths, maps.Keys(dropped))
		slices.Sort(paths)
		if len(paths) == 0 {
			continue
		}
		if !own && brought.stands(c) {
			if own, err = r.isOffer(id, c, offers); err != nil {
				return nil, err
			}
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
				} else if edits[p].Was, err = v.before(c, p); err != nil {
					return nil, err
				}
			}
		}
	}
	edited, err := v.standing(edits, order, to)
	return append(out, edited...), err
}

// dropped are the paths under any of the prefixes that a merge has as one of
// its parents has them, though another had changed them since the two parted,
// with what that one has: what a merge rolls back that takes an old commit's
// tree. A branch that was cut before our last commits, and knows nothing of
// them, drops nothing.
func (v view) dropped(ctx context.Context, c Commit, prefixes []string) (map[string]tree.Entry, error) {
	if len(c.Parents) < 2 {
		return nil, nil
	}
	if broken, err := v.broken(c); err != nil || broken != nil {
		return nil, err
	}
	out := map[string]tree.Entry{}
	for _, left := range c.Parents {
		lost, err := v.differing(left, c.Hash, prefixes)
		if err != nil {
			return nil, err
		}
		for _, kept := range c.Parents {
			if kept == left || len(lost) == 0 {
				continue
			}
			if err := v.droppedFor(ctx, left, kept, lost, out, prefixes); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// difference is what two commits have at a path.
type difference struct{ was, is tree.Entry }

// differing are the paths under any of the prefixes in which two commits differ.
func (v view) differing(a, b tree.Hash, prefixes []string) (map[string]difference, error) {
	at, err := v.tree(a)
	if err != nil {
		return nil, err
	}
	bt, err := v.tree(b)
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
func (v view) droppedFor(ctx context.Context, left, kept tree.Hash, lost map[string]difference, out map[string]tree.Entry, prefixes []string) error {
	kt, err := v.tree(kept)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for p, d := range lost {
		e, err := find(kt, p)
		if err != nil {
			return err
		}
		if asFile(e) == d.is {
			open[p] = true
		}
	}
	if len(open) == 0 {
		return nil
	}
	commits, err := v.r.between(ctx, kept, left)
	if err != nil {
		return err
	}
	for _, c := range commits {
		paths, err := v.touched(c, prefixes)
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
	return v.changedSince(ctx, left, kept, open, lost, out)
}

// changedSince adds to out those of the open paths that the parent left has otherwise than
// it had when the two parted: a merge on its way may have changed them, which has what one of
// its own parents has, so that no commit touched them.
func (v view) changedSince(ctx context.Context, left, kept tree.Hash, open map[string]bool, lost map[string]difference, out map[string]tree.Entry) error {
	if len(open) == 0 {
		return nil
	}
	bases, err := v.r.graph.Bases(ctx, left, kept)
	if err != nil {
		return err
	}
	for _, b := range bases {
		t, err := v.tree(b)
		if err != nil {
			return err
		}
		for p := range open {
			e, err := find(t, p)
			if err != nil {
				return err
			}
			if asFile(e) != lost[p].was {
				out[p] = lost[p].was
			}
		}
	}
	return nil
}

// before is the file that stood at a path before a commit. A directory there is
// none: what stood below it has edits of its own.
func (v view) before(c Commit, p string) (tree.Entry, error) {
	if len(c.Parents) == 0 {
		return tree.Entry{}, nil
	}
	t, err := v.tree(c.Parents[0])
	if err != nil {
		return tree.Entry{}, err
	}
	e, err := find(t, p)
	return asFile(e), err
}

// standing leaves out the edits of which nothing is left at a commit.
func (v view) standing(edits map[string]*ForeignEdit, order []string, at tree.Hash) ([]ForeignEdit, error) {
	t, err := v.tree(at)
	if err != nil {
		return nil, err
	}
	var out []ForeignEdit
	for _, p := range order {
		is, err := find(t, p)
		if err != nil {
			return nil, err
		}
		if asFile(is) != edits[p].Was {
			out = append(out, *edits[p])
		}
	}
	return out, nil
}
