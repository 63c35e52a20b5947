package tree

import (
	"errors"
	"maps"
	"math"
	"slices"
)

// tenantsDir is the directory whose subdirectories belong to one tenant each.
const tenantsDir = "intents"

// tenantShare is the part of a tree that one tenant's directory may have: 1/2.
// The rest of the tree then has room for all others, whatever that one does.
const tenantShare = 2

// maxOversized bounds how many directories are left out of one tree, and with it
// what looking at them costs. A tree with more is taken as it stands.
const maxOversized = 16

// maxCuts and maxJudged bound what a Vetter remembers of tenants' directories.
const (
	maxCuts   = 64
	maxJudged = 1_000_000
)

// OversizedName is the name of the one entry of a directory that is too large. Git
// refuses it (see CheckName), so that no file has it.
const OversizedName = ".git::too-large"

// Bounded is a tree as all readers see it: each tenant's directory that is too
// large has one entry, of kind Oversized, which nobody opens. Such a directory is
// deeper than a whole tree may be, has more than half of the entries or bytes of
// one, or repeats itself half as often as one may. The answer depends on nothing but
// the tree and the bounds. The tree need not be whole.
func (v *Vetter) Bounded(t Tree) (Tree, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t, _, _, err := v.cutTree(t)
	return t, err
}

// cutTree is Bounded, with the entries of the answer and, where nothing is left
// out and it was read, the directory of all tenants.
func (v *Vetter) cutTree(t Tree) (out Tree, top []Entry, tenants *listing, err error) {
	if top, err = t.Entries(); err != nil {
		return t, nil, nil, err
	}
	i := slices.IndexFunc(top, func(e Entry) bool { return e.Name == tenantsDir && e.Kind == Dir })
	if i < 0 {
		return t, top, nil, nil
	}
	c, tenants, err := v.cut(t.Store, top[i].Hash)
	if err != nil || c == nil {
		return t, top, tenants, err
	}
	top = slices.Clone(top)
	top[i].Hash = c.hash
	root := DirHash(top)
	dirs := maps.Clone(c.dirs)
	dirs[root] = top
	return Tree{Store: &cutStore{Store: t.Store, dirs: dirs}, Root: root}, top, nil, nil
}

// listing is a directory that was read.
type listing struct {
	hash    Hash
	entries []Entry
}

// cut is the directory of all tenants, as hash, with those of it that stand in
// place of others.
type cut struct {
	hash Hash
	dirs map[Hash][]Entry
}

// cut leaves out what is oversized of the directory of all tenants; nil: nothing
// is.
func (v *Vetter) cut(store Store, tenants Hash) (out *cut, read *listing, err error) {
	if known, ok := v.cuts[tenants]; ok {
		return known, nil, nil
	}
	entries, err := store.Dir(tenants)
	if errors.As(err, new(*BrokenError)) {
		return nil, nil, nil // Whole refuses it
	}
	if err != nil {
		return nil, nil, err
	}
	var left []Entry
	for i, e := range entries {
		if e.Kind != Dir {
			continue
		}
		over, err := v.oversized(store, e.Hash)
		if err != nil {
			return nil, nil, err
		}
		if !over {
			continue
		}
		if out == nil {
			out, left = &cut{dirs: map[Hash][]Entry{}}, slices.Clone(entries)
		}
		mark := []Entry{{OversizedName, Oversized, e.Hash}}
		left[i].Hash = DirHash(mark)
		if out.dirs[left[i].Hash] = mark; len(out.dirs) > maxOversized {
			out = nil
			break
		}
	}
	if out != nil {
		out.hash = DirHash(left)
		out.dirs[out.hash] = left
	}
	if len(v.cuts) >= maxCuts {
		clear(v.cuts)
	}
	v.cuts[tenants] = out
	return out, &listing{tenants, entries}, nil
}

// oversized reports whether a tenant's directory is too large for one tenant. It
// is looked at in git's order as far as it is within bounds: what git refuses
// before that is left to Whole. That does not depend on what is known already.
func (v *Vetter) oversized(store Store, h Hash) (bool, error) {
	if over, ok := v.judged[h]; ok {
		return over, nil
	}
	v.forget()
	b := v.bounds
	depth, share := b.Depth-2, b.Entries/tenantShare // two directories lie above
	w := walk{v: v, store: store, left: b.Entries, one: true, share: share}
	w.sizer, _ = store.(Sizer)
	over := false
	switch i, err := w.dir(h, depth); {
	case errors.As(err, new(*BrokenError)):
		over = true
	case err != nil:
		return false, err
	default:
		n := v.nodes[i]
		over = n.Depth > depth || n.Entries > share ||
			n.broken == nil && (n.Bytes > b.Bytes/tenantShare || n.Entries > repeatsFrom/tenantShare && n.Entries > repeats/tenantShare*v.distinct(n, math.MaxInt64))
	}
	if len(v.judged) >= maxJudged {
		clear(v.judged)
	}
	v.judged[h] = over
	return over, nil
}

// forget makes room. No node may be in use.
func (v *Vetter) forget() {
	if len(v.nodes) > maxNodes {
		clear(v.known)
		v.nodes = nil
	}
}

// cutStore has some directories of its own.
type cutStore struct {
	Store
	dirs map[Hash][]Entry
}

// withCuts is a store that also knows the directories that Bounded made in others.
func withCuts(s Store, others ...Store) Store {
	dirs := map[Hash][]Entry{}
	for _, o := range others {
		if c, ok := o.(*cutStore); ok {
			maps.Copy(dirs, c.dirs)
		}
	}
	if len(dirs) == 0 {
		return s
	}
	return &cutStore{s, dirs}
}

// Dir implements Store.
func (s *cutStore) Dir(h Hash) ([]Entry, error) {
	if entries, ok := s.dirs[h]; ok {
		return entries, nil
	}
	return s.Store.Dir(h)
}

// Size implements Sizer, where the store below does.
func (s *cutStore) Size(h Hash) (int64, error) {
	if sizer, ok := s.Store.(Sizer); ok {
		return sizer.Size(h)
	}
	return 0, nil
}
