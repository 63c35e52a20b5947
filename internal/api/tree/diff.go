package tree

import (
	"fmt"
	"path"
)

// Diff calls fn for every file (anything but a directory) in which a and b
// differ, with its slash-separated path; an absent side is the zero Entry. It
// opens only directories whose hashes differ, so its cost follows the change
// and not the tree. The order is git's order at every level and deterministic.
// A directory that became a file (or the reverse) is reported as its files
// going and the file coming. An error of fn stops the walk and is returned
// unchanged.
func Diff(a, b Tree, fn func(path string, from, to Entry) error) error {
	return diffDirs(a, b, "", fn)
}

func diffDirs(a, b Tree, prefix string, fn func(string, Entry, Entry) error) error {
	if a.Root == b.Root {
		return nil
	}
	as, err := a.Entries()
	if err != nil {
		return fmt.Errorf("list %q: %w", prefix, err)
	}
	bs, err := b.Entries()
	if err != nil {
		return fmt.Errorf("list %q: %w", prefix, err)
	}
	for len(as) > 0 || len(bs) > 0 {
		var from, to Entry
		switch {
		case len(bs) == 0 || (len(as) > 0 && sortKey(as[0]) < sortKey(bs[0])):
			from, as = as[0], as[1:]
		case len(as) == 0 || sortKey(bs[0]) < sortKey(as[0]):
			to, bs = bs[0], bs[1:]
		default:
			from, to, as, bs = as[0], bs[0], as[1:], bs[1:]
		}
		if err := diffEntry(a, b, prefix, from, to, fn); err != nil {
			return err
		}
	}
	return nil
}

// diffEntry reports one name; both sides have the same sort key, so either
// both are directories or none is.
func diffEntry(a, b Tree, prefix string, from, to Entry, fn func(string, Entry, Entry) error) error {
	if from == to {
		return nil
	}
	if from.Kind != Dir && to.Kind != Dir {
		name := from.Name
		if name == "" {
			name = to.Name
		}
		return fn(path.Join(prefix, name), from, to)
	}
	var sa, sb Tree
	name := to.Name
	if from.Kind == Dir {
		sa, name = Tree{a.Store, from.Hash}, from.Name
	}
	if to.Kind == Dir {
		sb = Tree{b.Store, to.Hash}
	}
	return diffDirs(sa, sb, path.Join(prefix, name), fn)
}
