package gitrepo

import (
	"context"
	"fmt"
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
				if edits[p].Was, err = r.before(c, p); err != nil {
					return nil, err
				}
			}
		}
	}
	return r.standing(edits, order, to)
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
