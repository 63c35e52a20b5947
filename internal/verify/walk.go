package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// walk is one verification, from the accepted commit to the head.
type walk struct {
	*commits
	via  tree.Hash
	now  time.Time
	read func(context.Context, tree.Tree) (*rights, error)
	// rights at the end of the line so far, and what they were read from.
	rights     *rights
	rightsFrom tree.Hash
	clean      tree.Hash
	// done are the commits that were judged, held what each of them holds back.
	// Versions share what is equal.
	done map[tree.Hash]bool
	held map[tree.Hash]holdings
}

var nothing holdings

// heldAt is what a commit holds back. What a clean commit of the line descends
// from is as good as accepted with it.
func (w *walk) heldAt(h tree.Hash) holdings { return w.held[h] }

// follow reads the rights that hold after a commit of the line.
func (w *walk) follow(ctx context.Context, at tree.Hash) error {
	t, err := w.tree(at)
	if err != nil {
		return err
	}
	only, err := pick(t, rightsFiles)
	if err != nil {
		return err
	}
	over := map[string]tree.Entry{}
	for _, name := range rightsFiles {
		for path, h := range w.heldAt(at).Under(name) {
			over[path] = h.entry
		}
	}
	if only, err = tree.With(only, over); err != nil {
		return err
	}
	if w.rights != nil && only.Root == w.rightsFrom {
		return nil
	}
	r, err := w.read(ctx, only)
	if err != nil {
		return err
	}
	w.rights, w.rightsFrom = r, only.Root
	return nil
}

// quiet reports whether nothing needs to be verified: no signatures are asked
// for, and who may ask for them has not changed.
func (w *walk) quiet(accepted, head tree.Hash) (bool, error) {
	if w.rights.signed {
		return false, nil
	}
	was, err := w.entry(accepted, "fleet.yaml")
	if err != nil {
		return false, err
	}
	is, err := w.entry(head, "fleet.yaml")
	return was == is, err
}

// run judges every commit between the accepted one and the head, along the
// branch's own line.
func (w *walk) run(ctx context.Context, accepted, head tree.Hash) error {
	line, in, err := w.own(ctx, accepted, head)
	if err != nil {
		return err
	}
	before := accepted
	for _, m := range line {
		for _, c := range w.since(m, in) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if w.held[c.hash], err = w.hold(ctx, c, before); err != nil {
				return err
			}
			w.done[c.hash] = true
		}
		if err := w.follow(ctx, m.hash); err != nil {
			return err
		}
		if !w.rights.signed { // from here on nobody asks
			w.held[m.hash] = nothing
		} else if !w.rights.intents {
			w.held[m.hash] = withoutIntents(w.heldAt(m.hash))
		}
		if w.heldAt(m.hash).Len() == 0 && m.broken == nil {
			w.clean = m.hash
			clear(w.held)
		}
		before = m.hash
	}
	return nil
}

// own is the branch's own line between two commits, and what tells its commits
// and those merged into it from others.
func (w *walk) own(ctx context.Context, accepted, head tree.Hash) (line []*commit, in func(tree.Hash) bool, err error) {
	if in, err = w.only(ctx, head, accepted); err != nil {
		return nil, nil, err
	}
	if line, err = w.line(accepted, head, in); err != nil {
		return nil, nil, err
	}
	before := accepted
	for _, c := range line {
		if was, known := w.main[c.hash]; !known || was != before {
			w.main[c.hash] = before
			w.lines++
		}
		before = c.hash
	}
	return line, in, nil
}

// branch judges the commits that a branch has more than another, as if they
// were merged there now.
func (w *walk) branch(ctx context.Context, into, head tree.Hash) error {
	in, err := w.only(ctx, head, into)
	if err != nil {
		return err
	}
	top, err := w.get(head)
	if err != nil {
		return err
	}
	for _, c := range w.since(top, in) {
		if w.held[c.hash], err = w.hold(ctx, c, into); err != nil {
			return err
		}
	}
	return nil
}

