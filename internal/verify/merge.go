package verify

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// side is one parent of a merge, at one path.
type side struct {
	parent tree.Hash
	// raw is what its tree has, e what may be acted on; held is set where they
	// differ.
	raw, e tree.Entry
	held   *held
}

// holdMerge is what a merge holds back: wherever its tree is not the three-way
// merge of what may be acted on in its sides, unless it is signed itself.
func (w *walk) holdMerge(ctx context.Context, c *commit, changes [][]change, before tree.Hash) (holdings, error) {
	main := max(0, slices.Index(c.parents, before))
	over := w.heldAt(c.parents[main])
	next := over.Edit()
	m := &merge{walk: w, commit: c, main: main, found: map[[2]tree.Hash]common3{}}
	var shut closed
	judge := shut.over(w.judge(c))
	for _, path := range m.paths(changes) {
		is, sides, err := m.sides(path, changes)
		if err != nil {
			return nothing, err
		}
		e, at, err := m.three(ctx, path, sides)
		if err != nil {
			return nothing, err
		}
		if keep := verdictOf(c, is, e, at, sides, func() verdict { return judge(path) }); keep != nil {
			next.Set(path, keep)
			shut.add(path, is, verdict{why: keep.why, unapproved: keep.unapproved})
		} else {
			next.Delete(path)
		}
	}
	return next.Done(), nil
}

// verdictOf is what a merge holds back at a path, nil when nothing: its tree
// has is, and what may be acted on by its sides is e.
func verdictOf(c *commit, is, e tree.Entry, at tree.Hash, sides []side, judge func() verdict) *held {
	if is == e {
		return nil
	}
	// What it only brings in is not made good by its own signature, unless all
	// that was wanting is an approval.
	brought := slices.IndexFunc(sides, func(s side) bool { return s.raw == is && s.held != nil })
	clean := slices.ContainsFunc(sides, func(s side) bool { return s.raw == is && s.held == nil })
	v := judge()
	if brought >= 0 && !clean {
		h := *sides[brought].held
		if h.unapproved && v.why == "" {
			return nil
		}
		h.entry, h.at = e, at
		return &h
	}
	if v.why == "" {
		return nil
	}
	return &held{entry: e, at: at, commit: c, why: v.why, unapproved: v.unapproved}
}

// merge is one merge while it is looked at.
type merge struct {
	*walk
	commit *commit
	main   int
	found  map[[2]tree.Hash]common3
}

// common3 are the best common ancestors of two sides.
type common3 struct {
	list []tree.Hash
	ok   bool
}

// paths at which a merge differs from a side, or a side holds something back.
func (m *merge) paths(changes [][]change) []string {
	all := map[string]bool{}
	for _, list := range changes {
		for _, ch := range list {
			all[ch.path] = true
		}
	}
	for _, p := range m.commit.parents {
		for path := range m.heldAt(p).All() {
			all[path] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// sides are what the merge and its parents have at a path.
func (m *merge) sides(path string, changes [][]change) (is tree.Entry, sides []side, err error) {
	if is, err = m.entry(m.commit.hash, path); err != nil {
		return is, nil, err
	}
	for i, p := range m.commit.parents {
		s := side{parent: p, raw: is}
		if j, ok := slices.BinarySearchFunc(changes[i], path, func(c change, p string) int { return cmp.Compare(c.path, p) }); ok {
			s.raw = changes[i][j].was
		}
		s.e = s.raw
		if h, ok := m.heldAt(p).Get(path); ok {
			s.held, s.e = h, h.entry
		}
		sides = append(sides, s)
	}
	return is, sides, nil
}

// three is the three-way merge of what may be acted on in the sides: the value
// of a side against which every other is as it was when they parted. Where
// there is none, what the line had stays. at is a commit that has it.
func (m *merge) three(ctx context.Context, path string, sides []side) (e tree.Entry, at tree.Hash, err error) {
	pick := func(s side) (tree.Entry, tree.Hash, error) {
		if s.held != nil {
			return s.e, s.held.at, nil
		}
		return s.e, s.parent, nil
	}
	for _, s := range sides {
		wins := true
		for _, o := range sides {
			if !wins || o.e == s.e {
				continue
			}
			if wins, err = m.unchanged(ctx, path, o, s); err != nil {
				return e, at, err
			}
		}
		if wins {
			return pick(s)
		}
	}
	return pick(sides[m.main])
}

// unchanged reports whether a side has at a path what it had when it parted
// from another.
func (m *merge) unchanged(ctx context.Context, path string, s, from side) (bool, error) {
	key := [2]tree.Hash{s.parent, from.parent}
	found, ok := m.found[key]
	if !ok {
		var err error
		if found.list, found.ok, err = m.bases(ctx, s.parent, from.parent); err != nil {
			return false, err
		}
		m.found[key] = found
	}
	if !found.ok {
		return false, nil
	}
	if len(found.list) == 0 {
		return s.e == tree.Entry{}, nil
	}
	for _, b := range found.list {
		was, err := m.entry(b, path)
		if err != nil {
			return false, err
		}
		if h, ok := m.heldAt(b).Get(path); ok {
			was = h.entry
		}
		if was != s.e {
			return false, nil
		}
	}
	return true, nil
}
