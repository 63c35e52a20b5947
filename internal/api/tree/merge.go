package tree

import (
	"fmt"
	"path"
)

// Merge is what git would make of ours and theirs, which both come from base,
// as long as no file was changed on both sides: those are conflicts, which are
// named and keep ours. Whole files are compared, never lines. Only directories
// that both sides changed are opened. theirs' store must know the objects of
// all three, but for what Bounded made.
func Merge(base, ours, theirs Tree) (merged Tree, conflicts []string, err error) {
	m := merger{store: withCuts(theirs.Store, base.Store, ours.Store, theirs.Store), mem: NewMemory()}
	root, err := m.dirs(base.Root, ours.Root, theirs.Root, "")
	if err != nil {
		return Tree{}, nil, fmt.Errorf("merge trees: %w", err)
	}
	return Tree{Store: &overlay{m.mem, m.store}, Root: root}, m.conflicts, nil
}

type merger struct {
	store     Store
	mem       *Memory
	conflicts []string
}

func (m *merger) dirs(base, ours, theirs Hash, prefix string) (Hash, error) {
	switch {
	case theirs == base || theirs == ours:
		return ours, nil
	case ours == base:
		return theirs, nil
	}
	var sides [3]map[string]Entry
	var order []string
	for i, h := range []Hash{base, ours, theirs} {
		entries, err := Tree{m.store, h}.Entries()
		if err != nil {
			return Hash{}, fmt.Errorf("list %q: %w", prefix, err)
		}
		sides[i] = make(map[string]Entry, len(entries))
		for _, e := range entries {
			sides[i][e.Name] = e
			order = append(order, e.Name)
		}
	}
	var out []Entry
	done := map[string]bool{}
	for _, name := range order {
		if done[name] {
			continue
		}
		done[name] = true
		e, err := m.entry(sides[0][name], sides[1][name], sides[2][name], path.Join(prefix, name))
		if err != nil {
			return Hash{}, err
		}
		if e.Name != "" {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return Hash{}, nil
	}
	return m.mem.AddDir(out), nil
}

// entry merges one name; an absent side is the zero Entry.
func (m *merger) entry(base, ours, theirs Entry, name string) (Entry, error) {
	switch {
	case theirs == base || theirs == ours:
		return ours, nil
	case ours == base:
		return theirs, nil
	case ours.Kind != Dir || theirs.Kind != Dir || ours.Name == "" || theirs.Name == "":
		m.conflicts = append(m.conflicts, name)
		return ours, nil
	}
	var from Hash
	if base.Kind == Dir {
		from = base.Hash
	}
	h, err := m.dirs(from, ours.Hash, theirs.Hash, name)
	if err != nil || h.IsZero() {
		return Entry{}, err
	}
	return Entry{ours.Name, Dir, h}, nil
}

// Graft is onto with some top-level names as from has them: present there or
// not. from's store must know the objects of both.
func Graft(onto, from Tree, names ...string) (Tree, error) {
	take := map[string]bool{}
	for _, n := range names {
		take[n] = true
	}
	var out []Entry
	for _, side := range []struct {
		tree  Tree
		taken bool
	}{{onto, false}, {from, true}} {
		entries, err := side.tree.Entries()
		if err != nil {
			return Tree{}, fmt.Errorf("graft a tree: %w", err)
		}
		for _, e := range entries {
			if take[e.Name] == side.taken {
				out = append(out, e)
			}
		}
	}
	mem := NewMemory()
	return Tree{Store: &overlay{mem, from.Store}, Root: mem.AddDir(out)}, nil
}
