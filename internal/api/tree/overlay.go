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