// line is the branch's own: from the accepted commit, which is left out, to the
// head, by first parents where they lead back to it, and to via first.
func (w *walk) line(accepted, head tree.Hash, in func(tree.Hash) bool) ([]*commit, error) {
	leads, through := map[tree.Hash]bool{accepted: true}, map[tree.Hash]bool{}
	top, err := w.get(head)
	if err != nil {
		return nil, err
	}
	for _, c := range w.inOrder(top, in, map[tree.Hash]bool{}) {
		leads[c.hash] = slices.ContainsFunc(c.parents, func(p tree.Hash) bool { return leads[p] })
		through[c.hash] = leads[c.hash] && (c.hash == w.via || slices.ContainsFunc(c.parents, func(p tree.Hash) bool { return through[p] }))
	}
	var out []*commit
	for c := top; c.hash != accepted; {
		if !leads[c.hash] {
			return nil, fmt.Errorf("verify %s: %w %s", head.Short(), ErrNoDescendant, accepted.Short())
		}
		out = append(out, c)
		i := slices.IndexFunc(c.parents, func(p tree.Hash) bool { return through[p] })
		if i < 0 {
			i = slices.IndexFunc(c.parents, func(p tree.Hash) bool { return leads[p] })
		}
		if c, err = w.get(c.parents[i]); err != nil {
			return nil, err
		}
	}
	slices.Reverse(out)
	return out, nil
}

// since are the commits of the range that a commit brings, parents first, and
// the commit itself.
func (w *walk) since(c *commit, in func(tree.Hash) bool) []*commit {
	seen := map[tree.Hash]bool{}
	return w.inOrder(c, func(h tree.Hash) bool { return in(h) && !w.done[h] }, seen)
}

// inOrder lists a commit and what it descends from, as far as wanted, parents
// first.
func (w *walk) inOrder(from *commit, want func(tree.Hash) bool, seen map[tree.Hash]bool) []*commit {
	type step struct {
		c    *commit
		next int
	}
	var out []*commit
	stack := []step{{c: from}}
	seen[from.hash] = true
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == len(top.c.parents) {
			out = append(out, top.c)
			stack = stack[:len(stack)-1]
			continue
		}
		p := top.c.parents[top.next]
		top.next++
		if c := w.known[p]; c != nil && !seen[p] && want(p) {
			seen[p] = true
			stack = append(stack, step{c: c})
		}
	}
	return out
}

// hold is what a commit holds back. before is the commit of the line that its
// branch is merged into.
func (w *walk) hold(ctx context.Context, c *commit, before tree.Hash) (holdings, error) {
	broken, err := w.whole(c)
	switch {
	case err != nil:
		return nothing, err
	case broken != nil: // it says nothing: what its parent has goes on
		return w.heldAt(w.parent(c)), nil
	case !w.rights.signed:
		return nothing, nil
	}
	changes, err := w.changesOf(c)
	if err != nil {
		return nothing, err
	}
	if len(changes) > 1 {
		return w.holdMerge(ctx, c, changes, before)
	}
	over := nothing
	parent := tree.Hash{}
	if len(c.parents) > 0 {
		parent = c.parents[0]
		over = w.heldAt(parent)
	}
	if len(changes[0]) == 0 {
		return over, nil
	}
	next := over.Edit()
	var shut closed
	j := shut.over(w.judge(c))
	for _, ch := range withCovered(changes[0], over) {
		keep := &held{entry: ch.was, at: parent}
		if old, ok := over.Get(ch.path); ok {
			keep.entry, keep.at = old.entry, old.at
		}
		if v := j(ch.path); ch.is == keep.entry || v.why == "" {
			next.Delete(ch.path)
		} else {
			keep.commit, keep.why, keep.unapproved = c, v.why, v.unapproved
			next.Set(ch.path, keep)
			shut.add(ch.path, ch.is, v)
		}
	}
	return next.Done(), nil
}

// judge judges a commit's signature path by path, once for all paths of one
// owner.
func (w *walk) judge(c *commit) func(path string) verdict {
	known := map[string]verdict{}
	var raw []byte
	return func(path string) verdict {
		owner := tenantOf(path)
		v, ok := known[owner]
		if ok {
			return v
		}
		if raw == nil {
			var err error
			if raw, err = w.history.RawCommit(c.hash); err != nil {
				return verdict{why: err.Error()}
			}
		}
		v = w.rights.judge(signed{c.hash, raw, w.now, w.ancestor}, path)
		known[owner] = v
		return v
	}
}

// ancestor tells whether a commit is another or was made before it.
func (cs *commits) ancestor(a, b tree.Hash) (bool, error) {
	return cs.graph.Holds(context.Background(), b, a)
}

// entry is what stands at a path in a commit's tree; zero: nothing but maybe a
// directory.
func (w *walk) entry(at tree.Hash, path string) (tree.Entry, error) {
	if at.IsZero() {
		return tree.Entry{}, nil
	}
	t, err := w.tree(at)
	if err != nil {
		return tree.Entry{}, err
	}
	e, err := t.Find(path)
	if errors.Is(err, fs.ErrNotExist) {
		return tree.Entry{}, nil
	}
	return leaf(e), err
}
