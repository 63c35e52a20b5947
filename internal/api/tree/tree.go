package tree

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Hash is a git object name (SHA-1).
type Hash [20]byte

// ParseHash reads 40 hexadecimal digits.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 40 {
		return h, fmt.Errorf("parse object name %q: want 40 hexadecimal digits", s)
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return h, fmt.Errorf("parse object name %q: %w", s, err)
	}
	return h, nil
}

// String is the 40 hexadecimal digits git prints.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Short is the first seven digits, as people read it.
func (h Hash) Short() string { return h.String()[:7] }

// IsZero reports whether h names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// Kind says what an entry of a directory is.
type Kind uint8

// The kinds of entry that a git tree knows, and one that it does not.
const (
	File Kind = iota
	Executable
	Dir
	Symlink
	Submodule
	// Oversized is a tenant's directory that is too large to be read (see
	// Vetter.Bounded). Git knows no such kind: it is never written.
	Oversized
)

// Entry is one name in a directory.
type Entry struct {
	Name string
	Kind Kind
	Hash Hash
}

// ErrTooLarge is returned by Store.File for a file over the caller's limit.
var ErrTooLarge = errors.New("file is too large")

// Store answers for objects by hash. Implementations are safe for concurrent
// use and never change what a hash stands for.
type Store interface {
	// Dir lists a directory in git's order. The slice must not be modified.
	Dir(Hash) ([]Entry, error)
	// File reads a file of at most limit bytes (0: no limit); a larger one is
	// ErrTooLarge. The bytes must not be modified.
	File(h Hash, limit int64) ([]byte, error)
}

// Tree is a directory of a Store. The zero Tree is empty.
type Tree struct {
	Store Store
	Root  Hash
}

// IsZero reports whether t has no content at all.
func (t Tree) IsZero() bool { return t.Store == nil || t.Root.IsZero() }

// Entries lists the directory in git's order.
func (t Tree) Entries() ([]Entry, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.Store.Dir(t.Root)
}

// Find looks a slash-separated path up. A missing path is fs.ErrNotExist.
func (t Tree) Find(name string) (Entry, error) {
	cur := Entry{Kind: Dir, Hash: t.Root}
	for _, part := range strings.Split(path.Clean(name), "/") {
		if part == "." || part == "" {
			continue
		}
		if cur.Kind != Dir {
			return Entry{}, fmt.Errorf("find %s: %w", name, fs.ErrNotExist)
		}
		entries, err := Tree{t.Store, cur.Hash}.Entries()
		if err != nil {
			return Entry{}, fmt.Errorf("find %s: %w", name, &storeError{err})
		}
		next, ok := lookup(entries, part)
		if !ok {
			return Entry{}, fmt.Errorf("find %s: %w", name, fs.ErrNotExist)
		}
		cur = next
	}
	return cur, nil
}

// storeError is a directory that the store could not list. An object that is
// missing from the store (fs.ErrNotExist there) must not look like a path that
// is missing from the tree, or a damaged store would pass for an empty fleet.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }

func (e *storeError) Unwrap() error {
	if errors.Is(e.err, fs.ErrNotExist) {
		return nil
	}
	return e.err
}

// Sub is the directory at a path; a missing one is the empty Tree and no error.
func (t Tree) Sub(name string) (Tree, error) {
	e, err := t.Find(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Tree{}, nil
	}
	if err != nil {
		return Tree{}, err
	}
	if e.Kind != Dir {
		return Tree{}, fmt.Errorf("open %s: not a directory", name)
	}
	return Tree{t.Store, e.Hash}, nil
}

// ReadFile reads the file at a path, of at most limit bytes (0: no limit).
func (t Tree) ReadFile(name string, limit int64) ([]byte, error) {
	e, err := t.Find(name)
	if err != nil {
		return nil, err
	}
	if e.Kind != File && e.Kind != Executable {
		return nil, fmt.Errorf("read %s: not a regular file", name)
	}
	b, err := t.Store.File(e.Hash, limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// Walk calls fn for every entry that is not a directory, in git's order, with
// its slash-separated path from t.
func (t Tree) Walk(fn func(name string, e Entry) error) error { return t.walk("", fn) }

func (t Tree) walk(prefix string, fn func(string, Entry) error) error {
	entries, err := t.Entries()
	if err != nil {
		return fmt.Errorf("list %s: %w", prefix, err)
	}
	for _, e := range entries {
		name := path.Join(prefix, e.Name)
		if e.Kind == Dir {
			if err := (Tree{t.Store, e.Hash}).walk(name, fn); err != nil {
				return err
			}
			continue
		}
		if err := fn(name, e); err != nil {
			return err
		}
	}
	return nil
}

// lookup finds a name among entries in git's order: among 50,000 of them a walk
// for each of 50,000 names takes seconds.
func lookup(entries []Entry, name string) (Entry, bool) {
	for _, key := range []string{name, name + "/"} { // no directory, or one
		i, found := slices.BinarySearchFunc(entries, key, func(e Entry, key string) int {
			if e.Kind != Dir {
				return strings.Compare(e.Name, key)
			}
			n := min(len(e.Name), len(key))
			if c := strings.Compare(e.Name[:n], key[:n]); c != 0 || len(e.Name) > n {
				return cmp.Or(c, 1)
			}
			return strings.Compare("/", key[n:])
		})
		if found {
			return entries[i], true
		}
	}
	return Entry{}, false
}
