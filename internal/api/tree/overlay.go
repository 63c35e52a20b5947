package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Overlay is base with some files put over it, by slash-separated path. The
// tree is the one that git would have after writing them; base and its store
// are not touched. A path through what is a file in base replaces that file.
func Overlay(base Tree, files map[string][]byte) (Tree, error) {
	if len(files) == 0 {
		return base, nil
	}
	top := &patch{}
	for name, content := range files {
		top.put(strings.Split(name, "/"), content)
	}
	mem := NewMemory()
	root, err := top.apply(base, mem)
	if err != nil {
		return Tree{}, fmt.Errorf("lay %d files over a tree: %w", len(files), err)
	}
	return Tree{Store: &overlay{mem, base.Store}, Root: root}, nil
}

// With is base with entries put at slash-separated paths; an entry without a
// hash removes what is there. Contents are base's store's. A path through what
// is put as a file is left out; a directory left empty disappears.
func With(base Tree, entries map[string]Entry) (Tree, error) {
	if len(entries) == 0 {
		return base, nil
	}
	top := &swap{}
	for name, e := range entries {
		top.put(strings.Split(name, "/"), e)
	}
	mem := NewMemory()
	root, err := top.apply(base, mem)
	if err != nil {
		return Tree{}, fmt.Errorf("put %d entries into a tree: %w", len(entries), err)
	}
	return Tree{Store: &overlay{mem, base.Store}, Root: root}, nil
}

// swap is one directory's share of With.
type swap struct {
	dirs    map[string]*swap
	entries map[string]Entry
}

func (s *swap) put(parts []string, e Entry) {
	if len(parts) == 1 {
		if s.entries == nil {
			s.entries = map[string]Entry{}
		}
		e.Name = parts[0]
		s.entries[e.Name] = e
		return
	}
	if s.dirs == nil {
		s.dirs = map[string]*swap{}
	}
	if s.dirs[parts[0]] == nil {
		s.dirs[parts[0]] = &swap{}
	}
	s.dirs[parts[0]].put(parts[1:], e)
}

func (s *swap) apply(base Tree, mem *Memory) (Hash, error) {
	old, err := base.Entries()
	if err != nil {
		return Hash{}, err
	}
	now := make(map[string]Entry, len(old)+len(s.entries)+len(s.dirs))
	for _, e := range old {
		now[e.Name] = e
	}
	for name, e := range s.entries {
		now[name] = e
	}
	for name, sub := range s.dirs {
		e := now[name]
		if put, ok := s.entries[name]; ok && !put.Hash.IsZero() {
			continue
		}
		below := Tree{}
		if e.Kind == Dir {
			below = Tree{base.Store, e.Hash}
		}
		h, err := sub.apply(below, mem)
		if err != nil {
			return Hash{}, err
		}
		if left, err := mem.Dir(h); err == nil && len(left) == 0 {
			if e.Kind == Dir || e.Hash.IsZero() {
				delete(now, name)
			}
			continue
		}
		now[name] = Entry{name, Dir, h}
	}
	list := make([]Entry, 0, len(now))
	for _, e := range now {
		if !e.Hash.IsZero() {
			list = append(list, e)
		}
	}
	return mem.AddDir(list), nil
}

// patch is one directory's share of an overlay.
type patch struct {
	dirs  map[string]*patch
	files map[string][]byte
}

func (p *patch) put(parts []string, content []byte) {
	if len(parts) == 1 {
		if p.files == nil {
			p.files = map[string][]byte{}
		}
		p.files[parts[0]] = content
		return
	}
	if p.dirs == nil {
		p.dirs = map[string]*patch{}
	}
	if p.dirs[parts[0]] == nil {
		p.dirs[parts[0]] = &patch{}
	}
	p.dirs[parts[0]].put(parts[1:], content)
}

func (p *patch) apply(base Tree, mem *Memory) (Hash, error) {
	old, err := base.Entries()
	if err != nil {
		return Hash{}, err
	}
	entries := make([]Entry, 0, len(old)+len(p.files)+len(p.dirs))
	for _, e := range old {
		_, file := p.files[e.Name]
		sub, dir := p.dirs[e.Name]
		switch {
		case dir && e.Kind == Dir:
			h, err := sub.apply(Tree{base.Store, e.Hash}, mem)
			if err != nil {
				return Hash{}, err
			}
			entries = append(entries, Entry{e.Name, Dir, h})
			delete(p.dirs, e.Name)
		case !file && !dir:
			entries = append(entries, e)
		}
	}
	for name, sub := range p.dirs {
		h, err := sub.apply(Tree{}, mem)
		if err != nil {
			return Hash{}, err
		}
		entries = append(entries, Entry{name, Dir, h})
	}
	for name, content := range p.files {
		entries = append(entries, Entry{name, File, mem.AddFile(content)})
	}
	return mem.AddDir(entries), nil
}

// overlay looks into the memory first.
type overlay struct {
	mem  *Memory
	base Store
}

// Dir implements Store.
func (o *overlay) Dir(h Hash) ([]Entry, error) {
	d, err := o.mem.Dir(h)
	if errors.Is(err, fs.ErrNotExist) && o.base != nil {
		return o.base.Dir(h)
	}
	return d, err
}

// File implements Store.
func (o *overlay) File(h Hash, limit int64) ([]byte, error) {
	b, err := o.mem.File(h, limit)
	if errors.Is(err, fs.ErrNotExist) && o.base != nil {
		return o.base.File(h, limit)
	}
	return b, err
}

// Size implements Sizer, where base does.
func (o *overlay) Size(h Hash) (int64, error) {
	n, err := o.mem.Size(h)
	if sizer, ok := o.base.(Sizer); errors.Is(err, fs.ErrNotExist) && ok {
		return sizer.Size(h)
	} else if errors.Is(err, fs.ErrNotExist) && o.base != nil {
		return 0, nil
	}
	return n, err
}
