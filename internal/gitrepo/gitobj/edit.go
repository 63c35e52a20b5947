package gitobj

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// DecodeDir reads a tree object's body. One that git refuses (`git fsck
// --strict`, see tree.Check) is a *tree.BrokenError: readers that took the first
// and the last of two equal names, or joined a path with "..", would read two
// different trees.
func DecodeDir(data []byte) ([]tree.Entry, error) {
	entries, odd, err := parseDir(data)
	if err == nil {
		err = odd
	}
	if err == nil {
		err = tree.Check(entries)
	}
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// StoredDir reads a tree object's body without a judgement, as a server does
// that only keeps it: names and order may be anything.
func StoredDir(data []byte) ([]tree.Entry, error) {
	entries, _, err := parseDir(data)
	return entries, err
}

// parseDir reads entries, and the first mode that is not known.
func parseDir(data []byte) (out []tree.Entry, odd error, err error) {
	for len(data) > 0 {
		sp := bytes.IndexByte(data, ' ')
		if sp <= 0 {
			return nil, nil, &tree.BrokenError{Why: "an entry has no mode"}
		}
		nul := bytes.IndexByte(data[sp:], 0)
		if nul < 0 || len(data) < sp+nul+1+len(tree.Hash{}) {
			return nil, nil, &tree.BrokenError{Why: "an entry is cut short"}
		}
		e := tree.Entry{Name: string(data[sp+1 : sp+nul])}
		var known bool
		if e.Kind, known = kindOf(data[:sp]); !known && odd == nil {
			odd = &tree.BrokenError{Why: fmt.Sprintf("the entry %q has mode %q", e.Name, data[:sp])}
		}
		data = data[sp+nul+1:]
		e.Hash, data = tree.Hash(data[:len(e.Hash)]), data[len(e.Hash):]
		out = append(out, e)
	}
	return out, odd, nil
}

// kindOf reads git's octal mode. Old repositories hold files of other
// permissions (100664) and directories with a zero before (040000); git reads
// them, and so do we. No other mode is known.
func kindOf(mode []byte) (kind tree.Kind, known bool) {
	switch string(mode) {
	case "40000", "040000":
		return tree.Dir, true
	case "100644", "100664":
		return tree.File, true
	case "100755":
		return tree.Executable, true
	case "120000":
		return tree.Symlink, true
	case "160000":
		return tree.Submodule, true
	}
	return tree.File, false
}

// Change is what an edit does to a tree: files written and paths removed. A
// removed path may be a directory; removing what is not there is no change. A
// path both removed and written is written.
type Change struct {
	Puts    map[string][]byte
	Deletes []string
}

// CheckPath says whether a path may stand in a tree.
func CheckPath(p string) error {
	switch {
	case p == "" || path.Clean(p) != p || path.IsAbs(p) || p == ".":
		return fmt.Errorf("path %q is not a clean relative path", p)
	case strings.ContainsAny(p, "\x00\\"):
		return fmt.Errorf("path %q holds a character that is unsafe in a tree", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if why := tree.CheckName(part); why != "" {
			return fmt.Errorf("path %q: %s", p, why)
		}
	}
	return nil
}

// node is one directory's share of a change.
type node struct {
	dirs    map[string]*node
	puts    map[string][]byte
	deletes map[string]bool
}

func (n *node) dir(name string) *node {
	if n.dirs == nil {
		n.dirs = map[string]*node{}
	}
	if n.dirs[name] == nil {
		n.dirs[name] = &node{}
	}
	return n.dirs[name]
}

func plant(c Change) (*node, error) {
	root := &node{}
	for _, p := range c.Deletes {
		if err := CheckPath(p); err != nil {
			return nil, err
		}
		dir, base := root.descend(p)
		if dir.deletes == nil {
			dir.deletes = map[string]bool{}
		}
		dir.deletes[base] = true
	}
	for p, content := range c.Puts {
		if err := CheckPath(p); err != nil {
			return nil, err
		}
		dir, base := root.descend(p)
		if dir.puts == nil {
			dir.puts = map[string][]byte{}
		}
		dir.puts[base] = content
	}
	return root, root.check("")
}

func (n *node) descend(p string) (dir *node, base string) {
	parts := strings.Split(p, "/")
	for _, part := range parts[:len(parts)-1] {
		n = n.dir(part)
	}
	return n, parts[len(parts)-1]
}

// check refuses a name written both as a file and as a directory.
func (n *node) check(prefix string) error {
	for name, d := range n.dirs {
		p := path.Join(prefix, name)
		if _, both := n.puts[name]; both && d.writes() {
			return fmt.Errorf("path %q is written as a file and as a directory", p)
		}
		if err := d.check(p); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) writes() bool {
	if len(n.puts) > 0 {
		return true
	}
	for _, d := range n.dirs {
		if d.writes() {
			return true
		}
	}
	return false
}

// Edit builds the tree that base becomes under a change and adds the objects
// base does not have to new. Only directories on the way to a change are read
// and rebuilt; one left empty disappears. An empty result is the empty tree's
// own name, so that a commit can be made of it.
func Edit(base tree.Tree, c Change, new Set) (tree.Hash, error) {
	root, err := plant(c)
	if err != nil {
		return tree.Hash{}, fmt.Errorf("edit tree: %w", err)
	}
	h, empty, err := root.apply(base, new)
	if err != nil {
		return tree.Hash{}, fmt.Errorf("edit tree: %w", err)
	}
	if empty {
		return new.Add(Tree, nil), nil
	}
	return h, nil
}

func (n *node) apply(base tree.Tree, new Set) (h tree.Hash, empty bool, err error) {
	old, err := base.Entries()
	if err != nil {
		return tree.Hash{}, false, err
	}
	entries := make(map[string]tree.Entry, len(old)+len(n.puts))
	for _, e := range old {
		entries[e.Name] = e
	}
	for name := range n.deletes {
		delete(entries, name)
	}
	for name, d := range n.dirs {
		var sub tree.Tree
		if e, ok := entries[name]; ok && e.Kind == tree.Dir {
			sub = tree.Tree{Store: base.Store, Root: e.Hash}
		} else if ok && !d.writes() {
			continue // removals below what is a file
		}
		dh, gone, err := d.apply(sub, new)
		if err != nil {
			return tree.Hash{}, false, err
		}
		if gone {
			delete(entries, name)
		} else {
			entries[name] = tree.Entry{Name: name, Kind: tree.Dir, Hash: dh}
		}
	}
	for name, content := range n.puts {
		bh := tree.BlobHash(content)
		if e, ok := entries[name]; ok && e.Hash == bh && e.Kind == tree.File {
			continue
		}
		new[bh] = Object{Blob, content}
		entries[name] = tree.Entry{Name: name, Kind: tree.File, Hash: bh}
	}
	return n.store(base, old, entries, new)
}

// store names the directory; one equal to what was there adds no object.
func (n *node) store(base tree.Tree, old []tree.Entry, entries map[string]tree.Entry, new Set) (tree.Hash, bool, error) {
	if len(entries) == 0 {
		return tree.Hash{}, true, nil
	}
	list := make([]tree.Entry, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	tree.Sort(list)
	if slices.Equal(list, old) {
		return base.Root, false, nil
	}
	return new.Add(Tree, tree.EncodeDir(list)), false, nil
}
